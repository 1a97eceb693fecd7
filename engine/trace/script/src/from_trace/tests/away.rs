//! Paths that no script can have: of directories that are gone, and longer than any can be; and files without a name.

use super::*;

fn one(events: &[Event]) -> (Vec<String>, Report) {
    let events: Vec<(u32, Event)> = events.iter().map(|event| (0, event.clone())).collect();
    let (script, report) = made(&[process(0, None, 0), thread(0, 0, 100, 0)], &events, &Options::default());
    assert!(script.needed.is_empty(), "{:?}", script.needed);
    (
        lines(&script).into_iter().filter(|line| line.contains('(') && !line.contains("compute")).collect(),
        report,
    )
}

fn dropped(report: &Report) -> Vec<(&'static str, &'static str, u64)> {
    report.dropped.iter().map(|((name, why), of)| (*name, *why, of.calls)).collect()
}

#[test]
fn what_is_done_in_a_directory_that_is_gone_is_left_out() {
    let (found, report) = one(&[
        event("mkdir", (10, 11), &[0, 0o777], 0, &[(0, b"g")]),
        event("chdir", (20, 21), &[0], 0, &[(0, b"g")]),
        event("rmdir", (30, 31), &[0], 0, &[(0, b"../g")]),
        event("openat", (40, 41), &[CWD, 0, 0o200000, 0], 3, &[(1, b".")]),
        event("getdents64", (50, 51), &[3, 0, 32768], -2, &[]),
        event("close", (60, 61), &[3], 0, &[]),
        event("getcwd", (70, 71), &[0, 100], -2, &[]),
        event("chdir", (80, 81), &[0], 0, &[(0, b"..")]),
        event("mkdir", (90, 91), &[0, 0o777], 0, &[(0, b"g")]),
    ]);
    let expected = [
        "mkdir(\"etude_tmp1\", 0777) = 0",
        "chdir(\"etude_tmp1\") = 0",
        "rmdir(\"/etude_tmp1\") = 0",
        "chdir(\"/\") = 0",
        "mkdir(\"etude_tmp1\", 0777) = 0",
    ];
    assert_eq!(found, expected);
    let gone = "path in a directory that was removed";
    assert_eq!(
        dropped(&report),
        [
            ("close", gone, 1),
            ("getcwd", "path of a directory that was removed", 1),
            ("getdents64", gone, 1),
            ("openat", gone, 1)
        ]
    );
}

#[test]
fn a_path_that_is_too_long_is_left_out_and_what_follows_is_where_it_was() {
    let long = |bytes: usize| [b"a/".repeat(bytes / 2), b"x".to_vec()].concat();
    let name = [b'n'; 250];
    let mut events = vec![event("openat", (10, 11), &[CWD, 0, 0, 0], -36, &[(1, &long(5000))])];
    for at in 0..17 {
        events.push(event("mkdir", (100 + at * 10, 101 + at * 10), &[0, 0o777], 0, &[(0, &name)]));
        events.push(event("chdir", (105 + at * 10, 106 + at * 10), &[0], 0, &[(0, &name)]));
    }
    events.push(event("chdir", (900, 901), &[0], 0, &[(0, &b"../".repeat(17))]));
    events.push(event("mkdir", (910, 911), &[0, 0o777], 0, &[(0, b"last")]));
    let (found, report) = one(&events);
    assert_eq!(found.len(), 34);
    assert_eq!(found[32..], ["chdir(\"/\") = 0", "mkdir(\"etude_tmp2\", 0777) = 0"]);
    let long = "path of more than 4095 bytes";
    assert_eq!(dropped(&report), [("chdir", long, 1), ("mkdir", long, 1), ("openat", long, 1)]);
}

#[test]
fn a_file_without_a_name_gets_it_by_its_descriptor_and_was_not_there_before() {
    const TMPFILE: u64 = 0o20200002;
    let (found, report) = one(&[
        event("openat", (10, 11), &[CWD, 0, TMPFILE, 0o644], 3, &[(1, b".")]),
        event("write", (20, 21), &[3, 0, 5], 5, &[]),
        event("linkat", (30, 31), &[CWD, 0, CWD, 0, 0x400], 0, &[(1, b"/proc/self/fd/3"), (3, b"one")]),
        event("linkat", (40, 41), &[3, 0, CWD, 0, 0x1000], 0, &[(1, b""), (3, b"two")]),
        event("linkat", (50, 51), &[3, 0, CWD, 0, 0x1000], -17, &[(1, b""), (3, b"two")]),
        event("rename", (60, 61), &[0, 0], 0, &[(0, b"one"), (1, b"three")]),
        event("stat", (70, 71), &[0, 0], 0, &[(0, b"three")]),
    ]);
    let expected = [
        "openat(AT_FDCWD, \".\", O_RDWR|O_TMPFILE, 0644) = 3",
        "write(3, 5) = 5",
        "linkat(3, NULL, AT_FDCWD, \"etude_tmp1\", AT_EMPTY_PATH) = 0",
        "linkat(3, NULL, AT_FDCWD, \"etude_tmp2\", AT_EMPTY_PATH) = 0",
        "linkat(3, NULL, AT_FDCWD, \"etude_tmp2\", AT_EMPTY_PATH) = -1 EEXIST",
        "rename(\"etude_tmp1\", \"etude_tmp3\") = 0",
        "stat(\"etude_tmp3\") = 0",
    ];
    assert_eq!(found, expected);
    assert!(dropped(&report).is_empty(), "{report:?}");
}
