//! Whatever the bytes are.

use std::collections::HashSet;

use etude_sites::{Cache, Elf, JUMP, Key, Layout, Scan, scan, scan_within};
use iced_x86::{Decoder, DecoderOptions, OpKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const BASE: u64 = 0x7f00_0000_0000;

/// Pieces of code that have to do with calls, and those that disturb.
const PIECES: [&[u8]; 26] = [
    &[0x0f, 0x05],
    &[0xb8, 1, 0, 0, 0],
    &[0x31, 0xc0],
    &[0x48, 0x3d, 1, 0xf0, 0xff, 0xff],
    &[0x85, 0xc0],
    &[0x78, 0x10],
    &[0x89, 0xc2],
    &[0xc3],
    &[0xcc],
    &[0x90],
    &[0xeb, 0xf0],
    &[0x74, 0xfc],
    &[0xe9, 0xf0, 0xff, 0xff, 0xff],
    &[0xe8, 0xfb, 0xff, 0xff, 0xff],
    &[0x0f, 0x84, 0xf0, 0xff, 0xff, 0xff],
    &[0x48, 0x8b, 0x44, 0x24, 8],
    &[0x48, 0x89, 0xc7],
    &[0x31, 0xff],
    &[0x55],
    &[0xff, 0xe0],
    &[0x48, 0x8d, 5, 0xf8, 0xff, 0xff, 0xff],
    &[0x00, 0x00],
    &[0x6a, 5, 0x58],
    &[0xb0, 60],
    &[0xc7, 5, 0, 0, 0, 0, 0x0f, 5, 0, 0],
    &[0x48],
];

fn code() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![4 => select(&PIECES[..]).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 1..4)];
    vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

/// What has to hold of sites, by a decoding of all of the code from its first byte.
fn check(code: &[u8], found: &Scan) {
    let all: Vec<_> = Decoder::with_ip(64, code, BASE, DecoderOptions::NONE).into_iter().collect();
    let branches = all.iter().filter(|each| each.op0_kind() == OpKind::NearBranch64);
    let targets: HashSet<u64> = branches.map(|each| each.near_branch64()).collect();
    let mut last = BASE;
    for site in &found.sites {
        assert!(site.at >= last && site.bytes.len() as u64 >= JUMP, "{site:x?}");
        last = site.end();
        let offset = (site.at - BASE) as usize;
        assert_eq!(code[offset..offset + site.bytes.len()], site.bytes);
        // It may have a prefix that means nothing.
        assert!(code[(site.call - BASE) as usize..].windows(2).take(15).any(|two| two == [0x0f, 0x05]));
        assert!(site.call >= site.at && site.call <= site.end());
        let until = site.end().max(site.call + 1);
        assert!(!(site.at + 1..until).any(|address| targets.contains(&address)), "{site:x?}");
        let moved: usize = [&site.before, &site.after].map(|moved| moved.bytes.len()).iter().sum();
        assert!(moved <= 64 && site.before.at(BASE).is_some() && site.after.at(BASE).is_some());
    }
    let calls: Vec<u64> = found.sites.iter().map(|site| site.call).collect();
    assert!(calls.is_sorted_by(|a, b| a < b) && found.left.is_sorted_by(|a, b| a.call < b.call));
    assert!(found.left.iter().all(|left| !calls.contains(&left.call)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_site_overlaps_another_or_is_entered(code in code()) {
        check(&code, &scan(&code, BASE));
    }

    #[test]
    fn any_bytes_are_looked_at(bytes in vec(any::<u8>(), 0..3000), calls in vec(0usize..3000, 0..20)) {
        let mut bytes = bytes;
        for at in calls {
            if let Some(two) = bytes.get_mut(at..at + 2) {
                two.copy_from_slice(&[0x0f, 0x05]);
            }
        }
        scan(&bytes, BASE);
    }

    #[test]
    fn any_parts_are_looked_at(code in code(), ends in vec((0u64..1000, 0u64..1000), 0..4)) {
        let parts: Vec<_> = ends.iter().map(|(from, to)| BASE + from..BASE + to).collect();
        scan_within(&code, BASE, &parts);
    }

    #[test]
    fn what_is_stored_is_loaded_for_another_base(code in code(), distance in any::<u32>()) {
        let directory = tempdir();
        let cache = Cache::at(directory.clone());
        let key = Key::of_build(b"12345678", 0x1000, code.len() as u64);
        cache.store(&key, BASE, &scan(&code, BASE)).unwrap();
        let base = 0x1000 * u64::from(distance);
        let loaded = cache.load(&key, base);
        std::fs::remove_dir_all(directory).unwrap();
        prop_assert_eq!(loaded, Some(scan(&code, base)));
    }

    #[test]
    fn any_image_is_read_or_refused(head in vec(any::<u8>(), 60), rest in vec(any::<u8>(), 0..2000)) {
        let image = [b"\x7fELF\x02\x01".as_slice(), &head, &rest].concat();
        for layout in [Layout::File, Layout::Memory] {
            let _ = Elf::read(layout, |at, into| {
                let from = usize::try_from(at).ok().and_then(|at| image.get(at..)?.get(..into.len()));
                into.copy_from_slice(from.ok_or(std::io::ErrorKind::UnexpectedEof)?);
                Ok(())
            });
        }
    }
}

fn tempdir() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("etude-sites-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}
