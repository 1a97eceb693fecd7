//! Transfers of more than a replay moves at once, and of more than they were asked for.

use super::*;

#[test]
fn a_transfer_that_no_replay_makes_becomes_two_or_asks_for_less() {
    const GIB: u64 = 1 << 30;
    const FLAGS: u64 = 0o102; // O_RDWR|O_CREAT
    let (script, report) = made(
        &[process(0, None, 0), thread(0, 0, 100, 0)],
        &[
            (0, event("openat", (10, 11), &[CWD, 0, FLAGS, 0o644], 3, &[(1, b"f")])),
            (0, event("read", (20, 21), &[3, 0, 2 * GIB], 7, &[])),
            (0, event("write", (30, 31), &[3, 0, 2 * GIB], (2 * GIB - 4096) as i64, &[])),
            (0, event("pread64", (40, 41), &[3, 0, 2 * GIB, 4096], (GIB + 1) as i64, &[])),
            (0, event("writev", (50, 51), &[3, 0, 2], (GIB + 1) as i64, &[])),
            (0, event("read", (60, 61), &[3, 0, 10], 11, &[])),
        ],
        &Options::default(),
    );
    let calls: Vec<_> = lines(&script).into_iter().filter(|line| line.contains("(3, ")).collect();
    let expected = [
        "read(3, 1073741824) = 7",
        "write(3, 1073741824) = 1073741824",
        "write(3, 1073741824) = 1073737728",
        "pread64(3, 1073741824, 4096) = 1073741824",
        "pread64(3, 1073741824, 1073745920) = 1",
    ];
    assert_eq!(calls, expected);
    let dropped: Vec<_> = report.dropped.keys().copied().collect();
    assert_eq!(
        dropped,
        [("read", "result that no call can have"), ("writev", "transfer of more than 1 GiB")]
    );
    crate::check::playable(&script).unwrap();
}
