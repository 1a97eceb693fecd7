use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::check;

/// The calls of a script: thread, name, offset and bytes, and when each began by the gaps before.
fn calls(script: &Script) -> Vec<(u32, &'static str, u64, u64, u64)> {
    check(script).unwrap();
    let spans = crate::times::times(script);
    let steps = script.steps.iter().zip(spans);
    steps
        .filter_map(|(step, span)| match &step.action {
            Action::Call(called) if called.call.name() != "openat" => {
                let [_, _, size, offset, ..] = called.arguments;
                let bytes = if called.call.name() == "pwritev2" { called.result as u64 } else { size };
                Some((step.thread, called.call.name(), offset, bytes, span.begin_ns))
            }
            _ => None,
        })
        .collect()
}

fn needs(script: &Script) -> Vec<(String, u64)> {
    let size = |each: &Needed| match each.what {
        What::File { bytes, .. } => bytes,
        _ => panic!("{each:?}"),
    };
    script.needed.iter().map(|each| (String::from_utf8_lossy(&each.path).into_owned(), size(each))).collect()
}

#[test]
fn an_iolog_is_what_fio_wrote() {
    let text = "fio version 3 iolog\n31 dir/dat add\n258 dir/dat open\n263 dir/dat read 0 16384\n6867 dir/dat write 32768 4096\n\
                6900 dir/dat datasync 0 0\n6900 dir/dat trim 0 4096\n23245 dir/dat close\n";
    let found = import(text.as_bytes()).unwrap();
    let expected = [
        (0, "pread64", 0, 16384, 5_000),
        (0, "pwrite64", 32768, 4096, 6_609_000),
        (0, "fdatasync", 0, 0, 6_642_000),
        (0, "close", 0, 0, 22_987_000),
    ];
    assert_eq!((calls(&found.script), found.left_out), (expected.to_vec(), 1));
    assert_eq!(needs(&found.script), [("dir/dat".into(), 16384)]);
}

#[test]
fn waits_of_version_2_add_up() {
    let text = "fio version 2 iolog\n/d add\n/d open\n/d read 0 10\n/d wait 500 0\n/d wait 250 0\n/d sync\n/d close\n";
    let found = import(text.as_bytes()).unwrap();
    let expected = [(0, "pread64", 0, 10, 0), (0, "fsync", 0, 0, 750_000), (0, "close", 0, 0, 750_000)];
    assert_eq!(calls(&found.script), expected);
}

#[test]
fn ranks_of_darshan_are_threads() {
    let text = "# darshan log version: 3.41\n# DXT, file_id: 1, file_name: /tmp/test/testFile\n# DXT, rank: 0, hostname: h\n\
                # Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)\n\
                \x20X_POSIX       0  write        0               0       262144      0.0029      0.0032\n\
                \x20X_MPIIO       0  write        0               0       262144      0.0028      0.0033\n\
                # DXT, rank: 1, hostname: h\n X_POSIX       1   read        0          262144         4096      0.0030      0.0031  [0]\n\
                # DXT, file_id: 2, file_name: <STDOUT>\n X_STDIO       0  write        0               0            9      0.0040      0.0041\n";
    let found = import(text.as_bytes()).unwrap();
    let expected = [(0, "pwrite64", 0, 262_144, 0), (1, "pread64", 262_144, 4096, 100_000)];
    assert_eq!((calls(&found.script), found.left_out), (expected.to_vec(), 2));
    assert_eq!(needs(&found.script), [("tmp/test/testFile".into(), 266_240)]);
}

#[test]
fn of_blkparse_what_processes_queued() {
    let text = "  8,0    3        1     0.000000000   697  Q   W 8192 + 8 [kworker/0:1]\n\
                \x20 8,0    3        2     0.000001829   697  G   W 8192 + 8 [kworker/0:1]\n\
                \x20 8,0    1        3     0.000100000   700  Q  RA 4096000 + 16 [cat]\n\
                \x20 8,0    1        4     0.000200000   700  Q FWS [cat]\n\
                \x20 8,0    1        5     0.000300000   700  Q  DS 0 + 4096 [fstrim]\n\
                \x20 8,0    1        6     0.000400000     0  C   W 8192 + 8 [0]\nCPU0 (8,0):\n Reads Queued: 1, 8KiB\n";
    let found = import(text.as_bytes()).unwrap();
    let expected =
        [(0, "pwrite64", 0, 4096, 0), (1, "pread64", 1 << 20, 8192, 100_000), (1, "fsync", 0, 0, 200_000)];
    assert_eq!((calls(&found.script), found.left_out), (expected.to_vec(), 1));
    assert_eq!(needs(&found.script), [("device-8-0".into(), (1 << 20) + 8192)]);
}

#[test]
fn a_flush_of_blkparse_is_one_whatever_it_carries_or_says_of_its_place() {
    let lines = ["F", "FF", "FWS 0 + 0", "FWS 18446744073709551615 + 0", "FWS 2048 + 00", "FWS"];
    let empty = lines.map(|line| format!("8,0 1 1 0.0001 7 Q {line} [a]\n")).concat();
    let text = format!("{empty}8,0 1 1 0.0003 7 Q FWFS 8 + 8 [a]\n8,0 1 1 0.0004 7 Q W 8 + 0 [a]\n");
    let found = import(text.as_bytes()).unwrap();
    let fsync = |at_us: u64| (0, "fsync", 0, 0, at_us * 1000);
    let mut expected = vec![fsync(0); 6];
    expected.extend([fsync(200), (0, "pwritev2", 4096, 4096, 200_000)]);
    assert_eq!((calls(&found.script), found.left_out), (expected, 1));
}

#[test]
fn what_is_wrong_is_one_line_with_its_number() {
    for (text, line) in [
        ("", None),
        ("fio version 1 iolog\n", None),
        ("fio version 3 iolog\n1 a read 0\n", Some("2: ")),
        ("fio version 3 iolog\n1 a add\nx a read 0 1\n", Some("3: ")),
        ("fio version 3 iolog\n1 .. read 0 1\n", Some("2: ")),
        ("fio version 3 iolog\n1 a read 0 1073741825\n", Some("2: ")),
        ("fio version 3 iolog\n1 a read 9223372036854775807 1\n", Some("2: ")),
        ("X_POSIX 0 read 0 0 1 0.1 0.2\n", Some("1: ")),
        ("# DXT, file_id: 1, file_name: /a\nX_POSIX 0 reads 0 0 1 0.1 0.2\n", Some("2: ")),
        ("8,0 1 1 0.0 5 Q R 5 + 200000 [a]\n", Some("1: ")),
        ("8,0 1 1 soon 5 Q R 5 + 2 [a]\n", Some("1: ")),
    ] {
        let what = import(text.as_bytes()).unwrap_err();
        assert_eq!(what.lines().count(), 1);
        assert!(line.is_none_or(|line| what.starts_with(line)), "{text}: {what}");
    }
}

/// Gap before it (µs), lane, whether it writes, offset and bytes, in sectors.
fn drawn() -> impl Strategy<Value = Vec<(u64, u64, bool, u64, u64)>> {
    prop::collection::vec((0..5_000_u64, 0..4_u64, any::<bool>(), 0..4096_u64, 1..64_u64), 1..40)
}

proptest! {
    #[test]
    fn each_request_is_a_call_at_its_time(requests in drawn()) {
        let mut iolog = "fio version 3 iolog\n0 f add\n0 f open\n".to_owned();
        let mut dxt = "# DXT, file_id: 1, file_name: /f\n".to_owned();
        let (mut block, mut at_us, mut expected) = (String::new(), 0, Vec::new());
        for (gap_us, lane, writes, sector, sectors) in &requests {
            at_us += gap_us;
            let (deed, letter, call) = if *writes { ("write", "W", "pwrite64") } else { ("read", "R", "pread64") };
            let (offset, bytes) = (sector * 512, sectors * 512);
            let at_s = format!("{}.{:06}", at_us / 1_000_000, at_us % 1_000_000);
            writeln!(iolog, "{at_us} f {deed} {offset} {bytes}").unwrap();
            writeln!(dxt, " X_POSIX {lane} {deed} 0 {offset} {bytes} {at_s} {at_s}").unwrap();
            writeln!(block, "8,1 0 1 {at_s} {lane} Q {letter} {sector} + {sectors} [p]").unwrap();
            expected.push((call, bytes, (at_us - requests[0].0) * 1000));
        }
        for (text, first_ns) in [(&iolog, requests[0].0 * 1000), (&dxt, 0), (&block, 0)] {
            let found = import(text.as_bytes()).unwrap();
            let made: Vec<_> = calls(&found.script).into_iter().map(|(_, call, _, bytes, at_ns)| (call, bytes, at_ns - first_ns)).collect();
            prop_assert_eq!((&made, found.left_out), (&expected, 0));
        }
        // What fio is given is what it has written.
        let mut log = Vec::new();
        crate::iolog(&import(iolog.as_bytes()).unwrap().script, &mut log).unwrap();
        let again = import(&log).unwrap().script;
        let transfers = |script: &Script| calls(script).into_iter().filter(|call| call.1 != "close").map(|call| (call.1, call.2, call.3)).collect::<Vec<_>>();
        prop_assert_eq!(transfers(&again), transfers(&import(iolog.as_bytes()).unwrap().script));
    }

    #[test]
    fn any_text_is_a_sound_script_or_one_line(
        head in prop::sample::select(vec!["fio version 2 iolog\n", "fio version 3 iolog\n", "# DXT, file_name: /a\nX_POSIX", "8,0 ", ""]),
        text in "([0-9]{1,20}|[a-zA-Z/.,+#<>_: -]{0,9}|\n| read | write | Q W | X_POSIX ){0,60}",
    ) {
        match import(format!("{head}{text}").as_bytes()) {
            Ok(found) => check(&found.script).unwrap(),
            Err(what) => prop_assert_eq!(what.lines().count(), 1),
        }
    }
}

#[test]
fn a_line_as_long_as_its_file_takes_little_memory() {
    assert_eq!(words(&b"a ".repeat(1 << 20)).capacity(), MOST_WORDS);
    assert_eq!(within(&b"a/".repeat(1 << 20)), None);
}
