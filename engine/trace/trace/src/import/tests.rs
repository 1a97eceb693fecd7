use std::io::Cursor;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::event::Event;
use crate::meta::{Footer, Meta};
use crate::reader::{Ending, Frame, Reader};

struct Found {
    imported: Imported,
    header: Header,
    events: Vec<(u32, Event)>,
    metas: Vec<Meta>,
    footer: Footer,
    lines: String,
}

fn scratch() -> PathBuf {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("x").replace("::", "-");
    std::env::temp_dir().join(format!("etude-import-{}-{name}", std::process::id()))
}

fn import(text: &[u8]) -> Result<Found, String> {
    let path = scratch();
    let imported = strace(Cursor::new(text), File::create(&path).unwrap());
    let result = imported.map(|imported| {
        let mut lines = Vec::new();
        crate::print(&path, &mut lines).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        let header = reader.header().clone();
        let (mut events, mut metas, mut last) = (Vec::new(), Vec::new(), None);
        while let Some(frame) = reader.next().unwrap() {
            match frame {
                Frame::Events { thread, events: more } => {
                    events.extend(more.iter().map(|event| (thread, event.clone())));
                }
                Frame::Meta(meta) => metas.push(meta),
                Frame::Footer(footer) => last = Some(footer),
            }
        }
        assert_eq!(reader.ending(), Some(Ending::Whole));
        let lines = String::from_utf8(lines).unwrap();
        Found { imported, header, events, metas, footer: last.unwrap(), lines }
    });
    std::fs::remove_file(&path).unwrap();
    result
}

/// The lines that come of lines, without times and the numbers of threads.
fn calls(text: &str) -> Vec<String> {
    let found = import(text.as_bytes()).unwrap();
    assert_eq!((found.imported.strange, found.imported.strange_arguments), (0, 0), "{text}");
    let call = |line: &str| {
        let begin = line.find(|letter: char| letter.is_ascii_lowercase()).unwrap();
        line[begin..line.rfind(" <").unwrap()].to_owned()
    };
    found.lines.lines().map(call).collect()
}

#[test]
fn a_line_becomes_an_event() {
    let text = "1700000000.250000 openat(AT_FDCWD, \"/etc/hosts\", O_RDONLY|O_CLOEXEC) = 3 <0.000012>\n\
                1700000000.250100123 read(3, \"127.0.0.1\\tlocal\"..., 4096) = 221 <0.000007001>\n";
    let found = import(text.as_bytes()).unwrap();
    let [(0, open), (0, read)] = &found.events[..] else { panic!("{:?}", found.events) };
    assert_eq!((open.call.name(), open.start_ns, open.duration_ns, open.result), ("openat", 0, 12_000, 3));
    assert_eq!(open.arguments, [-100_i64 as u64, 0, 0o2000000, 0, 0, 0]);
    assert_eq!(&open.text(1).unwrap()[..], b"/etc/hosts");
    assert_eq!(
        (read.call.name(), read.start_ns, read.duration_ns, read.result),
        ("read", 100_123, 7_001, 221)
    );
    assert_eq!((read.arguments, read.texts.len()), ([3, 0, 4096, 0, 0, 0], 0));
    assert_eq!(found.header.start, "2023-11-14T22:13:20.250000000Z");
    assert_eq!((found.header.technique.as_str(), found.footer.end_ns), ("strace", 107_124));
}

/// Each line of strace 6.1 comes back as it was, but for what stood in memory.
#[test]
fn arguments_and_results_are_those_of_the_text() {
    for (text, expected) in [
        ("close(3) = 0", "close(3) = 0"),
        ("close(3</a, b (c)>) = 0", "close(3) = 0"),
        ("dup(3<TCP:[127.0.0.1:5->127.0.0.1:6]>) = 4<TCP:[127.0.0.1:5->127.0.0.1:6]>", "dup(3) = 4"),
        ("access(\"/x\", F_OK) = -1 ENOENT (No such file or directory)", "access(\"/x\", F_OK) = -1 ENOENT"),
        (
            "open(\"a\\\"b\\n\\1\\3772\", O_WRONLY|O_CREAT, 0644) = 5",
            "open(\"a\\\"b\\n\\001\\3772\", O_WRONLY|O_CREAT, 0644) = 5",
        ),
        ("lseek(3, -10, SEEK_END) = 90", "lseek(3, -10, SEEK_END) = 90"),
        ("pread64(3, \"\\177ELF\"..., 784, 64) = 784", "pread64(3, NULL, 784, 64) = 784"),
        (
            "mmap(0x7f00, 8192, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED, 3, 0x2000) = 0x7f00",
            "mmap(0x7f00, 8192, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED, 3, 8192) = 0x7f00",
        ),
        ("brk(NULL) = 0x5000", "brk(NULL) = 0x5000"),
        (
            "newfstatat(AT_FDCWD</tmp>, \"\", {st_mode=S_IFREG|0644, st_size=9, ...}, AT_EMPTY_PATH) = 0",
            "newfstatat(AT_FDCWD, \"\", NULL, AT_EMPTY_PATH) = 0",
        ),
        ("getdents64(3, 0x55 /* 4 entries, or so */, 32768) = 120", "getdents64(3, 0x55, 32768) = 120"),
        ("fcntl(7, F_GETFL) = 0x28800 (flags O_RDONLY|O_NONBLOCK)", "fcntl(7, F_GETFL) = 165888"),
        ("fcntl(7, F_SETFD, FD_CLOEXEC) = 0", "fcntl(7, F_SETFD, 1) = 0"),
        ("pipe2([3, 4], O_CLOEXEC) = 0", "pipe2([3, 4], O_CLOEXEC) = 0"),
        ("bind(3, {sa_family=AF_UNIX, sun_path=@\"s\"}, 4) = 0", "bind(3, \"\\001\\000\\000s\", 4) = 0"),
        (
            "connect(3, {sa_family=AF_UNIX, sun_path=\"/s\"}, 5) = -1 ENOENT (No such file or directory)",
            "connect(3, NULL, 5) = -1 ENOENT",
        ),
        ("sendfile(4, 3, [0] => [512], 512) = 512", "sendfile(4, 3, [0], 512) = 512"),
        ("copy_file_range(3, NULL, 4, [8], 512, 0) = 512", "copy_file_range(3, NULL, 4, [8], 512, 0) = 512"),
        (
            "preadv2(3, [{iov_base=\"a\", iov_len=1}], 1, 5, RWF_NOWAIT) = 1",
            "preadv2(3, NULL, 1, 5, 0, RWF_NOWAIT) = 1",
        ),
        (
            "writev(1, [{iov_base=\"(\", iov_len=1}, {iov_base=\")\", iov_len=1}], 2) = 2",
            "writev(1, NULL, 2) = 2",
        ),
        ("mknod(\"n\", S_IFCHR|0600, makedev(0x1, 0x3)) = 0", "mknod(\"n\", 020600, makedev(0x1, 0x3)) = 0"),
        (
            "ioctl(1, TCGETS, 0x7ffe) = -1 ENOTTY (Inappropriate ioctl for device)",
            "ioctl(1, TCGETS, 0x7ffe) = -1 ENOTTY",
        ),
        ("fchownat(AT_FDCWD, \"f\", 1000, -1, 0) = 0", "fchownat(AT_FDCWD, \"f\", 1000, -1, 0) = 0"),
        ("ioctl(4, BTRFS_IOC_CLONE or FICLONE, 3) = 0", "ioctl(4, FICLONE, 0x3) = 0"),
        ("sync() = 0", "sync() = 0"),
    ] {
        assert_eq!(calls(&format!("12 1.5 {text} <0.1>\n")), [expected]);
        assert_eq!(calls(&format!("[pid    12] 1.5 {text}\n")), [expected], "without a duration");
    }
}

#[test]
fn a_call_that_another_thread_interrupts_is_one_event() {
    let text = "1 10.0 clone3({flags=CLONE_VM|CLONE_THREAD, stack=0x7f} <unfinished ...>\n\
                2 10.1 read(3,  <unfinished ...>\n\
                1 10.2 <... clone3 resumed> => {parent_tid=[2]}, 88) = 2 <0.2>\n\
                1 10.3 close(4) = 0 <0.1>\n\
                2 10.4 <... read resumed>\"x\", 10) = 1 <0.3>\n\
                2 10.5 +++ exited with 0 +++\n\
                1 10.6 close(5 <unfinished ...>\n\
                1 10.7 +++ killed by SIGKILL +++\n";
    let found = import(text.as_bytes()).unwrap();
    let events: Vec<_> =
        found.events.iter().map(|(thread, event)| (*thread, event.start_ns, event.duration_ns)).collect();
    assert_eq!(events, [(1, 100_000_000, 300_000_000), (0, 300_000_000, 100_000_000)]);
    assert_eq!(found.imported.unfinished, 1);
    let threads = found.metas.iter().filter_map(|meta| match meta {
        Meta::Thread { thread, process, tid, .. } => Some((*thread, *process, *tid)),
        _ => None,
    });
    assert_eq!(threads.collect::<Vec<_>>(), [(1, 0, 2), (0, 0, 1)]);
    let ended = Meta::Ended { process: 0, status: None, signal: Some(9), at_ns: 700_000_000 };
    assert_eq!(found.metas.last(), Some(&ended));
    assert_eq!((found.footer.processes, found.footer.threads), (1, 2));
}

#[test]
fn processes_are_known_with_their_parents_and_programs() {
    let text = "7 1.0 execve(\"/bin/sh\", [\"sh\", \"-c\", \"a \\\"b\\\"\"], 0x7ff /* 3 vars */) = 0 <0.1>\n\
                7 1.1 vfork() = 8 <0.1>\n\
                8 1.2 execve(\"/x/ls\", [\"ls\"], 0x7ff /* 3 vars */) = -1 ENOENT (No such file or directory) <0.1>\n\
                8 1.3 execve(\"/bin/ls\", [\"ls\"], 0x7ff /* 3 vars */) = 0 <0.1>\n\
                8 1.4 close(1) = 0 <0.1>\n\
                8 1.5 exit_group(3) = ?\n\
                8 1.6 +++ exited with 3 +++\n\
                7 1.7 --- SIGCHLD {si_signo=SIGCHLD} ---\n\
                7 1.8 close(1) = 0 <0.1>\n\
                7 1.9 read(0, 0x7ff, 5) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.1>\n";
    let found = import(text.as_bytes()).unwrap();
    let program = |process, parent, pid, executable: &str, argv: &[&str], at_ns| Meta::Process {
        process,
        parent,
        pid,
        executable: executable.into(),
        argv: argv.iter().map(|word| word.to_string()).collect(),
        cwd: String::new(),
        at_ns,
    };
    let argv = ["sh", "-c", "a \"b\""];
    assert_eq!(found.header.argv, argv);
    assert!(found.metas.contains(&program(0, None, 7, "/bin/sh", &argv, 0)), "{:?}", found.metas);
    assert!(found.metas.contains(&program(1, Some(0), 8, "", &[], 100_000_000)), "{:?}", found.metas);
    let exec =
        Meta::Exec { process: 1, executable: "/bin/ls".into(), argv: vec!["ls".into()], at_ns: 300_000_000 };
    assert!(found.metas.contains(&exec));
    let ended = Meta::Ended { process: 1, status: Some(3), signal: None, at_ns: 600_000_000 };
    assert!(found.metas.contains(&ended));
    assert_eq!((found.events.len(), found.imported.unfinished), (2, 1));
    assert_eq!(found.imported.others, BTreeMap::from([("exit_group".to_owned(), 1)]));
}

#[test]
fn what_is_not_understood_is_counted_and_noted() {
    let text = "1.0 close(3) = 0 <0.1>\nnonsense\n1.1 close(\n1.2 lseek(3, WHAT, SEEK_SET) = 0 <0.1>\n\
                1.3 <... read resumed>) = 0\n1.4 getpid() = 5\nstrace: Process 5 attached\n";
    let found = import(text.as_bytes()).unwrap();
    assert_eq!((found.imported.strange, found.imported.first_strange), (3, 2));
    assert_eq!(found.imported.strange_arguments, 1);
    assert_eq!(
        found.footer.notes,
        [
            "3 lines were not understood, the first is line 2",
            "1 arguments were not understood and are 0",
            "calls that a trace does not hold: getpid 1",
        ]
    );
}

#[test]
fn a_text_that_is_none_of_strace_is_refused() {
    let error = |text: &[u8]| import(text).err().unwrap();
    assert_eq!(error(b""), "is empty: there is nothing to import");
    for text in [&b"hello\n"[..], b"12:30:00 close(3) = 0\n", b"close(3) = 0\n", &[0xff; 100]] {
        assert!(error(text).starts_with("is no text of strace -f -ttt -T"), "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_import_panic(
        words in proptest::collection::vec(
            prop_oneof![
                Just("1 5.25 ".to_owned()), Just("2 5.5 ".to_owned()), Just("\n".to_owned()), Just("\n1 5.1 ".to_owned()),
                Just("openat(".to_owned()), Just("read(".to_owned()), Just("clone(".to_owned()), Just("pipe(".to_owned()),
                Just("execve(".to_owned()), Just("AT_FDCWD".to_owned()), Just(" <unfinished ...>".to_owned()),
                Just("<... read resumed>".to_owned()), Just("+++ exited with 1 +++".to_owned()), Just(") = 0".to_owned()),
                Just(" = 2 <0.1>".to_owned()), Just("/* ".to_owned()), Just(" */".to_owned()), Just(", ".to_owned()),
                "[\\[\\]{}()<>\"\\\\|=,/*x0-9 -]{0,8}", any::<String>(),
            ],
            0..40,
        ),
    ) {
        if let Ok(found) = import(words.concat().as_bytes()) {
            prop_assert_eq!(found.imported.events, found.events.len() as u64);
        }
    }

    #[test]
    fn a_time_of_day_is_that_of_its_second(day in 0..50_000_u64, second in 0..86_400_u64) {
        // Day by day, as a calendar has them.
        let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let (mut rest, mut year, mut month) = (day, 1970, 0);
        while rest >= 365 + u64::from(leap(year)) {
            rest -= 365 + u64::from(leap(year));
            year += 1;
        }
        let days = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        while rest >= days[month] {
            rest -= days[month];
            month += 1;
        }
        let expected = format!("{year:04}-{:02}-{:02}T{:02}:{:02}:{:02}.", month + 1, rest + 1, second / 3600, second / 60 % 60, second % 60);
        prop_assert!(time_of_day((86_400 * day + second) * 1_000_000_000).starts_with(&expected));
    }
}

/// What strace writes on this machine, of a shell, a pipe and a copy.
#[test]
fn strace_itself_is_understood() {
    let (path, program) =
        (scratch(), "echo a >&2; cp /etc/passwd /dev/null; ls / | cat; head -c 3 /etc/hosts");
    let text = path.with_extension("strace");
    let run = std::process::Command::new("strace")
        .args(["-f", "-ttt", "-T", "-o"])
        .arg(&text)
        .args(["sh", "-c", program])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    if !run.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no strace, or it may not trace");
        return;
    }
    let bytes = std::fs::read(&text).unwrap();
    std::fs::remove_file(&text).unwrap();
    let found = import(&bytes).unwrap();
    assert_eq!(
        (found.imported.strange, found.imported.strange_arguments),
        (0, 0),
        "{:?}",
        found.footer.notes
    );
    assert!(found.events.len() > 100 && found.footer.processes == 5, "{:?}", found.footer);
    assert!(found.lines.contains("openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY"), "{}", found.lines);
}
