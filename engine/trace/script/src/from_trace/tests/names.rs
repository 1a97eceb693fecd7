//! Names: what is found, renamed, linked, and made before the first call.

use super::*;

#[test]
fn a_path_through_the_program_itself_leads_to_what_it_stands_for() {
    let create = 0o102;
    let trace = [
        event("mkdir", (1, 2), &[0, 0o755], 0, &[(0, b"d")]),
        event("open", (10, 11), &[0, create], 3, &[(0, b"a")]),
        event("open", (20, 21), &[0, 1], 4, &[(0, b"/proc/self/fd/3")]),
        event("chdir", (30, 31), &[0], 0, &[(0, b"d")]),
        event("open", (40, 41), &[0, create], 5, &[(0, b"/proc/self/cwd/y")]),
        event("open", (50, 51), &[0, 0o1001], 6, &[(0, b"/dev/fd/5")]),
        event("truncate", (60, 61), &[0, 5], 0, &[(0, b"/proc/thread-self/fd/3")]),
        event("open", (70, 71), &[0, 1], 7, &[(0, b"/proc/self/fd/99")]),
    ]
    .map(|event| (0, event));
    let (script, report) = made(&one(), &trace, &Options { keep_names: true, ..Options::default() });
    let lines = lines(&script);
    let expected = [
        "open(\"a\", O_WRONLY) = 4",
        "open(\"/d/y\", O_RDWR|O_CREAT, 00) = 5",
        "open(\"/d/y\", O_WRONLY|O_TRUNC) = 6",
        "truncate(\"/a\", 5) = 0",
    ];
    for line in expected {
        assert!(lines.contains(&line.to_owned()), "{line}: {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.contains("proc") || line.contains("dev")), "{lines:?}");
    assert_eq!(report.dropped.values().map(|each| each.calls).sum::<u64>(), 1, "what 99 is nobody knows");
}

#[test]
fn a_rename_between_two_names_of_one_file_leaves_both() {
    let trace = [
        event("open", (10, 11), &[0, 0o302, 0o644], 3, &[(0, b"a")]),
        event("link", (20, 21), &[0, 0], 0, &[(0, b"a"), (1, b"b")]),
        event("rename", (30, 31), &[0, 0], 0, &[(0, b"a"), (1, b"b")]),
        event("open", (40, 41), &[0, 0], 4, &[(0, b"a")]),
    ]
    .map(|event| (0, event));
    let (script, _) = made(&one(), &trace, &Options { keep_names: true, ..Options::default() });
    assert!(script.needed.iter().all(|needed| needed.what == What::Directory), "{:?}", script.needed);
}

#[test]
fn a_descriptor_and_a_working_directory_follow_a_rename() {
    let create = 0o102;
    let at_fdcwd = -100_i64 as u64;
    let trace = [
        event("mkdir", (1, 2), &[0, 0o755], 0, &[(0, b"d")]),
        event("open", (10, 11), &[0, 0], 3, &[(0, b"d")]),
        event("dup", (12, 13), &[3], 4, &[]),
        event("rename", (20, 21), &[0, 0], 0, &[(0, b"d"), (1, b"e")]),
        event("mkdir", (30, 31), &[0, 0o755], 0, &[(0, b"d")]),
        event("openat", (40, 41), &[3, 0, create], 5, &[(1, b"x")]),
        event("chdir", (50, 51), &[0], 0, &[(0, b"d")]),
        event("renameat2", (60, 61), &[at_fdcwd, 0, 4, 0, 0], 0, &[(1, b"../d"), (3, b"../f")]),
        event("open", (70, 71), &[0, create], 6, &[(0, b"y")]),
    ]
    .map(|event| (0, event));
    let (script, _) = made(&one(), &trace, &Options { keep_names: true, ..Options::default() });
    let lines = lines(&script);
    for path in ["e/x", "/f/y"] {
        assert!(lines.iter().any(|line| line.contains(&format!("\"{path}\""))), "{path}: {lines:?}");
    }
}

#[test]
fn the_recorders_list_gives_lengths_links_and_what_was_not_named() {
    let found = |path: &str, kind: &str, bytes, target: Option<&str>| Found {
        path: path.into(),
        kind: kind.into(),
        bytes,
        allocated: bytes.min(4096),
        target: target.map(Into::into),
        same_as: None,
    };
    let mut metas = one();
    metas.push(Meta::Files {
        files: vec![
            found("/lib", "link", 0, Some("usr/lib")),
            found("/usr/lib/c.so", "link", 0, Some("c.so.1")),
            found("/usr/lib/c.so.1", "file", 10_000, None),
            found("/usr/lib64/ld.so", "link", 0, Some("/lib/ld.so.1")),
            found("/usr/lib/ld.so.1", "file", 20, None),
            found("/w/d", "directory", 0, None),
            found("/w/d/unnamed", "file", 7, None),
            found("/w/d/out", "link", 0, Some("/etc/passwd")),
            found("/w/changed", "file", 500, None),
            found("/w/grown", "file", 500, None),
            found("/w/new", "file", 5, None),
        ],
    });
    let trace = [
        event("open", (10, 11), &[0, 0], 3, &[(0, b"/lib/c.so")]),
        event("read", (12, 13), &[3, 0, 832], 832, &[]),
        event("open", (20, 21), &[0, 0o200000], 4, &[(0, b"d")]),
        event("getdents64", (22, 23), &[4, 0, 100], 80, &[]),
        event("open", (30, 31), &[0, 2], 5, &[(0, b"changed")]),
        event("pwrite64", (32, 33), &[5, 0, 100, 50], 100, &[]),
        event("open", (40, 41), &[0, 2], 6, &[(0, b"grown")]),
        event("pwrite64", (42, 43), &[6, 0, 100, 400], 100, &[]),
        event("open", (50, 51), &[0, 0o101, 0o600], 7, &[(0, b"new")]),
        event("open", (60, 61), &[0, 0], 8, &[(0, b"/usr/lib64/ld.so")]),
    ]
    .map(|event| (0, event));
    let (script, report) = made(&metas, &trace, &Options::default());
    let needed: BTreeMap<String, What> = script
        .needed
        .iter()
        .map(|each| (String::from_utf8_lossy(&each.path).into_owned(), each.what.clone()))
        .collect();
    let file = |bytes, allocated, seen| What::File { bytes, allocated, seen };
    let expected = [
        ("changed", file(500, None, true)),
        ("d", What::Directory),
        ("d/out", What::Link(b"../etc/passwd"[..].into())),
        ("d/unnamed", file(7, None, true)),
        ("grown", file(0, None, false)),
        ("usr", What::Directory),
        ("usr/lib", What::Directory),
        ("usr/lib/c.so", What::Link(b"c.so.1"[..].into())),
        ("usr/lib/c.so.1", file(10_000, Some(4096), true)),
        ("usr/lib/ld.so.1", file(20, None, true)),
        ("usr/lib64", What::Directory),
        // Not through /lib, which is a link that no call needs.
        ("usr/lib64/ld.so", What::Link(b"../lib/ld.so.1"[..].into())),
    ];
    assert_eq!(needed, expected.map(|(path, what)| (path.to_owned(), what)).into());
    assert_eq!(report.unknown.len(), 2, "{:?}", report.unknown);
}

#[test]
fn hashed_names_leave_nothing_of_the_original() {
    let trace = [
        event("mkdir", (5, 6), &[0, 0o755], 0, &[(0, b"secretdir")]),
        event("open", (10, 11), &[0, 0o101, 0o644], 3, &[(0, b"secretdir/secret.txt")]),
        event("symlink", (20, 21), &[0, 0], 0, &[(0, b"/usr/secret"), (1, b"secretlink")]),
        event("fsetxattr", (30, 31), &[3, 0, 0, 5, 0], 0, &[(1, b"user.secret")]),
        event("stat", (40, 41), &[0, 0], 0, &[(0, b"/home/secret/f")]),
    ]
    .map(|event| (0, event));
    let options = Options { hash_names: Some([9; 16]), ..Options::default() };
    let (script, _) = made(&one(), &trace, &options);
    let mut text = Vec::new();
    crate::write(&script, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for word in ["secret", "usr", "tar", "home", "txt", "etude_tmp"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert!(text.contains("user.") || !text.contains("usr"));
}

#[test]
fn the_programs_own_file_is_prepared() {
    let process = |executable: &str| Meta::Process {
        process: 0,
        parent: None,
        pid: 7,
        executable: executable.into(),
        argv: vec!["node".into()],
        cwd: "/w".into(),
        at_ns: 0,
    };
    let events = [
        event("readlink", (100, 150), &[0, 0, 100], 13, &[(0, b"/proc/self/exe")]),
        event("stat", (200, 250), &[0, 0], 0, &[(0, b"/proc/self/exe")]),
    ];
    let (script, _) = made(&[process("/usr/bin/node")], &events.map(|event| (0, event)), &Options::default());
    let needed: BTreeMap<_, _> =
        script.needed.iter().map(|each| (String::from_utf8_lossy(&each.path), &each.what)).collect();
    assert_eq!(needed["proc/self/exe"], &What::Link(b"../../usr/bin/node"[..].into()));
    assert!(matches!(needed["usr/bin/node"], What::File { .. }));
}

#[test]
fn relative_paths_begin_where_the_process_is() {
    let trace = [
        event("openat", (10, 11), &[CWD, 0, 0o200000], 3, &[(1, b"/usr/lib")]),
        event("openat", (20, 21), &[3, 0, 0], 4, &[(1, b"gcc/../libm.so")]),
        event("fchdir", (30, 31), &[3], 0, &[]),
        event("stat", (40, 41), &[0, 0], 0, &[(0, b"x")]),
        event("chdir", (50, 51), &[0], 0, &[(0, b"../include")]),
        event("openat", (60, 61), &[CWD, 0, 0], -2, &[(1, b"a.h")]),
        event("newfstatat", (70, 71), &[4, 99, 0, 0x1000], 0, &[]),
        event("stat", (80, 81), &[0, 0], 0, &[(0, b"/home/u/data/f")]),
    ]
    .map(|event| (0, event));
    let (script, _) = made(&one(), &trace, &Options::default());
    let calls: Vec<String> = lines(&script).into_iter().filter(|line| line.contains('=')).collect();
    let expected = [
        "openat(AT_FDCWD, \"usr/lib\", O_RDONLY|O_DIRECTORY) = 3",
        "openat(AT_FDCWD, \"usr/lib/libm.so\", O_RDONLY) = 4",
        "fchdir(3) = 0",
        "stat(\"/usr/lib/x\") = 0",
        "chdir(\"/usr/include\") = 0",
        "openat(AT_FDCWD, \"/usr/include/a.h\", O_RDONLY) = -1 ENOENT",
    ];
    assert_eq!(calls[..6], expected);
    assert!(calls[6].starts_with("newfstatat(4, ") && calls[7] == "stat(\"/f\") = 0", "{calls:?}");
    let needed: Vec<_> =
        script.needed.iter().map(|each| String::from_utf8_lossy(&each.path).into_owned()).collect();
    assert_eq!(needed, ["f", "usr", "usr/include", "usr/lib", "usr/lib/libm.so", "usr/lib/x"]);
}
