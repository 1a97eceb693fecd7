//! Against the registers that real CPUs were published with.

use super::*;

const AMD: Registers = [0x10, 0x6874_7541, 0x444d_4163, 0x6974_6e65];
const INTEL: Registers = [0, 0x756e_6547, 0x6c65_746e, 0x4965_6e69];

/// A CPU that answers these leaves (subleaf 0, or for 0x18 one each), and nothing to others.
fn cpu(vendor: Registers, leaves: &[(u32, &[Registers])]) -> Vec<Tlb> {
    tlbs_of(|leaf, subleaf| match leaf {
        0 => vendor,
        _ => leaves
            .iter()
            .find(|(known, _)| *known == leaf)
            .and_then(|(_, answers)| answers.get(subleaf as usize))
            .copied()
            .unwrap_or_default(),
    })
}

fn amd_cpu(highest: u32, first: [u32; 2], second: [u32; 2], huge: [u32; 2]) -> Vec<Tlb> {
    let registers = |[a, b]: [u32; 2]| [a, b, 0, 0];
    cpu(
        AMD,
        &[
            (0x8000_0000, &[[highest, 0, 0, 0]]),
            (0x8000_0005, &[registers(first)]),
            (0x8000_0006, &[registers(second)]),
            (0x8000_0019, &[registers(huge)]),
        ],
    )
}

fn intel_cpu(descriptors: Registers) -> Vec<Tlb> {
    cpu([0xd, INTEL[1], INTEL[2], INTEL[3]], &[(2, &[descriptors])])
}

/// `data 1 4K 64` each.
fn told(tlbs: &[Tlb]) -> Vec<String> {
    let size = |bytes: u64| match bytes {
        KIB4 => "4K",
        MIB2 => "2M",
        GIB1 => "1G",
        _ => "?",
    };
    tlbs.iter().map(|t| format!("{} {} {} {}", t.kind, t.level, size(t.page_bytes), t.entries)).collect()
}

#[test]
fn an_epyc_9654_has_the_tlbs_of_zen_4() {
    let genoa = amd_cpu(
        0x8000_0028,
        [0xff48_ff40, 0xff48_ff40],
        [0x5c00_2200, 0x6c00_4200],
        [0xf048_f040, 0xf040_0000],
    );
    let expected = [
        "data 1 4K 72",
        "data 1 2M 72",
        "data 1 1G 72",
        "instruction 1 4K 64",
        "instruction 1 2M 64",
        "instruction 1 1G 64",
        "data 2 4K 3072",
        "data 2 2M 3072",
        "data 2 1G 64",
        "instruction 2 4K 512",
        "instruction 2 2M 512",
    ];
    assert_eq!(told(&genoa), expected);
}

#[test]
fn a_hypervisor_that_hides_a_leaf_hides_its_tlbs() {
    let [first, second] = [[0xff48_ff40, 0xff48_ff40], [0x5c00_2200, 0x6c00_4200]];
    let guest = amd_cpu(0x8000_0021, first, second, [0, 0]);
    assert!(guest.len() == 8 && guest.iter().all(|tlb| tlb.page_bytes < GIB1), "{guest:?}");
    // What lies beyond the highest leaf is not an answer to the question.
    assert_eq!(amd_cpu(0x8000_0008, first, second, [0xf048_f040, 0xf040_0000]), guest);
    assert_eq!(amd_cpu(0x8000_0004, first, second, [0, 0]), []);
}

#[test]
fn a_phenom_ii_has_no_second_level_for_large_pages_of_instructions() {
    let deneb = amd_cpu(
        0x8000_001b,
        [0xff30_ff10, 0xff30_ff20],
        [0x2080_0000, 0x4200_4200],
        [0xf030_0000, 0x6010_0000],
    );
    let expected = [
        "data 1 4K 48",
        "data 1 2M 48",
        "data 1 1G 48",
        "instruction 1 4K 32",
        "instruction 1 2M 16",
        "data 2 4K 512",
        "data 2 2M 128",
        "data 2 1G 16",
        "instruction 2 4K 512",
    ];
    assert_eq!(told(&deneb), expected);
}

#[test]
fn an_upper_half_of_zero_is_a_unified_tlb() {
    let unified = amd_cpu(0x8000_0006, [0, 0], [0x0000_6400, 0x0000_6200], [0, 0]);
    assert_eq!(told(&unified), ["unified 2 4K 512", "unified 2 2M 1024"]);
}

#[test]
fn a_core_i9_12900k_tells_its_tlbs_in_leaf_0x18() {
    let subleaves = [
        [8, 0, 0, 0],
        [0, 0x0008_0001, 0x20, 0x4022],
        [0, 0x0008_0006, 0x04, 0x4022],
        [0, 0x0010_000f, 0x01, 0x4125],
        [0, 0x0004_0001, 0x10, 0x4024],
        [0, 0x0004_0006, 0x08, 0x4024],
        [0, 0x0008_0008, 0x01, 0x4124],
        [0, 0x0008_0007, 0x80, 0x4043],
        [0, 0x0008_0009, 0x80, 0x4043],
    ];
    let alder_lake = cpu([0x20, INTEL[1], INTEL[2], INTEL[3]], &[(0x18, &subleaves)]);
    let expected = [
        "instruction 1 4K 256",
        "instruction 1 2M 32",
        "load 1 4K 64",
        "load 1 2M 32",
        "load 1 1G 8",
        "store 1 4K 16",
        "store 1 2M 16",
        "store 1 1G 16",
        "unified 2 4K 1024",
        "unified 2 4K 1024",
        "unified 2 2M 1024",
        "unified 2 1G 1024",
    ];
    assert_eq!(told(&alder_lake), expected);
}

#[test]
fn descriptors_of_leaf_2_are_read_where_there_is_no_leaf_0x18() {
    let skylake = intel_cpu([0x7603_6301, 0x00f0_b5ff, 0, 0x00c3_0000]);
    let expected = [
        "data 1 4K 64",
        "data 1 2M 32",
        "data 1 1G 4",
        "instruction 1 4K 64",
        "instruction 1 2M 8",
        "unified 2 4K 1536",
        "unified 2 2M 1536",
        "unified 2 1G 16",
    ];
    assert_eq!(told(&skylake), expected);
    let nehalem = intel_cpu([0x5503_5a01, 0x00f0_b2e4, 0, 0x09ca_212c]);
    let expected =
        ["data 1 4K 64", "data 1 2M 32", "instruction 1 4K 64", "instruction 1 2M 7", "unified 2 4K 512"];
    assert_eq!(told(&nehalem), expected);
    let core_2 = intel_cpu([0x05b0_b101, 0x0056_57f0, 0, 0x2cb4_3049]);
    let expected = [
        "data 1 4K 16",
        "data 1 2M 16",
        "instruction 1 4K 128",
        "instruction 1 2M 8",
        "data 2 4K 256",
        "data 2 2M 32",
    ];
    assert_eq!(told(&core_2), expected);
}

#[test]
fn a_register_of_leaf_2_with_its_highest_bit_set_holds_no_descriptors() {
    assert_eq!(intel_cpu([0x8003_0001, 0x8000_00c3, 0, 0]), []);
}

#[test]
fn an_empty_leaf_0x18_leaves_the_question_to_leaf_2() {
    let vendor = [0x18, INTEL[1], INTEL[2], INTEL[3]];
    let guest = cpu(vendor, &[(2, &[[0x7603_6301, 0x00f0_b5ff, 0, 0x00c3_0000]])]);
    assert_eq!(guest.len(), 8);
}

#[test]
fn rubbish_is_borne_and_an_unknown_vendor_has_none() {
    for vendor in [AMD, INTEL] {
        for seed in 0..2000u32 {
            let rubbish = |leaf: u32, subleaf: u32| match leaf {
                0 => [seed, vendor[1], vendor[2], vendor[3]],
                _ => {
                    [1, 2, 3, 4].map(|n| (leaf ^ subleaf ^ seed).wrapping_mul(0x9e37_79b9).rotate_left(8 * n))
                }
            };
            assert!(tlbs_of(rubbish).iter().all(|tlb| tlb.entries > 0 && tlb.level > 0));
            assert!(
                tlbs_of(|leaf, _| if leaf == 0 { [seed, vendor[1], vendor[2], vendor[3]] } else { [!0; 4] })
                    .len()
                    < 600
            );
        }
    }
    assert_eq!(tlbs_of(|_, _| [0x20; 4]), []);
}

#[test]
fn this_machine_can_be_asked() {
    assert!(tlbs().iter().all(|tlb| tlb.page_bytes.is_power_of_two() && tlb.entries > 0));
}

/// A processor of family 1Ah, whose leaf 6 counts its second level by 32: 4096 entries are 128.
fn family_1a(by_32: bool, guest: bool) -> Vec<Tlb> {
    cpu(
        AMD,
        &[
            (1, &[[0x00b0_0f00 | 0xf << 8, 0, u32::from(guest) << 31, 0]]),
            (0x8000_0000, &[[0x8000_0028, 0, 0, 0]]),
            (0x8000_0005, &[[0xff60_ff40, 0xff60_ff40, 0, 0]]),
            (0x8000_0006, &[[0x6080_6040, 0x6080_6040, 0, 0]]),
            (0x8000_0021, &[[u32::from(by_32) << 14, 0, 0, 0]]),
        ],
    )
}

#[test]
fn family_1a_counts_its_second_level_by_32() {
    let found = told(&family_1a(true, false));
    assert!(found.contains(&"data 2 4K 4096".into()), "{found:?}");
    assert!(found.contains(&"instruction 2 2M 2048".into()), "{found:?}");
    assert!(found.contains(&"data 1 4K 96".into()), "the first level is counted one by one: {found:?}");
    assert_eq!(family_1a(true, true), family_1a(true, false));
}

#[test]
fn a_second_level_is_not_known_where_a_hypervisor_hides_how_it_is_counted() {
    assert!(family_1a(false, true).iter().all(|tlb| tlb.level == 1));
    assert_eq!(told(&family_1a(false, false)).iter().filter(|tlb| tlb.contains(" 2 ")).count(), 4);
}
