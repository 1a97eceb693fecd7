use etude_calls::{Call, Kind, Processor, Range, RangeKind};
use etude_trace::Text;
use proptest::prelude::*;

use super::*;
use crate::form::shown;
use crate::model::{Action, Called, Dropped, Step};
use crate::{check, write};

fn text(script: &Script) -> Vec<u8> {
    let mut out = Vec::new();
    write(script, &mut out).unwrap();
    out
}

fn path() -> impl Strategy<Value = Arc<[u8]>> {
    proptest::collection::vec(1_u8.., 1..12).prop_map(Into::into)
}

fn called() -> impl Strategy<Value = Called> {
    let value = prop_oneof![
        any::<u64>(),
        0_u64..70_000,
        (0_u32..64).prop_map(|bit| 1 << bit),
        Just(u64::MAX),
        Just(-100_i64 as u64),
        Just(6),
        Just(38),
    ];
    let result = prop_oneof![any::<i64>(), -4096_i64..10, Just(i64::MIN)];
    let texts = proptest::collection::vec(proptest::option::of(path()), 6);
    let parts = (
        prop_oneof![9 => 1..=Call::MANY, 1 => Just(Call::named("fcntl").unwrap().code())],
        [value.clone(), value.clone(), value.clone(), value.clone(), value.clone(), value],
        texts,
    );
    (parts, result, any::<Option<u64>>(), any::<bool>()).prop_map(
        |((code, mut arguments, mut paths), result, duration_ns, eight)| {
            let call = Call::from_code(code).unwrap();
            call.normalise(Processor::X86_64, &mut arguments);
            let bits = arguments;
            let mut texts = smallvec::SmallVec::new();
            for index in 0..call.used(&arguments) {
                let bytes = match call.kind(&arguments, index) {
                    kind if !shown(kind) => {
                        arguments[index] = 0;
                        continue;
                    }
                    Kind::Path | Kind::Name | Kind::Socket => paths[index].take(),
                    Kind::Pair | Kind::OffsetAt if eight => Some(arguments[index].to_le_bytes()[..].into()),
                    Kind::Range if eight => {
                        let [kind, whence, start, length, ..] = bits;
                        let (kind, _) = RangeKind::NAMES[kind as usize % 3];
                        let range = Range {
                            kind,
                            whence: whence as u8 % 3,
                            start: start as i64,
                            length: length as i64,
                        };
                        Some(range.bytes()[..].into())
                    }
                    Kind::Pair | Kind::OffsetAt | Kind::Range => paths[index].take(),
                    _ => None,
                };
                if let Some(bytes) = bytes {
                    arguments[index] = 0;
                    texts.push(Text { argument: index as u8, bytes });
                }
            }
            Called { call, arguments, texts, result, duration_ns }
        },
    )
}

fn needed() -> impl Strategy<Value = Needed> {
    let file = (any::<u64>(), any::<Option<u64>>(), any::<bool>())
        .prop_map(|(bytes, allocated, seen)| What::File { bytes, allocated, seen });
    let what = prop_oneof![
        file,
        Just(What::Directory),
        path().prop_map(What::Link),
        path().prop_map(What::HardLink)
    ];
    (path(), what).prop_map(|(path, what)| Needed { path, what })
}

fn dropped() -> impl Strategy<Value = Dropped> {
    let call = prop_oneof![Just("any"), Just("read"), Just("io_submit")].prop_map(String::from);
    (call, ".{0,20}".prop_map(|why| one_line(&why)), any::<[u64; 4]>()).prop_map(
        |(call, why, [calls, bytes, requests, ns])| Dropped { call, why, calls, bytes, requests, ns },
    )
}

fn scheduling() -> impl Strategy<Value = Scheduling> {
    (0..Policy::ALL.len(), 0..=99_u8, -20..=19_i8).prop_map(|(row, priority, nice)| Scheduling {
        policy: Policy::ALL[row].0,
        priority,
        nice,
    })
}

/// Steps of up to a few threads, each of which is started by one that is there.
fn script() -> impl Strategy<Value = Script> {
    let action = prop_oneof![
        8 => called().prop_map(Action::Call),
        2 => any::<u64>().prop_map(Action::Compute),
        1 => Just(Action::Exec),
        1 => Just(Action::Start(0)),
        1 => Just(Action::Fork(0)),
    ];
    let notes = proptest::collection::vec(".{0,20}".prop_map(|note| one_line(&note)), 0..3);
    let steps = proptest::collection::vec((0_usize..100, action, 1_u32..1000), 0..20);
    let dropped = proptest::collection::vec(dropped(), 0..3);
    let needed = proptest::collection::vec(needed(), 0..4);
    (notes, prop::option::of(scheduling()), needed, dropped, steps).prop_map(|drawn| {
        let (notes, scheduling, needed, dropped, drawn) = drawn;
        let (mut steps, mut threads) = (Vec::new(), vec![0_u32]);
        for (which, mut action, number) in drawn {
            let thread = if steps.is_empty() { 0 } else { threads[which % threads.len()] };
            let number = threads.iter().max().unwrap() + number;
            if let Action::Start(new) | Action::Fork(new) = &mut action {
                *new = number;
                threads.push(number);
            }
            let forked = if let Action::Fork(new) = action { Some(new) } else { None };
            steps.push(Step { thread, action });
            if let Some(new) = forked.filter(|new| new % 2 == 0) {
                steps.push(Step { thread, action: Action::Wait(new) });
            }
        }
        Script { notes, scheduling, needed, dropped, steps }
    })
}

proptest! {
    #[test]
    fn a_script_that_was_written_is_read_as_it_was(script in script()) {
        prop_assert_eq!(check(&script), Ok(()));
        let text = text(&script);
        let parsed = parse("s", &text).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        prop_assert_eq!(&parsed.script, &script);
        let first = 2 + script.notes.len() + usize::from(script.scheduling.is_some()) + script.needed.len() + script.dropped.len();
        prop_assert_eq!(parsed.lines, (first as u32..).take(script.steps.len()).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_understood_is_written_in_the_same_way_ever_after(
        script in script(), cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
    ) {
        let mut text = self::text(&script);
        for (at, byte) in cuts {
            let at = at.index(text.len());
            if at > 15 {
                text[at] = byte;
            }
        }
        if let Ok(parsed) = parse("s", &text) {
            prop_assert_eq!(check(&parsed.script), Ok(()));
            let again = self::text(&parsed.script);
            let reparsed = parse("s", &again).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
            prop_assert_eq!(&reparsed.script, &parsed.script);
            prop_assert_eq!(self::text(&reparsed.script), again);
        }
    }

    #[test]
    fn any_bytes_are_a_script_or_an_error_of_three_lines(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), head in any::<bool>()
    ) {
        let text = if head { [b"etude script 1\n", &bytes[..]].concat() } else { bytes };
        if let Err(wrong) = parse("s", &text) {
            prop_assert_eq!(wrong.to_string().lines().count(), 3);
            prop_assert!(wrong.to_string().len() < 1000);
        }
    }

    #[test]
    fn words_in_any_order_do_no_harm(words in proptest::collection::vec(prop_oneof![
        Just("openat("), Just("AT_FDCWD"), Just(", "), Just("\"a"), Just("\""), Just("O_CREAT|"), Just("1<<"),
        Just("makedev("), Just(") = "), Just("-1"), Just(" ENOENT"), Just("<0.5>"), Just("["), Just("]"), Just("\n"),
        Just("pipe("), Just("compute("), Just("0x"), Just("file "), Just("at least"), Just("9999999999999999999999"),
        Just("\\"), Just("1: "), Just("fork(1)\n"), Just("wait("), Just("sendfile(3, 4, "), Just("fcntl(3, F_SETLK, "), Just("{l_type=F_RDLCK"), Just("}"), Just("é"), Just("#"),
    ], 0..30)) {
        let _ = parse("s", format!("etude script 1\n{}", words.concat()).as_bytes());
    }
}

const EXAMPLE: &str = "etude script 1
# recorded: tar cf x.tar src
file \"src/a.c\" 4096
file \"big\" 1048576 sparse 8192
file \"u\" at least 4096
directory \"src\"
link \"l\" to \"src/a.c\"
name \"b.c\" of \"src/a.c\"
0: openat(AT_FDCWD, \"etude_tmp1\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000012080>
0: compute(0.000020000)
0: start(1)
1: write(3, 24) = 24 <0.000004000>
0: fork(2)
0: wait(2)
2: exec()
0: pipe2([4, 5], O_CLOEXEC) = 0
0: sendfile(3, 4, [16], 100) = -1 EINVAL
0: fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=4096}) = 0
0: fcntl(3, F_OFD_SETLK, {l_type=F_UNLCK, l_whence=SEEK_END, l_start=-10, l_len=0}) = 0
0: mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000001000
0: link(\"a\", \"b\") = 0
0: close(3) = 0
";

#[test]
fn a_script_by_hand_is_read_and_written_as_it_is() {
    let parsed = parse("s", EXAMPLE.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(text(&parsed.script)).unwrap(), EXAMPLE);
    let single = "\n  etude script 1  \r\n\n#note\nfile \"a\" 0x10\n close( 3 )=0<1.5> # remark\r\n# remark\n\ncompute(1.5)";
    let parsed = parse("s", single.as_bytes()).unwrap();
    assert_eq!(parsed.lines, [6, 9]);
    assert_eq!(
        String::from_utf8(text(&parsed.script)).unwrap(),
        "etude script 1\n# note\nfile \"a\" 16\nclose(3) = 0 <1.500000000>\ncompute(1.500000000)\n"
    );
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    for (line, column, what) in [
        ("close(x) = 0", 7, "expected a descriptor, such as 3"),
        ("close() = 0", 7, "expected a descriptor, such as 3, argument 1 of close"),
        ("close(3, 4) = 0", 8, "expected ): close has 1 arguments here"),
        ("close(3 4) = 0", 7, "expected a descriptor, such as 3"),
        ("close(3) 0", 10, "expected = and what the call returned"),
        ("close(3) = -1", 14, "expected the name of an error behind -1, such as ENOENT"),
        ("close(3) = -1 ENO", 15, "expected the name of an error behind -1, such as ENOENT"),
        ("close(3) = x", 12, "expected what it returned: a number, or an error, such as -1 ENOENT"),
        (
            "close(3) = 0 <5>",
            15,
            "expected seconds with a point and at most nine decimals, such as 0.000004000",
        ),
        ("close(3) = 0 0", 14, "expected the end of the line"),
        ("clos(3) = 0", 1, "there is no call clos: docs/howto/scripts.md says which there are"),
        (
            "openat(AT_FDCWD, \"a, O_RDONLY) = 3",
            18,
            "this text has no end: expected a \" behind it, with \\\" for one within it",
        ),
        (
            "openat(AT_FDCWD, \"é\", O_RDWRITE) = 3",
            23,
            "expected flags, such as O_RDONLY or names joined by |",
        ),
        (
            "openat(AT_FDCWD, \"a\", O_RDWR|O_CREAT) = 3",
            37,
            "expected permissions, such as 0644, argument 4 of openat",
        ),
        ("read(3, 4096, 8) = 0", 13, "expected ): read has 2 arguments here"),
        ("unlink(\"a\\000\") = 0", 8, "a path or a name has no zero byte in it"),
        ("compute(1)", 9, "expected seconds with a point and at most nine decimals, such as 0.000020"),
        ("1: close(3) = 0", 1, "the first step is of thread 1: expected thread 0"),
        ("wait(1)", 1, "1 has not been forked: expected the number of a fork before"),
        ("start(0)", 1, "thread 0 is there already: expected a number that is new"),
        ("file \"a\"", 9, "expected the file's size in bytes, such as file \"a\" 4096, or at least 4096"),
        ("link \"a\" \"b\"", 10, "expected to and what the link says, such as link \"a\" to \"b\""),
        ("link \"a\" to \"\"", 13, "a path has at least one byte, and none that is zero"),
        (
            "nonsense",
            1,
            "expected a step, such as close(3) = 0 or compute(0.001), or what is needed, such as file \"a\" 4096",
        ),
    ] {
        let wrong = parse("s", format!("etude script 1\n{line}\n").as_bytes()).expect_err(line);
        let mark = format!("s:2:{column}: {what}\n    {line}\n    {}^", " ".repeat(column - 1));
        assert_eq!(wrong.to_string(), mark);
    }
    for (text, first) in [
        ("", "s:1:1: is empty: expected a script, whose first line is \"etude script 1\""),
        ("etude script 2\n", "s:1:1: a script of another version: expected \"etude script 1\""),
        (
            "etudetrc\u{1}",
            "s:1:1: this is a trace: make a script of it with etude script TRACE -o NEW.script",
        ),
        ("hello\n", "s:1:1: this is no script: expected \"etude script 1\" as the first line"),
        (
            "etude script 1\nexec()\nfile \"a\" 1\n",
            "s:3:1: what is needed stands above the first step: move this line up",
        ),
        (
            "etude script 1\nfork(1)\n2: exec()\n",
            "s:3:1: thread 2 has not been started: expected start(2) or fork(2) before",
        ),
        (
            "etude script 1\nfork(1)\nstart(2)\nwait(2)\n",
            "s:4:1: a process waits for those that it forked; 2 is none of them: expected the number of a fork before",
        ),
        (
            "etude script 1\nfork(1)\nwait(1)\nwait(1)\n",
            "s:4:1: 1 has been waited for already: leave this line out",
        ),
    ] {
        assert_eq!(parse("s", text.as_bytes()).expect_err(text).to_string().lines().next(), Some(first));
    }
}

#[test]
fn of_a_long_line_the_part_around_the_place_is_shown() {
    let line = format!("unlink(\"{}\", 3) = 0", "x".repeat(5000));
    let wrong = parse("s", format!("etude script 1\n{line}").as_bytes()).unwrap_err();
    assert_eq!(wrong.column, 5010);
    let shown = wrong.to_string();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[1].chars().nth(lines[2].chars().count() - 1), Some(','));
    assert!(lines[1].chars().count() < 120);
}
