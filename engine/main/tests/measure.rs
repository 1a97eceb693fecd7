//! `aptime`, as a benchmark script uses it.

mod common;

use std::process::{Command, Output, Stdio};

use common::Scratch;

fn aptime(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptime"));
    for name in ["APLOG", "APTHREAD", "APEPOCH", "APIPCKEY"] {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied()).output().expect("aptime starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn a_block_follows_the_command_on_standard_error() {
    let output = aptime(&["sh", "-c", "echo out; echo err >&2; exit 7"], &[]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), "out\n"));
    let expected = "err\n[measurement]\nthread = 1\nepoch = 1\ncommand = sh -c 'echo out; echo err >&2; exit 7'\nuser = ";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("\nstatus = 7\n"));
}

#[test]
fn blocks_are_appended_to_the_log_of_the_environment() {
    let scratch = Scratch::new("aplog");
    let log = scratch.file("log");
    for epoch in ["3", "4"] {
        assert!(
            aptime(&["true"], &[("APLOG", &log), ("APTHREAD", "2"), ("APEPOCH", epoch)]).status.success()
        );
    }
    let text = std::fs::read_to_string(&log).expect("a log");
    let heads: Vec<_> = text
        .split("[measurement]\n")
        .skip(1)
        .map(|block| block.lines().take(2).collect::<Vec<_>>())
        .collect();
    assert_eq!(heads, [["thread = 2", "epoch = 3"], ["thread = 2", "epoch = 4"]]);
}

#[test]
fn exit_statuses_are_those_of_a_shell() {
    let untouched = std::env::temp_dir().join(format!("etude-untouched-{}", std::process::id()));
    let touched = untouched.to_str().expect("a path of ours");
    for (arguments, expected) in [
        (&["sh", "-c", "kill -9 $$"][..], 137),
        (&["no-such-program"], 127),
        (&["/etc/passwd"], 126),
        (&[], 2),
        (&["--thread", "x", "true"], 2),
        (&["-o", "/nowhere/log", "touch", touched], 5),
        (&["-o", "/dev/full", "true"], 5),
    ] {
        let output = aptime(arguments, &[]);
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {}", text(&output.stderr));
    }
    assert!(!untouched.exists(), "said before the command is run");
    assert_eq!(aptime(&["true"], &[("APEPOCH", "x")]).status.code(), Some(2));
}

#[test]
fn one_json_object_on_request() {
    let output = aptime(&["--json", "--epoch", "9", "--", "true"], &[]);
    let value: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!(
        (&value["epoch"], &value["status"], &value["command"][0]),
        (&9.into(), &0.into(), &"true".into())
    );
}

#[test]
fn a_measurement_says_when_it_began() {
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place for the answer.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let (before, output, after) = (now(), aptime(&["--json", "--", "date", "-u", "+%FT%H:"], &[]), now());
    let value: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert!((before..after).contains(&value["start_ns"].as_u64().expect("a stamp")), "{value}");
    let start = value["start"].as_str().expect("a time of day");
    assert!(start.len() == 30 && start.ends_with('Z'), "{start}");
    // Its hour is the command's own, but for a run across the hour.
    let begun = &start[..14];
    let again = aptime(&["date", "-u", "+%FT%H:"], &[]);
    assert!([&output, &again].iter().any(|output| text(&output.stdout).trim() == begun), "{start}");
}

#[test]
fn a_worker_alone_does_not_wait_at_the_barrier() {
    assert!(aptime(&["--barrier", "true"], &[]).status.success());
    assert!(aptime(&["--barrier", "true"], &[("APIPCKEY", "")]).status.success());
}

#[test]
fn a_barrier_that_is_not_there_is_one_line_and_the_command_is_not_run() {
    let scratch = Scratch::new("no-barrier");
    let (log, made) = (scratch.file("log"), scratch.file("made"));
    for address in ["/nowhere:0", "/dev/null:0", "x", "/proc/self/fd/99:0"] {
        let output = aptime(&["--barrier", "-o", &log, "touch", &made], &[("APIPCKEY", address)]);
        assert_eq!(output.status.code(), Some(5));
        let error = text(&output.stderr);
        assert!(error.starts_with(&format!("aptime: APIPCKEY={address}: no barrier: ")), "{error}");
        assert!(error.ends_with("; the command was not run\n") && error.lines().count() == 1, "{error}");
        assert!(!std::path::Path::new(&made).exists());
        assert!(std::fs::read_to_string(&log).is_ok_and(|log| log.is_empty()));
        assert!(aptime(&["true"], &[("APIPCKEY", address)]).status.success(), "nobody asked for the barrier");
    }
}

#[test]
fn a_signal_of_the_terminal_reaches_the_command_and_the_result_is_written() {
    use std::os::unix::process::CommandExt;
    for (signal, target) in [("INT", "-"), ("TERM", "")] {
        let script = format!("trap 'exit 3' {signal}; echo ready; while :; do sleep 0.05; done");
        // A shell cannot trap what was ignored at its start, as SIGINT is of tests that run in the background.
        let mut command = Command::new("env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_aptime"), "sh", "-c", &script]);
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("aptime starts");
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut ready).expect("ready");
        let to = format!("{target}{}", child.id());
        Command::new("kill").args(["-s", signal, "--", &to]).status().expect("kill");
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(3), "{signal}");
        assert!(text(&output.stderr).contains("status = 3\n"));
    }
}
