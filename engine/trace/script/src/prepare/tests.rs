use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use crate::model::{Needed, What};
use crate::prepare::content::Content;
use crate::prepare::plan::plan;
use crate::prepare::{
    Preparation, Prepared, Refused, Shared, planted_link, prepare, prepare_sharing, room_of,
};

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static MANY: AtomicU32 = AtomicU32::new(0);
        let number = MANY.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("etude-prepare-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn need(path: &str, what: What) -> Needed {
    Needed { path: path.as_bytes().into(), what }
}

fn file(bytes: u64, allocated: Option<u64>) -> What {
    What::File { bytes, allocated, seen: allocated.is_some() }
}

fn link(target: &str) -> What {
    What::Link(target.as_bytes().into())
}

fn made(needed: &[Needed], at: &Path) -> Result<Prepared, Refused> {
    prepare(needed, at, Preparation::default())
}

#[test]
fn a_link_that_another_user_has_put_into_a_sticky_directory_is_not_followed() {
    let scratch = Scratch::new();
    let (kept, link) = (scratch.0.join("kept"), scratch.0.join("link"));
    fs::create_dir(&kept).unwrap();
    symlink("kept", &link).unwrap();
    assert_eq!(planted_link(&link), None, "one's own");
    if std::os::unix::fs::lchown(&link, Some(12345), None).is_err() {
        return; // only root can give it away
    }
    assert_eq!(planted_link(&link), None, "in a directory of one's own");
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o1777)).unwrap();
    for directory in [link.clone(), link.join("new")] {
        assert_eq!(planted_link(&directory), Some(&*link));
        assert_eq!(made(&[need("a", What::Directory)], &directory).unwrap_err().code, 5);
    }
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
}

#[test]
fn all_that_is_needed_is_there() {
    let scratch = Scratch::new();
    let root = scratch.0.join("new");
    let needed = [
        need("a/b/c", file(3_000_000, None)),
        need("a/l", link("/a/b/c")),
        need("a/up", link("../d/./e")),
        need("d", What::Directory),
        need("n", What::HardLink(b"a/b/c"[..].into())),
        need("s", file(1 << 30, Some(8192))),
    ];
    let done = made(&needed, &root).unwrap();
    let expected = Prepared { files: 2, directories: 3, links: 3, bytes: (1 << 30) + 3_000_000, at_least: 1 };
    assert_eq!(done, expected);
    let long = fs::read(root.join("a/b/c")).unwrap();
    assert_eq!((long.len(), fs::read(root.join("a/l")).unwrap()), (3_000_000, long.clone()));
    assert_eq!(fs::metadata(root.join("n")).unwrap().ino(), fs::metadata(root.join("a/b/c")).unwrap().ino());
    assert_eq!(fs::read_link(root.join("a/up")).unwrap(), Path::new("../d/./e"));
    let sparse = fs::metadata(root.join("s")).unwrap();
    assert!(sparse.len() == 1 << 30 && sparse.blocks() * 512 <= 65_536, "{} blocks", sparse.blocks());
    // Neither zeros nor the same again and again.
    let mut seen = std::collections::HashSet::new();
    assert!(long.chunks_exact(16).all(|part| seen.insert(part.to_vec())));
}

#[test]
fn nothing_outside_is_made_or_reached() {
    let scratch = Scratch::new();
    let outside = scratch.0.join("outside");
    fs::create_dir(&outside).unwrap();
    let root = scratch.0.join("root");
    let bad = [
        need("../outside/x", file(1, None)),
        need("a/../../outside/x", file(1, None)),
        need("/etc/x", file(1, None)),
        need("a//x", file(1, None)),
        need("", file(1, None)),
        need(".", file(1, None)),
        need("l", link("../outside/x")),
        need("a/l", link("../../outside/x")),
        need("l", link("/../outside")),
        need("l", link("a/../../outside")),
        need("n", What::HardLink(b"../outside/x"[..].into())),
        need("n", What::HardLink(b"/etc/passwd"[..].into())),
    ];
    for needed in bad {
        let refused = made(std::slice::from_ref(&needed), &root).unwrap_err();
        assert_eq!((refused.code, refused.line.lines().count()), (3, 1), "{needed:?}");
        assert!(!root.exists());
    }
    // Each of both looks as if it stayed inside.
    let chain = [need("a/b/up", link("../..")), need("x", link("a/b/up/../y"))];
    assert_eq!(made(&chain, &root).unwrap_err().code, 3);
    // A link that is needed is not gone through, wherever it leads.
    let through = [need("l", link("d")), need("d", What::Directory), need("l/x", file(1, None))];
    assert_eq!(made(&through, &root).unwrap_err().code, 3);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    let absolute = [need("a/b/passwd", link("/etc/passwd"))];
    made(&absolute, &root).unwrap();
    assert_eq!(fs::read_link(root.join("a/b/passwd")).unwrap(), Path::new("../../etc/passwd"));
}

#[test]
fn a_link_that_is_put_there_meanwhile_is_not_gone_through() {
    let scratch = Scratch::new();
    let (root, outside) = (scratch.0.join("root"), scratch.0.join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, root.join("d")).unwrap();
    let plan = plan(&[need("d", What::Directory), need("d/x", file(1, None))]).unwrap();
    let open = fs::File::open(&root).unwrap();
    let built = super::build::build(&plan, &open, None, &root, Preparation::default());
    assert_eq!(built.unwrap_err().code, 5);
    let mut one = plan;
    one.entries_by_path.remove(&b"d"[..]);
    assert!(super::build::build(&one, &open, None, &root, Preparation::default()).is_err());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(root.join("d").is_symlink(), "it is not ours to remove");
}

#[test]
fn a_directory_that_is_used_is_left_alone() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("mine"), "x").unwrap();
    let refused = made(&[need("a", What::Directory)], &scratch.0).unwrap_err();
    assert!(refused.code == 5 && refused.line.contains("not empty"), "{refused:?}");
    let refused = made(&[], &scratch.0.join("mine")).unwrap_err();
    assert!(refused.code == 5 && refused.line.contains("no directory"), "{refused:?}");
    let refused = made(&[], &scratch.0.join("no/such")).unwrap_err();
    assert_eq!(refused.code, 5);
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
}

#[test]
fn what_does_not_fit_is_not_begun() {
    let scratch = Scratch::new();
    // Asked of the check alone: without it, the disk would be full.
    let plan = plan(&[need("a", file(1 << 60, None))]).unwrap();
    let refused = super::room(&scratch.0, &fs::File::open(&scratch.0).unwrap(), &plan).unwrap_err();
    assert!(refused.code == 5 && refused.line.contains("free"), "{refused:?}");
}

#[test]
fn what_was_made_goes_again_if_not_all_can_be() {
    let scratch = Scratch::new();
    let root = scratch.0.join("root");
    // Longer than a file can be here, which only the file system knows.
    let needed =
        [need("a/b/c", file(5, None)), need("l", link("a")), need("z", file(i64::MAX as u64, Some(0)))];
    match made(&needed, &root) {
        Err(refused) => {
            assert_eq!((refused.code, refused.line.lines().count()), (5, 1));
            assert!(!root.exists());
        }
        // Some file systems hold it.
        Ok(_) => assert!(root.join("z").exists()),
    }
    fs::create_dir(scratch.0.join("shut")).unwrap();
    fs::set_permissions(scratch.0.join("shut"), fs::Permissions::from_mode(0o500)).unwrap();
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        assert_eq!(made(&[need("a", What::Directory)], &scratch.0.join("shut")).unwrap_err().code, 5);
    }
}

#[test]
fn a_place_has_names_of_the_files_that_it_shares_and_the_rest_of_its_own() {
    let scratch = Scratch::new();
    let needed = [
        need("d/e/own", file(5000, None)),
        need("d/e/read", file(100_000, None)),
        need("d/other", What::HardLink(b"d/e/read"[..].into())),
        need("l", link("d/e/read")),
    ];
    let files = [b"d/e/read".to_vec()].into();
    let places: Vec<PathBuf> = (0..3).map(|number| scratch.0.join(number.to_string())).collect();
    for (number, place) in places.iter().enumerate() {
        let shared = number.checked_sub(1).map(|before| Shared { place: &places[before], files: &files });
        let done = prepare_sharing(&needed, place, Preparation::default(), shared).unwrap();
        assert_eq!(done.bytes, if number == 0 { 105_000 } else { 5000 });
    }
    let inode = |place: &Path, name: &str| fs::metadata(place.join(name)).unwrap().ino();
    for name in ["d/e/read", "d/other", "l"] {
        assert_eq!(inode(&places[2], name), inode(&places[0], "d/e/read"), "{name}");
    }
    assert_ne!(inode(&places[2], "d/e/own"), inode(&places[0], "d/e/own"));
    assert_eq!(fs::read(places[2].join("d/e/own")).unwrap(), fs::read(places[0].join("d/e/own")).unwrap());
    // Two blocks of the own file, and two directories.
    assert_eq!(room_of(&needed, &files).unwrap(), (4 * 4096, 5));
    assert_eq!(room_of(&needed, &Default::default()).unwrap(), (4 * 4096 + 102_400, 6));
}

#[test]
fn a_file_that_has_all_the_names_that_it_can_have_is_copied() {
    let scratch = Scratch::new();
    let needed = [need("a", file(10, None))];
    let (files, first) = ([b"a".to_vec()].into(), scratch.0.join("first"));
    prepare(&needed, &first, Preparation::default()).unwrap();
    // Few file systems have so low a bound that a test can reach it.
    let full =
        (0..70_000).any(|number| fs::hard_link(first.join("a"), scratch.0.join(number.to_string())).is_err());
    let second = scratch.0.join("second");
    let shared = Some(Shared { place: &first, files: &files });
    prepare_sharing(&needed, &second, Preparation::default(), shared).unwrap();
    let same = fs::metadata(second.join("a")).unwrap().ino() == fs::metadata(first.join("a")).unwrap().ino();
    assert_eq!(same, !full);
}

#[test]
fn contradictions_are_refused() {
    let twice = [need("a", What::Directory), need("a", file(1, None))];
    let inside = [need("a", file(1, None)), need("a/b", file(1, None))];
    let name = [need("a", What::HardLink(b"b"[..].into()))];
    let long = [need(&"x".repeat(300), What::Directory)];
    for needed in [&twice[..], &inside, &name, &long] {
        assert!(plan(needed).is_err(), "{needed:?}");
    }
    let again = [need("a", What::Directory), need("./a", What::Directory)];
    assert_eq!(plan(&again).unwrap().entries, 1);
}

proptest! {
    #[test]
    fn whatever_is_asked_for_stays_inside(
        paths in proptest::collection::vec(("[a-c./]{0,8}", 0..4_u8, "[a-c./]{0,8}"), 0..6)
    ) {
        let scratch = Scratch::new();
        let root = scratch.0.join("r");
        let needed: Vec<Needed> = paths
            .iter()
            .map(|(path, kind, other)| need(path, match kind {
                0 => What::Directory,
                1 => file(3, None),
                2 => link(other),
                _ => What::HardLink(other.as_bytes().into()),
            }))
            .collect();
        let done = made(&needed, &root);
        let around: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        prop_assert_eq!(around.len(), usize::from(done.is_ok()));
        if done.is_ok() {
            let inside = fs::canonicalize(&root).unwrap();
            for path in plan(&needed).unwrap().entries_by_path.keys() {
                let at = root.join(std::str::from_utf8(path).unwrap());
                prop_assert!(at.symlink_metadata().is_ok(), "{:?}", at);
                if let Ok(leads) = fs::canonicalize(&at) {
                    prop_assert!(leads.starts_with(&inside), "{:?} leads to {:?}", at, leads);
                }
            }
        }
    }

    #[test]
    fn contents_differ_by_name(a in "[a-z]{1,9}", b in "[a-z]{1,9}") {
        let mut bytes = [[0; 64]; 2];
        Content::of(a.as_bytes()).fill(&mut bytes[0]);
        Content::of(b.as_bytes()).fill(&mut bytes[1]);
        prop_assert_eq!(a == b, bytes[0] == bytes[1]);
    }
}
