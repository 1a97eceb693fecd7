use super::*;

/// Numbers as a header of the C library's package has them: `#define __NR_read 0`.
fn header(path: &str) -> Option<Vec<(String, u16)>> {
    let text = std::fs::read_to_string(path).ok()?;
    let pair = |line: &str| {
        let rest = line.strip_prefix("#define __NR_").or(line.strip_prefix("#define __NR3264_"))?;
        let mut words = rest.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    Some(text.lines().filter_map(pair).collect())
}

#[test]
fn the_numbers_are_those_of_the_kernels_headers() {
    let x86_64 = header("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
    let generic = header("/usr/include/asm-generic/unistd.h");
    for (processor, numbers) in [(Processor::X86_64, x86_64), (Processor::Aarch64, generic)] {
        let Some(numbers) = numbers else { continue };
        for call in Call::all() {
            // The generic header calls it by the name that it has on 32 bits.
            let name = if call.name() == "newfstatat" { "fstatat" } else { call.name() };
            let wanted = if processor == Processor::X86_64 { call.name() } else { name };
            let found = numbers.iter().find(|(known, _)| known == wanted).map(|(_, number)| *number);
            assert_eq!(call.number(processor), found, "{call:?} on {}", processor.name());
        }
    }
}

#[test]
fn a_call_is_found_by_its_number_its_code_and_its_name() {
    for call in Call::all() {
        assert_eq!(Call::named(call.name()), Some(call));
        assert_eq!(Call::from_code(call.code()), Some(call));
        for processor in [Processor::X86_64, Processor::Aarch64] {
            if let Some(number) = call.number(processor) {
                assert_eq!(Call::from_number(processor, u64::from(number)), Some(call));
            }
        }
        assert!(call.row().arguments.len() <= 6);
    }
    assert_eq!(Call::from_code(0), None);
    assert_eq!(Call::from_code(Call::MANY + 1), None);
    for number in [15, 39, 56, 511, 512, u64::MAX] {
        assert_eq!(Call::from_number(Processor::X86_64, number), None, "{number}");
    }
}

/// Traces that were written before must be read: rows may only be added at the end.
#[test]
fn codes_stay_what_they_were() {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for byte in Call::all().take(127).flat_map(|call| call.name().bytes().chain([b' '])) {
        digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    assert_eq!(digest, 12947625960876041646, "the first 127 codes have changed");
    assert_eq!(
        [("open", 1), ("read", 7), ("mmap", 79)].map(|(name, _)| Call::named(name).unwrap().code()),
        [1, 7, 79]
    );
}

#[test]
fn registers_that_mean_nothing_are_not_kept() {
    let junk = 0xdead_beef_0000_0000;
    let normal = |name, mut arguments: [u64; 6]| {
        Call::named(name).unwrap().normalise(Processor::X86_64, &mut arguments);
        arguments
    };
    assert_eq!(normal("close", [junk | 3, 5, 6, 7, 8, 9]), [3, 0, 0, 0, 0, 0]);
    assert_eq!(normal("openat", [0xffff_ff9c, 16, 0, junk, 1, 1]), [-100_i64 as u64, 16, 0, 0, 0, 0]);
    assert_eq!(normal("openat", [3, 16, 0o101, junk | 0o644, 1, 1]), [3, 16, 0o101, 0o644, 0, 0]);
    assert_eq!(normal("read", [3, junk, junk, 1, 1, 1]), [3, junk, junk, 0, 0, 0]);
    assert_eq!(normal("fcntl", [3, 1, junk, 1, 1, 1]), [3, 1, 0, 0, 0, 0]);
    assert_eq!(normal("preadv2", [3, 16, 1, 5, 7, junk | 2]), [3, 16, 1, 5, 0, 2]);
}

#[test]
fn open_flags_of_aarch64_become_those_of_x86_64() {
    let canonical = |flags| canonical_open_flags(Processor::Aarch64, flags);
    assert_eq!(canonical(0o40000), 0o200000);
    assert_eq!(canonical(0o100000 | 0o200000 | 0o400000), 0o400000 | 0o40000 | 0o100000);
    assert_eq!(canonical(0o2001101), 0o2001101);
    assert_eq!(canonical_open_flags(Processor::X86_64, 0o40000), 0o40000);
}

#[test]
fn names_are_known_by_their_values_and_errors_by_their_numbers() {
    assert_eq!(value("O_CREAT"), Some(0o100));
    assert_eq!(value("AT_FDCWD"), Some(-100_i64 as u64));
    assert_eq!(value("O_NOTHING"), None);
    assert_eq!(errors::name(2), Some("ENOENT"));
    assert_eq!(errors::name(9999), None);
    assert_eq!(errors::number("ENOENT"), Some(2));
    for number in 1..200 {
        if let Some(name) = errors::name(number) {
            assert_eq!(errors::number(name), Some(number));
        }
    }
}
