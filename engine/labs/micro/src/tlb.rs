//! The sizes of this CPU's translation lookaside buffers, as its CPUID instruction tells them.
//!
//! AMD: leaves 0x80000005, 0x80000006, 0x80000019 and 0x80000021 (AMD64 Architecture Programmer's Manual, volume 3,
//! appendix E).
//! Intel: leaf 0x18, before it the descriptors of leaf 2 (Software Developer's Manual, volume 2A, CPUID).
//! What a hypervisor hides, and what other architectures have, is not known: it is not in the list.

/// One translation lookaside buffer. One that holds pages of several sizes stands in the list once for each size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlb {
    /// `data`, `instruction` or `unified`; `load` and `store` where data are looked up in two of them.
    pub kind: &'static str,
    /// 1 is asked first.
    pub level: u8,
    /// Size of the pages, B.
    pub page_bytes: u64,
    /// How many pages it holds.
    pub entries: u32,
}

/// Answers to CPUID: EAX, EBX, ECX and EDX of a leaf and a subleaf.
type Registers = [u32; 4];

const KIB4: u64 = 4 << 10;
const MIB2: u64 = 2 << 20;
const GIB1: u64 = 1 << 30;

/// EAX[14] of leaf 0x80000021: second-level TLBs are counted in multiples of 32 entries.
const L2_TLB_SIZE_X32: u32 = 1 << 14;
/// AMD's family from which on they are; a hypervisor may hide that bit, and their size is then not known.
const COUNTS_BY_32: u32 = 0x1a;
/// ECX[31] of leaf 1.
const HYPERVISOR: u32 = 1 << 31;

/// The TLBs of the CPU that this runs on, by level; none where they are not known.
#[cfg(target_arch = "x86_64")]
pub fn tlbs() -> Vec<Tlb> {
    tlbs_of(|leaf, subleaf| {
        let answer = std::arch::x86_64::__cpuid_count(leaf, subleaf);
        [answer.eax, answer.ebx, answer.ecx, answer.edx]
    })
}

/// The TLBs of the CPU that this runs on: not known on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn tlbs() -> Vec<Tlb> {
    Vec::new()
}

/// The TLBs of a CPU that answers so.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn tlbs_of(cpuid: impl Fn(u32, u32) -> Registers) -> Vec<Tlb> {
    let [highest, b, c, d] = cpuid(0, 0);
    let vendor = [b, d, c].map(u32::to_le_bytes).concat();
    let mut found = match vendor.as_slice() {
        b"AuthenticAMD" | b"HygonGenuine" => amd(&cpuid),
        b"GenuineIntel" if highest >= 0x18 => match intel(&cpuid) {
            found if found.is_empty() => intel_descriptors(&cpuid),
            found => found,
        },
        b"GenuineIntel" if highest >= 2 => intel_descriptors(&cpuid),
        _ => Vec::new(),
    };
    found.sort_by_key(|tlb| (tlb.level, tlb.kind, tlb.page_bytes));
    found
}

/// Pages of 4 MiB share the entries of those of 2 MiB, two for each; 64-bit kernels have none, and they are left out.
fn amd(cpuid: &impl Fn(u32, u32) -> Registers) -> Vec<Tlb> {
    let highest = cpuid(0x8000_0000, 0)[0];
    let leaf = |leaf: u32| if leaf <= highest { cpuid(leaf, 0) } else { [0; 4] };
    let (first, second, huge) = (leaf(0x8000_0005), leaf(0x8000_0006), leaf(0x8000_0019));
    let by_32 = leaf(0x8000_0021)[0] & L2_TLB_SIZE_X32 != 0;
    let [signature, _, features, _] = cpuid(1, 0);
    let hidden = !by_32 && features & HYPERVISOR != 0 && family(signature) >= COUNTS_BY_32;
    [
        amd_first(first[1], KIB4),
        amd_first(first[0], MIB2),
        amd_halves(huge[0], 1, GIB1),
        amd_halves(second[1], 2, KIB4),
        amd_halves(second[0], 2, MIB2),
        amd_halves(huge[1], 2, GIB1),
    ]
    .into_iter()
    .flatten()
    .flatten()
    .filter(|tlb| tlb.level == 1 || !hidden)
    .map(|tlb| Tlb { entries: if tlb.level > 1 && by_32 { 32 * tlb.entries } else { tlb.entries }, ..tlb })
    .collect()
}

/// The family of a processor, by EAX of leaf 1.
fn family(signature: u32) -> u32 {
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    if base == 0xf { base + extended } else { base }
}

/// A register of leaf 0x80000005: a byte each, from above, for the ways and entries of data, then of instructions.
fn amd_first(register: u32, page_bytes: u64) -> [Option<Tlb>; 2] {
    let [instructions, _, data, _] = register.to_le_bytes();
    [tlb("data", 1, page_bytes, data.into()), tlb("instruction", 1, page_bytes, instructions.into())]
}

/// A register of leaves 0x80000006 and 0x80000019: data in the upper half, instructions in the lower one, each four bits
/// of associativity (0: there is none) above twelve of entries. An upper half of 0 says that the lower is for both.
fn amd_halves(register: u32, level: u8, page_bytes: u64) -> [Option<Tlb>; 2] {
    let half = |kind, half: u32| match half >> 12 {
        0 => None,
        _ => tlb(kind, level, page_bytes, half & 0xfff),
    };
    let (upper, lower) = (register >> 16, register & 0xffff);
    match upper {
        // The unified ones that AMD's manual means are of the second level.
        0 if level > 1 => [half("unified", lower), None],
        _ => [half("data", upper), half("instruction", lower)],
    }
}

/// Leaf 0x18, a TLB each subleaf: which pages (EBX), ways times sets (EBX, ECX), kind and level (EDX).
fn intel(cpuid: &impl Fn(u32, u32) -> Registers) -> Vec<Tlb> {
    // A hypervisor may answer anything; no CPU has this many.
    let last = cpuid(0x18, 0)[0].min(63);
    let mut found = Vec::new();
    for subleaf in 0..=last {
        let [_, b, sets, d] = cpuid(0x18, subleaf);
        let kind = match d & 0x1f {
            1 => "data",
            2 => "instruction",
            3 => "unified",
            4 => "load",
            5 => "store",
            _ => continue,
        };
        let entries = (b >> 16).saturating_mul(sets);
        let pages = [(0, KIB4), (1, MIB2), (3, GIB1)];
        let held = pages.into_iter().filter(|(bit, _)| b >> bit & 1 == 1);
        found.extend(held.filter_map(|(_, page_bytes)| tlb(kind, (d >> 5 & 7) as u8, page_bytes, entries)));
    }
    found
}

/// Leaf 2: a descriptor each byte, except the lowest (always 1) and those of registers whose highest bit is set.
fn intel_descriptors(cpuid: &impl Fn(u32, u32) -> Registers) -> Vec<Tlb> {
    let [a, b, c, d] = cpuid(2, 0);
    [a & !0xff, b, c, d]
        .into_iter()
        .filter(|register| register >> 31 == 0)
        .flat_map(u32::to_le_bytes)
        .flat_map(described)
        .filter_map(|(kind, level, page_bytes, entries)| tlb(kind, level, page_bytes, entries))
        .collect()
}

type Described = (&'static str, u8, u64, u32);

/// What a descriptor of leaf 2 stands for, as far as TLBs of 64-bit CPUs go.
///
/// `DTLB1` of Intel's table is the second level where there is a `DTLB0`. What it calls 4 MByte holds 2 MiB pages in
/// 64-bit mode.
fn described(descriptor: u8) -> Vec<Described> {
    let (data, code, both) = ("data", "instruction", "unified");
    match descriptor {
        0x03 => vec![(data, 1, KIB4, 64)],
        0x05 => vec![(data, 2, MIB2, 32)],
        0x4f => vec![(code, 1, KIB4, 32)],
        0x50 => vec![(code, 1, KIB4, 64), (code, 1, MIB2, 64)],
        0x51 => vec![(code, 1, KIB4, 128), (code, 1, MIB2, 128)],
        0x52 => vec![(code, 1, KIB4, 256), (code, 1, MIB2, 256)],
        0x55 => vec![(code, 1, MIB2, 7)],
        0x56 => vec![(data, 1, MIB2, 16)],
        0x57 | 0x59 => vec![(data, 1, KIB4, 16)],
        0x5a => vec![(data, 1, MIB2, 32)],
        0x5b => vec![(data, 1, KIB4, 64), (data, 1, MIB2, 64)],
        0x5c => vec![(data, 1, KIB4, 128), (data, 1, MIB2, 128)],
        0x5d => vec![(data, 1, KIB4, 256), (data, 1, MIB2, 256)],
        0x61 => vec![(code, 1, KIB4, 48)],
        0x63 => vec![(data, 1, MIB2, 32), (data, 1, GIB1, 4)],
        0x6a => vec![(data, 1, KIB4, 64)],
        0x6b => vec![(data, 2, KIB4, 256)],
        0x6c => vec![(data, 2, MIB2, 128)],
        0x6d => vec![(data, 2, GIB1, 16)],
        0x76 => vec![(code, 1, MIB2, 8)],
        0xa0 => vec![(data, 1, KIB4, 32)],
        0xb0 => vec![(code, 1, KIB4, 128)],
        0xb1 => vec![(code, 1, MIB2, 8)],
        0xb2 | 0xb5 => vec![(code, 1, KIB4, 64)],
        0xb3 => vec![(data, 1, KIB4, 128)],
        0xb4 => vec![(data, 2, KIB4, 256)],
        0xb6 => vec![(code, 1, KIB4, 128)],
        0xba => vec![(data, 2, KIB4, 64)],
        0xc0 => vec![(data, 1, KIB4, 8), (data, 1, MIB2, 8)],
        0xc1 => vec![(both, 2, KIB4, 1024), (both, 2, MIB2, 1024)],
        0xc2 => vec![(data, 1, KIB4, 16), (data, 1, MIB2, 16)],
        0xc3 => vec![(both, 2, KIB4, 1536), (both, 2, MIB2, 1536), (both, 2, GIB1, 16)],
        0xc4 => vec![(data, 1, MIB2, 32)],
        0xca => vec![(both, 2, KIB4, 512)],
        _ => Vec::new(),
    }
}

fn tlb(kind: &'static str, level: u8, page_bytes: u64, entries: u32) -> Option<Tlb> {
    (entries > 0 && level > 0).then_some(Tlb { kind, level, page_bytes, entries })
}

#[cfg(test)]
#[path = "tlb_tests.rs"]
mod tests;
