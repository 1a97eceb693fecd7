use etude_script::Script;
use proptest::prelude::*;

use super::{Edge, Edges, Order, Wait, end_of};

/// Which step waits for which, as their lines below the first.
fn waits(lines: &str) -> Vec<(usize, usize)> {
    let script = etude_script::parse("s", format!("etude script 1\n{lines}").as_bytes()).unwrap().script;
    let waits = Order::of(&script, Edges::ALL);
    let mut pairs: Vec<_> =
        waits.iter().flat_map(|(step, waits)| waits.iter().map(|wait| (*step, wait.other.step))).collect();
    pairs.sort_unstable();
    pairs
}

const TWO: &str = "0: openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 3
0: openat(AT_FDCWD, \"/b\", O_RDWR|O_CREAT, 0644) = 4
0: start(1)
";

#[test]
fn offsets_in_memory_say_which_data_overlap() {
    let text = |offset: &str| {
        format!(
            "{TWO}0: copy_file_range(3, [0], 4, [{offset}], 100, 0) = 100\n1: pread64(4, 100, 4096) = 100\n"
        )
    };
    assert_eq!(waits(&text("4096")), [(4, 3)]);
    assert_eq!(waits(&text("8192")), []);
    // The position of what it reads is not used: that of another thread's reads is not its concern.
    let sent = |offset: &str| {
        format!("{TWO}0: read(3, 10) = 10\n1: sendfile(4, 3, {offset}, 100) = 100\n0: read(3, 10) = 10\n")
    };
    assert_eq!(waits(&sent("[4096]")), []);
    assert_eq!(waits(&sent("NULL")), [(4, 3), (5, 4)]);
    // -1 is the position.
    let moved = |offset: i64| format!("{TWO}0: read(3, 10) = 10\n1: preadv2(3, 1, {offset}, 0) = 10\n");
    assert_eq!(waits(&moved(-1)), [(4, 3)]);
    assert_eq!(waits(&moved(50)), []);
}

#[test]
fn a_process_goes_elsewhere_after_names_from_where_it_was() {
    let gone =
        "0: start(1)\n0: newfstatat(AT_FDCWD, \"x\", 0) = -1 ENOENT\n1: chdir(\"/d\") = 0\n0: getcwd(100) = 3
0: newfstatat(AT_FDCWD, \"/y\", 0) = -1 ENOENT\n";
    assert_eq!(waits(gone), [(2, 1), (3, 2)]);
    let other = "0: fork(1)\n0: newfstatat(AT_FDCWD, \"x\", 0) = -1 ENOENT\n1: chdir(\"/d\") = 0\n";
    assert_eq!(waits(other), []);
    let back = format!("{TWO}0: fchdir(3) = 0\n1: openat(AT_FDCWD, \"x\", O_RDONLY) = -1 ENOENT\n");
    assert_eq!(waits(&back), [(4, 3)]);
}

#[test]
fn a_range_of_descriptors_is_closed_after_their_last_use() {
    let text = format!(
        "{TWO}1: fstat(4) = 0\n0: close_range(4, 4294967295, 0) = 0\n1: openat(AT_FDCWD, \"/c\", O_RDONLY) = 4\n"
    );
    assert_eq!(waits(&text), [(4, 3), (5, 4)]);
}

#[test]
fn copies_of_descriptors_share_a_position_also_in_another_process() {
    let text =
        "0: openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 3\n0: dup(3) = 7\n0: fork(1)\n0: dup2(7, 8) = 8
1: read(7, 10) = 10\n0: read(8, 10) = 10\n1: read(3, 10) = 10\n";
    assert_eq!(waits(text), [(5, 4), (6, 5)]);
}

const LOCKS: &str = "0: openat(AT_FDCWD, \"/l\", O_RDWR|O_CREAT, 0644) = 3
0: fork(1)
1: openat(AT_FDCWD, \"/l\", O_RDWR) = 4
";

#[test]
fn a_lock_is_had_after_it_was_given_back() {
    let free =
        format!("{LOCKS}0: flock(3, LOCK_EX) = 0\n0: flock(3, LOCK_UN) = 0\n1: flock(4, LOCK_EX) = 0\n");
    assert_eq!(waits(&free), [(5, 4)]);
    let closed = format!(
        "{LOCKS}1: close(3) = 0\n0: flock(3, LOCK_EX) = 0\n0: close(3) = 0\n1: flock(4, LOCK_EX) = 0\n"
    );
    assert_eq!(waits(&closed), [(6, 5)]);
    let ended = format!("{LOCKS}1: flock(4, LOCK_EX) = 0\n0: flock(3, LOCK_EX) = 0\n");
    assert_eq!(waits(&ended), [(4, 3)]);
    let shared =
        format!("{LOCKS}0: flock(3, LOCK_SH) = 0\n1: flock(4, LOCK_SH) = 0\n0: flock(3, LOCK_UN) = 0\n");
    assert_eq!(waits(&shared), []);
}

#[test]
fn who_waited_for_a_lock_waits_in_the_kernel_again() {
    // It began before the lock was given back: the lock has to be taken first, and no more.
    let text = format!(
        "{LOCKS}0: flock(3, LOCK_EX) = 0 <0.000001>\n1: flock(4, LOCK_EX) = 0 <0.005>\n0: compute(0.004)
0: flock(3, LOCK_UN) = 0 <0.000001>\n1: flock(4, LOCK_UN) = 0\n0: flock(3, LOCK_EX) = 0\n"
    );
    assert_eq!(waits(&text), [(4, 3), (8, 7)]);
    // Of two that waited the second one's turn comes behind the first one's.
    let three = format!(
        "{LOCKS}1: fork(2)\n2: openat(AT_FDCWD, \"/l\", O_RDWR) = 5\n0: flock(3, LOCK_EX) = 0 <0.000001>
1: flock(4, LOCK_EX) = 0 <0.009>\n2: flock(5, LOCK_EX) = 0 <0.004>\n0: compute(0.003)\n0: flock(3, LOCK_UN) = 0
2: compute(0.004)\n2: flock(5, LOCK_UN) = 0\n1: compute(0.004)\n"
    );
    assert_eq!(waits(&three), [(4, 0), (6, 7), (7, 5)]);
}

#[test]
fn a_lock_that_was_refused_is_refused_again() {
    let text = format!(
        "{LOCKS}0: flock(3, LOCK_EX) = 0\n1: flock(4, LOCK_EX|LOCK_NB) = -1 EAGAIN\n0: flock(3, LOCK_UN) = 0\n"
    );
    assert_eq!(waits(&text), [(4, 3), (5, 4)]);
}

/// Steps of two processes, of which the first one lives on; `0 F_SETLK WR 10 5` is a lock of a range from 10 on, of 5 bytes.
fn ranges(steps: &[&str]) -> Vec<(usize, usize)> {
    let mut text = LOCKS.to_owned();
    for step in steps {
        text += &match step.split(' ').collect::<Vec<_>>()[..] {
            [who, command, kind, start, length, ref result @ ..] if !who.ends_with(':') => {
                let (thread, fd) = who.split_once('/').unwrap_or((who, "3"));
                let range =
                    format!("{{l_type=F_{kind}LCK, l_whence=SEEK_SET, l_start={start}, l_len={length}}}");
                let result = if result.is_empty() { "0".into() } else { result.join(" ") };
                format!("{thread}: fcntl({fd}, {command}, {range}) = {result}\n")
            }
            _ => format!("{step}\n"),
        };
    }
    waits(&(text + "0: sync() = 0\n"))
}

#[test]
fn a_range_is_had_after_it_was_given_back() {
    let meets = |kind: &str, start: u64| {
        let other = format!("1 F_SETLK {kind} {start} 10");
        ranges(&["0 F_SETLK WR 10 10", "0 F_SETLK UN 10 5", &other])
    };
    assert_eq!(meets("WR", 16), [(5, 3)], "still had");
    assert_eq!(meets("RD", 5), [(5, 4)]);
    assert_eq!(meets("RD", 20), []);
    assert_eq!(ranges(&["0 F_SETLK RD 0 0", "1 F_SETLK RD 0 0"]), []);
    // A lock of `flock` is another one.
    assert_eq!(ranges(&["0 F_SETLK WR 0 0", "1: flock(4, LOCK_EX) = 0"]), []);
    let up = ["0 F_SETLK RD 0 9", "0 F_SETLK WR 0 9", "0 F_SETLK RD 0 9", "1 F_SETLK RD 0 9"];
    assert_eq!(ranges(&up), [(6, 5)]);
}

#[test]
fn locks_of_a_process_go_with_any_descriptor_of_the_file() {
    let closed = |other: &str| {
        let opens = format!("0: openat(AT_FDCWD, \"/{other}\", O_RDONLY) = 7");
        ranges(&["0 F_SETLK WR 0 9", &opens, "0: close(7) = 0", "1 F_SETLKW WR 0 9"])
    };
    assert_eq!(closed("l"), [(6, 5)]);
    assert_eq!(closed("m"), [(6, 3)]);
    // That of what was opened is of all its copies, and stays until the last one is closed.
    let copied = ["0 F_OFD_SETLK WR 0 9", "0: dup(3) = 7", "0: close(7) = 0", "1/4 F_OFD_SETLKW WR 0 9"];
    assert_eq!(ranges(&copied), [(6, 3)]);
    let refused = ["0 F_OFD_SETLK WR 0 9", "1 F_OFD_SETLK WR 0 9", "0 F_SETLK WR 0 9 -1 EAGAIN"];
    assert_eq!(ranges(&refused), [(4, 3), (5, 4)]);
}

#[test]
fn who_waited_for_a_range_waits_in_the_kernel_again() {
    let waited = ["0 F_SETLK WR 0 9", "1 F_SETLKW WR 5 9 0 <0.005>", "0: compute(0.004)", "0 F_SETLK UN 0 0"];
    let then = ["1 F_SETLK UN 0 0", "0 F_SETLK WR 8 1"];
    assert_eq!(ranges(&[&waited[..], &then].concat()), [(4, 3), (8, 7)]);
}

#[test]
fn a_range_that_was_refused_is_refused_again() {
    let refused = ["0 F_SETLK WR 0 9", "1 F_SETLK WR 5 9 -1 EAGAIN", "0 F_SETLK UN 2 1", "0 F_SETLK UN 7 1"];
    assert_eq!(ranges(&refused), [(4, 3), (6, 4)]);
}

#[test]
fn the_end_of_a_process_gives_back_its_locks_before_others_have_them() {
    let ended = ["1 F_SETLK WR 0 9", "0 F_SETLK RD 0 1 -1 EAGAIN", "1: compute(0.004)", "0 F_SETLK RD 0 1"];
    assert_eq!(ranges(&ended), [(4, 3), (6, 3), (end_of(1), 4)]);
    let whole = "{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}";
    for lock in [format!("F_SETLK, {whole}"), format!("F_OFD_SETLK, {whole}"), String::new()] {
        let call = |fd: u8| match &lock[..] {
            "" => format!("flock({fd}, LOCK_EX|LOCK_NB) = 0\n"),
            lock => format!("fcntl({fd}, {lock}) = 0\n"),
        };
        let text = format!("etude script 1\n{LOCKS}1: {}1: compute(0.004)\n0: {}", call(4), call(3));
        let script = etude_script::parse("s", text.as_bytes()).unwrap().script;
        let waits = Order::of(&script, Edges::ALL);
        assert_eq!(waits[&5].iter().map(|wait| wait.end).collect::<Vec<_>>(), [Some(1)], "{lock}");
    }
}

const PIPE: &str = "0: pipe2([3, 4], 0) = 0
0: fork(1)
";

#[test]
fn what_goes_through_a_pipe_has_the_kernels_order() {
    let both = format!(
        "{PIPE}0: write(4, 10) = 10\n1: read(3, 30) = 10\n0: write(4, 20) = 20\n1: read(3, 30) = 20\n"
    );
    assert_eq!(waits(&both), []);
}

#[test]
fn what_found_nothing_in_a_pipe_comes_between_what_found_something() {
    let text = format!(
        "{PIPE}0: write(4, 10) = 10\n1: read(3, 10) = 10\n0: read(3, 10) = -1 EAGAIN\n1: write(4, 20) = 20
0: compute(0.001)\n0: read(3, 30) = 20\n"
    );
    assert_eq!(waits(&text), [(4, 3), (5, 4)]);
}

#[test]
fn the_last_reader_goes_after_the_last_write_and_before_one_that_fails() {
    let text = format!(
        "{PIPE}0: close(3) = 0\n0: write(4, 10) = 10\n1: close(3) = 0\n0: compute(0.001)\n0: write(4, 10) = -1 EPIPE\n"
    );
    assert_eq!(waits(&text), [(4, 3), (6, 4)]);
    // It may have waited for room until the reader was gone.
    let long = format!(
        "{PIPE}0: close(3) = 0\n0: write(4, 10) = -1 EPIPE <0.003>\n1: compute(0.001)\n1: close(3) = 0\n"
    );
    assert_eq!(waits(&long), [(3, 5)]);
}

const SOCKETS: &str = "0: socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, [3, 4]) = 0
0: fork(1)
0: close(4) = 0
1: close(3) = 0
";

#[test]
fn what_goes_through_a_pair_of_sockets_has_the_kernels_order() {
    let both = format!(
        "{SOCKETS}0: sendto(3, 10, 0, NULL, 0) = 10\n1: recvfrom(4, 30, 0, NULL) = 10\n1: sendmsg(4, 0) = 20
0: recvmsg(3, 0) = 20\n0: close(3) = 0 <0.000001>\n1: read(4, 1) = 0 <0.000003>\n"
    );
    // It can be read until then.
    assert_eq!(waits(&both), [(8, 6)]);
}

#[test]
fn an_end_is_shut_after_its_writes_and_before_one_that_fails_whoever_closes_it_besides() {
    let text = format!(
        "{SOCKETS}1: write(4, 10) = 10\n0: shutdown(3, SHUT_RD) = 0\n1: compute(0.001)\n1: write(4, 10) = -1 EPIPE\n"
    );
    assert_eq!(waits(&text), [(5, 4), (7, 5)]);
    // One that stands below what followed from it: it was not ended when another thread went on.
    let late = format!("{SOCKETS}1: read(4, 1) = 0\n1: close(4) = 0\n0: shutdown(3, SHUT_WR) = 0\n");
    assert_eq!(waits(&late), []);
    let reset = format!("{SOCKETS}0: write(3, 10) = 10\n1: close(4) = 0\n0: read(3, 1) = -1 ECONNRESET\n");
    assert_eq!(waits(&reset), [(5, 4)]);
}

#[test]
fn what_goes_through_a_connection_has_the_kernels_order() {
    const CONNECTED: &str = "0: fork(1)\n1: socket(AF_UNIX, SOCK_STREAM, 0) = 7\n1: connect(7, \"1\", 0) = 0
0: accept4(-1, \"1\", 0) = 4 <0.001>\n1: write(7, 10) = 10\n0: read(4, 30) = 10\n0: write(4, 20) = 20\n";
    let both = format!("{CONNECTED}1: close(7) = 0 <0.000001>\n0: read(4, 1) = 0 <0.000003>\n");
    // What is written is written before nobody can read it any more.
    assert_eq!(waits(&both), [(7, 6)]);
    let broken = format!("{CONNECTED}1: close(7) = 0\n0: compute(0.001)\n0: write(4, 1) = -1 EPIPE\n");
    assert_eq!(waits(&broken), [(7, 6), (9, 7)]);
}

#[test]
fn a_pipe_with_a_name_is_a_pipe() {
    let text = "0: mknodat(AT_FDCWD, \"/p\", S_IFIFO|0600, 0) = 0\n0: fork(1)\n1: openat(AT_FDCWD, \"/p\", O_RDONLY) = 3
0: openat(AT_FDCWD, \"/p\", O_WRONLY) = 3\n1: read(3, 100) = 10 <0.002>\n0: compute(0.001)
0: write(3, 10) = 10 <0.000001>\n";
    assert_eq!(waits(text), []);
}

/// Whether all steps have their turn, where each waits for those that it has to. Threads 0 and 1 are a process, and 2 and 3.
fn all_have_their_turn(script: &Script) -> bool {
    let (waits, threads) = (Order::of(script, Edges::ALL), 4);
    let mut lanes = vec![Vec::new(); threads];
    script.steps.iter().enumerate().for_each(|(at, step)| lanes[step.thread as usize].push(at));
    let (mut next, mut done, mut ended) = (vec![0; threads], vec![false; script.steps.len()], [false; 4]);
    loop {
        let may = |at: usize| {
            let come =
                |wait: &Wait| wait.end.map_or(done[wait.other.step], |process| ended[process as usize]);
            waits.get(&at).into_iter().flatten().all(come)
        };
        let over = |process: usize| (process..process + 2).all(|thread| next[thread] == lanes[thread].len());
        let ends = |process: &usize| !ended[*process] && over(*process) && may(end_of(*process as u32));
        if let Some(process) = [0, 2].into_iter().find(ends) {
            ended[process] = true;
            continue;
        }
        let ready = |thread: &usize| lanes[*thread].get(next[*thread]).is_some_and(|at| may(*at));
        let Some(thread) = (0..threads).find(ready) else { return ended[0] && ended[2] };
        done[lanes[thread][next[thread]]] = true;
        next[thread] += 1;
    }
}

proptest! {
    #[test]
    fn no_thread_waits_for_what_comes_after_itself(
        steps in proptest::collection::vec((0..4_u8, 0..22_usize, proptest::option::of(0..9_u8)), 0..80)
    ) {
        const CALLS: [&str; 22] = [
            "read(3, 20) = 10",
            "read(3, 10) = 10",
            "read(3, 10) = -1 EAGAIN",
            "read(3, 10) = 0",
            "write(4, 10) = 10",
            "write(4, 9000) = 9000",
            "flock(5, LOCK_EX) = 0",
            "flock(5, LOCK_SH) = 0",
            "flock(5, LOCK_EX|LOCK_NB) = -1 EAGAIN",
            "flock(5, LOCK_UN) = 0",
            "fcntl(5, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=10}) = 0",
            "fcntl(5, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=5, l_len=10}) = 0",
            "fcntl(5, F_SETLKW, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0",
            "fcntl(5, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=5}) = -1 EAGAIN",
            "fcntl(5, F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=3, l_len=4}) = 0",
            "fcntl(5, F_SETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0",
            "fcntl(5, F_OFD_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=7}) = 0",
            "fcntl(5, F_OFD_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=7}) = -1 EAGAIN",
            "read(5, 10) = 10",
            "dup2(5, 6) = 6",
            "close(6) = 0",
            "chdir(\"x\") = 0",
        ];
        let mut text = "etude script 1\n0: pipe2([3, 4], 0) = 0\n0: start(1)\n0: fork(2)\n2: start(3)\n".to_owned();
        for thread in [0, 2] {
            text += &format!("{thread}: openat(AT_FDCWD, \"a\", O_RDWR) = 5\n");
        }
        for (thread, call, ms) in steps {
            let took = ms.map_or(String::new(), |ms| format!(" <0.00{ms}>"));
            text += &format!("{thread}: {}{took}\n{thread}: compute(0.001)\n", CALLS[call]);
        }
        let script = etude_script::parse("s", text.as_bytes()).unwrap().script;
        prop_assert!(all_have_their_turn(&script), "{}", text);
    }
}

const GROWING: &str = "0: openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 3
0: fork(1)
";

#[test]
fn who_asks_how_long_a_file_is_comes_after_what_made_it_so() {
    let asked = |text: &str| {
        waits(&format!("{GROWING}0: pwrite64(3, 100, 0) = 100\n1: {text}\n0: pwrite64(3, 100, 100) = 100\n"))
    };
    // The fork and the opening are known to all that comes after.
    assert_eq!(asked("lseek(3, 0, SEEK_END) = 100"), [(3, 2), (4, 3)]);
    assert_eq!(asked("fstat(3) = 0"), [(3, 2), (4, 3)]);
    assert_eq!(asked("newfstatat(AT_FDCWD, \"/a\", 0) = 0"), [(3, 2), (4, 3)]);
    assert_eq!(asked("pread64(3, 100, 100) = 0"), [(3, 2), (4, 3)], "its end was found");
    assert_eq!(asked("lseek(3, 0, SEEK_CUR) = 0"), []);
}

#[test]
fn writes_that_make_a_file_longer_need_no_order_among_themselves() {
    let text = format!(
        "{GROWING}0: pwrite64(3, 100, 0) = 100\n1: pwrite64(3, 100, 100) = 100\n0: pwrite64(3, 100, 300) = 100
0: pwrite64(3, 100, 200) = 100\n1: ftruncate(3, 50) = 0\n0: lseek(3, 0, SEEK_END) = 50\n"
    );
    assert_eq!(waits(&text), [(6, 2), (6, 5), (7, 6)]);
}

#[test]
fn a_file_that_is_there_before_is_as_long_as_it_is_prepared() {
    let text =
        "file \"a\" 100\n0: openat(AT_FDCWD, \"a\", O_RDWR) = 3\n0: fork(1)\n1: pwrite64(3, 50, 0) = 50
0: lseek(3, 0, SEEK_END) = 100\n1: pwrite64(3, 51, 50) = 51\n0: fstat(3) = 0\n";
    // The first write makes it no longer: only the second one comes behind who asked, and before who asks next.
    assert_eq!(waits(text), [(4, 3), (5, 4)]);
}

#[test]
fn a_file_is_emptied_after_it_was_read() {
    let text = format!(
        "{GROWING}0: write(3, 100) = 100\n0: pread64(3, 50, 0) = 50\n1: openat(AT_FDCWD, \"/a\", O_WRONLY|O_TRUNC) = 4
0: pread64(3, 50, 0) = 0\n"
    );
    assert_eq!(waits(&text), [(4, 2), (4, 3), (5, 4)]);
}

#[test]
fn data_of_a_request_are_in_use_until_its_completion_is_taken() {
    let text = |offset: &str| {
        format!(
            "{TWO}0: sqe_write(3, 9, 100, 50, 0x7, 0) = 100\n0: io_uring_enter(9, 1, 0, 0, 0) = 1
1: pread64(3, 10, 300) = 10\n0: cqe(9, 0x7) = 0\n1: pread64(3, 10, {offset}) = 10\n"
        )
    };
    assert_eq!(waits(&text("60")), [(7, 6)]);
    assert_eq!(waits(&text("200")), []);
    // Another thread takes the completion: it comes behind the request.
    let taken = format!(
        "{TWO}0: iocb_read(3, 0x0, 10, 0, 0x0, 0) = 10\n0: io_submit(0x0, 1) = 1\n1: io_event(0x0, 0x0) = 0\n"
    );
    assert_eq!(waits(&taken), [(5, 3)]);
}

#[test]
fn who_was_woken_comes_behind_whoever_did_that() {
    let text = "0: start(1)\n0: start(2)\n1: futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1\n0: futex(0x1, FUTEX_WAIT_PRIVATE, 0) = 0
2: futex(0x2, FUTEX_WAKE, 1) = 1\n0: futex(0x2, FUTEX_WAIT, 77) = 0\n0: futex(0x3, FUTEX_WAIT_PRIVATE, 0) = 0\n";
    assert_eq!(waits(text), [(3, 2), (5, 4)]);
    // A word of its own each process has, unless they share it.
    let processes = |wake: &str, wait: &str| {
        format!("0: fork(1)\n1: futex(0x1, {wake}, 1) = 1\n0: futex(0x1, {wait}, 0) = 0\n")
    };
    assert_eq!(waits(&processes("FUTEX_WAKE_PRIVATE", "FUTEX_WAIT_PRIVATE")), []);
    assert_eq!(waits(&processes("FUTEX_WAKE", "FUTEX_WAIT")), [(2, 1)]);
}

#[test]
fn waits_have_kinds_and_only_those_that_are_wanted_are_there() {
    let text = format!(
        "etude script 1\n{TWO}0: pwrite64(3, 10, 0) = 10\n1: pread64(3, 10, 0) = 10\n1: futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1
0: futex(0x1, FUTEX_WAIT_PRIVATE, 0) = 0\n"
    );
    let script = etude_script::parse("s", text.as_bytes()).unwrap().script;
    let kinds = |wanted: &str| {
        let waits = Order::of(&script, Edges::named(wanted).unwrap());
        let mut found: Vec<Edge> = waits.values().flatten().map(|wait| wait.edge).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(kinds("all"), [Edge::Data, Edge::Threads]);
    assert_eq!(kinds("threads,names"), [Edge::Threads]);
    assert_eq!(kinds("none"), []);
}

#[test]
fn what_is_in_a_renamed_directory_is_the_same_file() {
    let text = format!(
        "{TWO}0: openat(AT_FDCWD, \"/d/x\", O_RDWR|O_CREAT, 0644) = 5\n0: rename(\"/d\", \"/e\") = 0
1: openat(AT_FDCWD, \"/e/x\", O_RDWR) = 6\n0: pwrite64(5, 10, 0) = 10\n1: pread64(6, 10, 0) = 10\n"
    );
    assert!(waits(&text).contains(&(7, 6)), "{:?}", waits(&text));
}

#[test]
fn flags_that_are_set_later_count() {
    // Both append: neither says which bytes are whose.
    let text = format!(
        "{TWO}0: openat(AT_FDCWD, \"/a\", O_WRONLY) = 5\n0: fcntl(3, F_SETFL, O_RDWR|O_APPEND) = 0
1: pwrite64(5, 10, 4096) = 10\n0: write(3, 10) = 10\n"
    );
    assert!(waits(&text).contains(&(6, 5)), "{:?}", waits(&text));
    // A descriptor that close_range marks is closed at exec.
    let text = format!(
        "{TWO}0: close_range(4, 4, CLOSE_RANGE_CLOEXEC) = 0\n1: fstat(4) = 0\n0: exec()\n1: openat(AT_FDCWD, \"/c\", O_RDONLY) = 4\n"
    );
    assert!(waits(&text).contains(&(6, 5)), "{:?}", waits(&text));
}
