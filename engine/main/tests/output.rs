//! What is printed where nobody reads it, or where there is no room.

use std::fs::File;
use std::process::{Command, Output, Stdio};

const VERBS: [&str; 4] = ["load", "replay", "record", "residency"];

fn help(verb: &str, to: impl Into<Stdio>) -> Output {
    let mut engine = Command::new(env!("CARGO_BIN_EXE_etude-engine"));
    engine.args([verb, "--help"]).stdout(to).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for verb in VERBS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = help(verb, writer);
        assert_eq!((said.status.code(), said.stderr.as_slice()), (Some(141), &b""[..]), "{verb}");
    }
}

#[test]
fn a_full_disk_is_one_line() {
    for verb in VERBS {
        let said = help(verb, File::options().write(true).open("/dev/full").unwrap());
        let lines = String::from_utf8(said.stderr).unwrap();
        assert_eq!((said.status.code(), lines.lines().count()), (Some(5), 1), "{verb}: {lines}");
        assert!(lines.contains("No space left on device"), "{lines}");
    }
}
