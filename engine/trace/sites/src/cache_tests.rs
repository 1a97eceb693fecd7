use std::os::unix::fs::PermissionsExt;

use super::*;

const BASE: u64 = 0x7f12_3456_7000;

/// A directory that is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("etude-sites-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One of each: moved before, moved behind with a distance, returning, left, left with a site.
fn example(base: u64) -> Scan {
    let code = [
        [0x90; 32].as_slice(),
        &[0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x85, 0xc0, 0xc3],
        &[0x0f, 0x05, 0x85, 0xc0, 0x78, 0x10, 0xc3],
        &[0xe8, 0, 1, 0, 0, 0x0f, 0x05, 0xc3, 0xcc, 0xcc],
        &[0xb8, 60, 0, 0, 0, 0x0f, 0x05, 0xc3],
        &[0xb8, 7, 1, 0, 0, 0x0f, 0x05, 0x74, 0x02, 0x90, 0xc3],
        &[0xcc; 32],
    ];
    let found = crate::scan(&code.concat(), base);
    assert_eq!((found.sites.len(), found.left.len()), (3, 2), "{found:x?}");
    assert!(found.left[1].site.is_some() && found.sites[2].back.is_none());
    found
}

#[test]
fn what_was_stored_is_loaded() {
    let directory = Directory::new("stored");
    let cache = Cache::at(directory.0.join("deep/er"));
    let key = Key::of_build(&[0xab; 20], 0x1000, 0x2000);
    assert_eq!(cache.load(&key, BASE), None, "there is no directory");
    cache.store(&key, BASE, &example(BASE)).unwrap();
    assert_eq!(cache.load(&key, BASE), Some(example(BASE)));
    assert_eq!(cache.load(&key, 0x1000), Some(example(0x1000)), "elsewhere");
    let others = [(0xab, 0x1000, 0x2001), (0xab, 0x1001, 0x2000), (0xac, 0x1000, 0x2000)];
    for (byte, offset, length) in others {
        assert_eq!(cache.load(&Key::of_build(&[byte; 20], offset, length), BASE), None);
    }
    let names: Vec<_> =
        fs::read_dir(&cache.directory).unwrap().map(|each| each.unwrap().file_name()).collect();
    assert_eq!(names, [key.0.as_str()], "no partial file stays");
}

#[test]
fn a_damaged_file_is_not_there() {
    let key = Key::of_build(&[1; 20], 0, 1);
    let bytes = encode(&key, BASE, &example(BASE));
    assert!(decode(&bytes, &key, BASE).is_some());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert_eq!(decode(&damaged, &key, BASE), None, "byte {at}");
        assert_eq!(decode(&bytes[..at], &key, BASE), None, "first {at} bytes");
    }
    assert_eq!(decode(&bytes, &Key::of_build(&[2; 20], 0, 1), BASE), None, "renamed");
    assert_eq!(decode(&[bytes, vec![0]].concat(), &key, BASE), None);
}

#[test]
fn bytes_with_a_good_checksum_are_not_trusted_either() {
    let key = Key::of_build(&[1; 20], 0, 1);
    let bytes = encode(&key, BASE, &example(BASE));
    for at in 16..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            let sum = crc32fast::hash(&damaged[16..]);
            damaged[12..16].copy_from_slice(&sum.to_le_bytes());
            if let Some(scan) = decode(&damaged, &key, BASE) {
                let mut moved = scan.sites.iter().flat_map(|site| [&site.before, &site.after]);
                assert!(
                    moved
                        .all(|moved| moved.relative.is_empty()
                            || moved.at(BASE).is_none_or(|it| !it.is_empty()))
                );
                assert!(scan.sites.iter().all(|site| site.bytes.len() as u64 >= crate::JUMP));
            }
        }
    }
}

#[test]
fn a_file_that_others_may_write_or_that_leads_elsewhere_is_not_there() {
    let directory = Directory::new("others");
    let cache = Cache::at(directory.0.clone());
    let key = Key::of_build(&[3; 20], 0, 1);
    cache.store(&key, BASE, &example(BASE)).unwrap();
    let path = cache.path(&key);
    for (mode, is_there) in [(0o620, false), (0o602, false), (0o644, true)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(cache.load(&key, BASE).is_some(), is_there, "{mode:o}");
    }
    fs::rename(&path, directory.0.join("other")).unwrap();
    std::os::unix::fs::symlink("other", &path).unwrap();
    assert_eq!(cache.load(&key, BASE), None);
    fs::remove_file(&path).unwrap();
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a text that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert_eq!(cache.load(&key, BASE), None, "nothing is waited for");
}

#[test]
fn a_file_without_a_build_id_is_known_until_it_is_written_to() {
    let directory = Directory::new("written");
    fs::create_dir_all(&directory.0).unwrap();
    let path = directory.0.join("program");
    let key = || Key::of_file(&fs::metadata(&path).unwrap(), 0, 10);
    fs::write(&path, "1234567890").unwrap();
    let first = key();
    assert_eq!(key(), first);
    fs::write(&path, "12345678901").unwrap();
    assert_ne!(key(), first);
    assert_ne!(Key::of_file(&fs::metadata(&path).unwrap(), 1, 10), key());
    assert!(!first.0.contains('/'));
}
