//! What no program can have done, but a file may say that one did.

use std::fs::File;
use std::path::PathBuf;

use etude_calls::Call;
use etude_script::{Action, Options, Script, check, from_trace, ops, parse, write};
use etude_trace::{Event, Footer, Header, Meta, Text, Writer};

/// A trace that is removed with it.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn scripted(name: &str, metas: &[Meta], events: &[Event]) -> (Script, Vec<String>) {
    let made = Made(std::env::temp_dir().join(format!("etude-untrusted-{}-{name}", std::process::id())));
    let mut writer = Writer::create(File::create(&made.0).unwrap(), &Header::default()).unwrap();
    metas.iter().for_each(|meta| writer.meta(meta).unwrap());
    writer.events(0, events).unwrap();
    writer.finish(&Footer::default()).unwrap();
    let (script, report) = from_trace(&made.0, &Options::default()).unwrap();
    check(&script).unwrap();
    (script, report.lines())
}

fn event(name: &str, arguments: [u64; 6], path: Option<(u8, &[u8])>) -> Event {
    let texts = path.map(|(argument, bytes)| Text { argument, bytes: bytes.into() });
    let (call, texts) = (Call::named(name).unwrap(), texts.into_iter().collect());
    Event { start_ns: 10, duration_ns: u64::MAX - 10, call, result: 0, arguments, texts }
}

#[test]
fn calls_that_no_program_can_have_made_are_left_out() {
    let events = [
        event("stat", [0; 6], Some((0, b"a\0b"))),
        event("stat", [0; 6], Some((0, b"a\0b"))),
        event("close", [1 << 40, 0, 0, 0, 0, 0], None),
    ];
    let (script, report) = scripted("calls", &[], &events);
    assert!(script.steps.iter().all(|step| !matches!(step.action, Action::Call(_))), "{script:?}");
    assert!(report.iter().any(|line| line.contains("stat: path with a zero byte: 2 calls")), "{report:?}");
    assert!(report.iter().any(|line| line.contains("close: arguments that no call can have")), "{report:?}");
}

#[test]
fn a_process_that_begins_twice_is_waited_for_by_who_forked_it() {
    let process = |process, parent, at_ns| {
        let (executable, argv, cwd) = (String::new(), Vec::new(), "/w".into());
        Meta::Process { process, parent, pid: 100 + process, executable, argv, cwd, at_ns }
    };
    let ended = |process, at_ns| Meta::Ended { process, status: Some(0), signal: None, at_ns };
    let metas =
        [process(0, None, 0), process(1, Some(0), 10), process(0, None, 20), ended(1, 30), ended(0, 40)];
    let (script, _) = scripted("twice", &metas, &[]);
    assert!(script.steps.iter().all(|step| !matches!(step.action, Action::Wait(_))), "{script:?}");
}

#[test]
fn the_root_has_no_other_names() {
    for line in ["name \"b\" of \"/\"", "name \"/\" of \"b\"", "name \".\" of \"d/..\"\nfile \"c\" 1"] {
        let text =
            format!("etude script 1\n{line}\nlink(\"/\", \"x\") = 0\nrename(\"x\", \"/\") = 0\nsync() = 0\n");
        let script = parse("s", text.as_bytes()).unwrap().script;
        let whole = ops::cut(&script, 0, 1).unwrap();
        let mut text = Vec::new();
        write(&whole, &mut text).unwrap();
        assert_eq!(parse("s", &text).map(|parsed| parsed.script), Ok(whole));
    }
}
