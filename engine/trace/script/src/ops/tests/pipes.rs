//! Who reads a pipe finds what is written to it, or the pipe is left out.

use super::*;

const SCRIPT: &str = "etude script 1
file \"a\" 9000
0: pipe2([3, 4], 0) = 0 <0.000001000>
0: fork(1)
0: close(3) = 0 <0.000001000>
1: close(4) = 0 <0.000001000>
0: openat(AT_FDCWD, \"a\", O_RDONLY) = 5 <0.000001000>
0: read(5, 4096) = 4096 <0.000001000>
0: write(4, 1000) = 1000 <0.000001000>
1: read(3, 65536) = 600 <0.000001000>
1: read(3, 65536) = 400 <0.000001000>
1: openat(AT_FDCWD, \"a\", O_RDONLY) = 6 <0.000001000>
1: dup2(3, 6) = 6 <0.000001000>
1: dup2(6, 0) = 0 <0.000001000>
1: openat(AT_FDCWD, \"a\", O_RDONLY) = 7 <0.000001000>
1: dup2(7, 0) = 0 <0.000001000>
1: read(0, 10) = 10 <0.000001000>
";

fn script() -> Script {
    parse("s", SCRIPT.as_bytes()).unwrap().script
}

fn lines(script: &Script) -> Vec<String> {
    let text = shown(script);
    let calls = text.lines().filter(|line| line.contains(") = "));
    calls.map(|line| line.split(" <").next().unwrap().to_owned()).collect()
}

fn named(names: &[&str]) -> Vec<Call> {
    names.iter().map(|name| Call::named(name).unwrap()).collect()
}

#[test]
fn a_pipe_of_which_the_writes_are_left_out_is_left_out() {
    let made = filter(&script(), &named(&["read"]), &[]).unwrap();
    let expected = [
        "0: openat(AT_FDCWD, \"a\", O_RDONLY) = 5",
        "0: read(5, 4096) = 4096",
        "1: openat(AT_FDCWD, \"a\", O_RDONLY) = 6",
        // A copy of the pipe stood there then.
        "1: close(6) = 0",
        "1: openat(AT_FDCWD, \"a\", O_RDONLY) = 7",
        "1: dup2(7, 0) = 0",
        "1: read(0, 10) = 10",
    ];
    assert_eq!(lines(&made), expected);
}

#[test]
fn a_pipe_of_which_all_is_kept_or_fits_into_it_stays() {
    let made = filter(&script(), &named(&["read", "write"]), &[]).unwrap();
    assert!(lines(&made).contains(&"1: read(3, 65536) = 600".into()));
    let written = filter(&script(), &named(&["write"]), &[]).unwrap();
    assert!(lines(&written).contains(&"0: write(4, 1000) = 1000".into()));
    let text = SCRIPT.replace("write(4, 1000) = 1000", "write(4, 70000) = 70000");
    let large = parse("s", text.as_bytes()).unwrap().script;
    assert!(
        !lines(&filter(&large, &named(&["write"]), &[]).unwrap()).iter().any(|line| line.contains("write"))
    );
}

#[test]
fn a_cut_through_a_pipe_leaves_it_out_where_its_reads_would_wait() {
    let cut = |from: u64, to: u64| lines(&cut(&script(), from, to).unwrap()).join("\n");
    assert!(cut(0, 6_000).contains("write(4, 1000)"), "{}", cut(0, 6_000));
    // It was made before: its copies are nothing, and close what they stood for.
    let late = cut(4_500, 30_000);
    assert!(late.contains("close(6) = 0") && !late.contains("read(3"), "{late}");
}

#[test]
fn what_goes_through_a_pipe_is_not_scaled() {
    let sizes = Sizes { factor: 0.3, align: 512 };
    let made = lines(&scale_sizes(&script(), sizes).unwrap());
    for line in ["0: write(4, 1000) = 1000", "1: read(3, 65536) = 600", "1: read(3, 65536) = 400"] {
        assert!(made.contains(&line.to_owned()), "{made:?}");
    }
    assert!(made.contains(&"0: read(5, 1024) = 1024".into()), "{made:?}");
}

const SOCKETS: &str = "etude script 1
0: socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, [3, 4]) = 0 <0.000001000>
0: fork(1)
0: close(4) = 0 <0.000001000>
1: close(3) = 0 <0.000001000>
0: sendto(3, 1000, 0, NULL, 0) = 1000 <0.000001000>
1: recvfrom(4, 65536, 0, NULL) = 1000 <0.000001000>
0: shutdown(3, SHUT_WR) = 0 <0.000001000>
1: read(4, 10) = 0 <0.000001000>
1: sendmsg(4, 0) = 70 <0.000001000>
0: recvmsg(3, 0) = 70 <0.000001000>
";

#[test]
fn a_pair_of_sockets_stays_with_both_directions_or_goes() {
    let all = parse("s", SOCKETS.as_bytes()).unwrap().script;
    let both = named(&["sendto", "recvfrom", "sendmsg", "recvmsg", "read"]);
    // Who shuts it ends what another waits for.
    assert_eq!(lines(&filter(&all, &both, &[]).unwrap()).len(), 9);
    for wanted in [&["recvfrom"][..], &["sendto", "recvfrom", "recvmsg"]] {
        assert_eq!(lines(&filter(&all, &named(wanted), &[]).unwrap()), Vec::<String>::new());
    }
    let made = lines(&scale_sizes(&all, Sizes { factor: 0.3, align: 512 }).unwrap());
    assert!(made.contains(&"0: sendto(3, 1000, 0, NULL, 0) = 1000".into()), "{made:?}");
}

const CONNECTED: &str = "etude script 1
0: fork(1)
1: socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 7 <0.000001000>
1: connect(7, \"1\", 0) = 0 <0.000001000>
0: accept4(-1, \"1\", SOCK_CLOEXEC) = 4 <0.000003000>
1: sendto(7, 1000, 0, NULL, 0) = 1000 <0.000001000>
0: read(4, 65536) = 1000 <0.000001000>
0: write(4, 70) = 70 <0.000001000>
1: read(7, 100) = 70 <0.000001000>
1: close(7) = 0 <0.000001000>
0: close(4) = 0 <0.000001000>
";

#[test]
fn a_connection_stays_with_both_ends_and_directions_or_goes() {
    let all = parse("s", CONNECTED.as_bytes()).unwrap().script;
    assert_eq!(lines(&filter(&all, &named(&["sendto", "read", "write"]), &[]).unwrap()).len(), 9);
    // Nobody waits for what the client writes; both ends are there.
    let written = lines(&filter(&all, &named(&["sendto"]), &[]).unwrap());
    assert!(written.contains(&"0: accept4(-1, \"1\", SOCK_CLOEXEC) = 4".into()), "{written:?}");
    assert_eq!(lines(&filter(&all, &named(&["read", "write"]), &[]).unwrap()), Vec::<String>::new());
    let made = lines(&scale_sizes(&all, Sizes { factor: 0.3, align: 512 }).unwrap());
    assert!(made.contains(&"0: write(4, 70) = 70".into()), "{made:?}");
    for from in [1_000, 2_000, 3_000, 4_000] {
        assert_eq!(lines(&cut(&all, from, 30_000).unwrap()), Vec::<String>::new(), "{from}");
    }
}

#[test]
fn connections_of_scripts_that_run_side_by_side_are_each_its_own() {
    let all = parse("s", CONNECTED.as_bytes()).unwrap().script;
    let made = lines(&clone(&all, 2).unwrap());
    let calls = |what: &str| made.iter().filter(|line| line.contains(what)).count();
    assert_eq!([calls("\"1.1\""), calls("\"2.1\""), calls("\"1\"")], [2, 2, 0], "{made:?}");
}
