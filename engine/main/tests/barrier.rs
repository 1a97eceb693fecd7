//! `aptime --barrier` in the workers of the real engine.

mod common;

use std::fs;
use std::path::Path;

use common::{Engine, Scratch, eventually, request, written_pid};
use serde_json::{Value, json};

const APTIME: &str = env!("CARGO_BIN_EXE_aptime");

/// A worker whose script has `$0` for aptime with a barrier, and writes to its standard streams.
fn worker(script: &str) -> Value {
    let script = script.replace("MEET", "\"$0\" --barrier --json");
    json!({"argv": ["sh", "-c", script, APTIME], "stdout": "capture", "stderr": "capture",
           "env": {"APLOG": null, "APTHREAD": null, "APEPOCH": null}})
}

/// A worker that writes its process to a file, and waits.
fn waiter(pid: &str) -> Value {
    worker(&format!("echo $$ >{pid}; exec \"$0\" --barrier true"))
}

/// Whether SIGTERM is in a set of /proc/PID/status. What waits at the barrier catches it.
fn has_sigterm(pid: u32, set: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let signals = status.lines().find_map(|line| line.strip_prefix(set)).unwrap_or_default();
    u64::from_str_radix(signals.trim(), 16).unwrap_or_default() >> (libc::SIGTERM - 1) & 1 == 1
}

/// Whether it has arrived at the barrier: it waits in a futex.
fn waits(pid: u32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    has_sigterm(pid, "SigCgt:") && call.split(' ').next() == Some(&libc::SYS_futex.to_string())
}

/// The state of a process, as ps prints it.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn inside() -> Value {
    json!({"barrier": "inside", "grace_s": 10})
}

/// The measurements in a worker's standard error.
fn measured(row: &Value) -> Vec<Value> {
    let text = row["stderr"]["tail"].as_str().unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"))).collect()
}

fn started(measured: &Value) -> u64 {
    measured["start_ns"].as_u64().unwrap_or_else(|| panic!("no stamp: {measured}"))
}

fn said(row: &Value) -> &str {
    row["stderr"]["tail"].as_str().unwrap_or_default()
}

fn notes(rows: &[Value]) -> Vec<&Value> {
    rows.iter().map(|row| &row["notes"]).collect()
}

#[test]
fn commands_start_together_whatever_came_before() {
    let mut engine = Engine::start();
    for workers in [2, 5] {
        let scripts = (0..workers).map(|n| worker(&format!("sleep 0.0{n}; MEET true; MEET true; MEET true")));
        let rows = engine.launch(scripts.collect(), inside());
        for round in 0..3 {
            let starts: Vec<_> = rows.iter().map(|row| started(&measured(row)[round])).collect();
            let spread = starts.iter().max().zip(starts.iter().min()).map(|(last, first)| last - first);
            println!("{workers} workers: first to last start {} us", spread.unwrap_or(0) / 1000);
            if round > 0 {
                let ended = |row: &Value| {
                    let before = &measured(row)[round - 1];
                    started(before) + (before["elapsed"].as_f64().expect("s") * 1e9) as u64
                };
                let last_end = rows.iter().map(ended).max();
                assert!(starts.iter().min().copied() >= last_end, "nobody starts before all are back");
            }
        }
        assert!(rows.iter().all(|row| row["exit_status"] == 0 && row.get("notes").is_none()), "{rows:?}");
    }
    engine.finish();
}

#[test]
fn the_address_is_told_to_several_workers_only_if_asked_for() {
    let mut engine = Engine::start();
    let tell = || json!({"argv": ["sh", "-c", "echo ${APIPCKEY-none}"], "stdout": "capture"});
    let mut inherits = tell();
    inherits["env"] = json!({"APIPCKEY": "of another trial"});
    let address = |row: &Value| row["stdout"]["tail"].as_str().expect("text").trim().to_owned();
    assert_eq!(address(&engine.launch(json!([tell(), tell()]), json!({}))[1]), "none");
    assert_eq!(address(&engine.launch(json!([inherits.clone()]), inside())[0]), "none");
    let rows = engine.launch(json!([tell(), inherits]), inside());
    let own = format!("/proc/{}/fd/", engine.pid());
    for (worker, row) in rows.iter().enumerate() {
        let address = address(row);
        assert!(address.starts_with(&own) && address.ends_with(&format!(":{worker}")), "{address}");
        let (path, _) = address.rsplit_once(':').expect("a worker");
        eventually("nothing of the barrier is left", || !Path::new(path).exists());
    }
    assert_eq!(engine.launch(json!([worker("MEET true")]), inside())[0]["exit_status"], 0);
}

#[test]
fn an_early_end_ends_the_trial_with_its_reason() {
    let scratch = Scratch::new("early");
    let mut engine = Engine::start();
    for (end, how) in [("exit 3", "exit status 3"), ("kill -9 $$", "signal 9"), ("true", "exit status 0")] {
        let made = scratch.file("made");
        let ready = [scratch.file("0"), scratch.file("1")];
        let waits = |n: usize| worker(&format!("echo >{}; MEET touch {made}; sleep 60", ready[n]));
        let both = format!("until test -e {} -a -e {}; do sleep 0.01; done", ready[0], ready[1]);
        let early = worker(&format!("{both}; rm {} {}; sleep 0.2; {end}", ready[0], ready[1]));
        let rows = engine.launch(json!([waits(0), waits(1), early]), inside());
        let reason = format!("worker 2 ({how}) ended before all workers had reached the barrier");
        assert_eq!(notes(&rows), [&json!([reason]); 3]);
        assert_eq!(rows[2]["cancelled"], false);
        for row in &rows[..2] {
            assert_eq!(row["cancelled"], true, "{row}");
            let expected = "aptime: the barrier was broken: worker 2 ended before all had reached it\n";
            assert_eq!(said(row), expected);
        }
        assert!(!Path::new(&made).exists(), "the command is not run");
        assert_eq!(
            engine.launch(json!([worker("MEET true"), worker("MEET true")]), inside())[0]["exit_status"],
            0
        );
    }
}

#[test]
fn who_comes_too_late_is_sent_away_with_a_status_of_its_own() {
    let scratch = Scratch::new("late");
    let [status, error, other, alone] = ["status", "error", "other", "alone"].map(|name| scratch.file(name));
    // A script that outlives SIGTERM, so that it can tell what it saw: its status, and that the other was
    // ended. The engine does not read what it writes.
    let mut late = worker(&format!(
        "trap '' TERM; until test -s {other}; do sleep 0.01; done; sleep 0.1; MEET true; echo $? >{status}; \
         for i in $(seq 400); do kill -0 $(cat {other}) 2>/dev/null || break; sleep 0.01; done; \
         test $i -lt 400 && echo >{alone}"
    ));
    late["stderr"] = json!({"file": error});
    let other = worker(&format!("echo $$ >{other}; exec sleep 60"));
    let rows = Engine::start().launch(json!([worker("exit 0"), late, other]), inside());
    assert_eq!(fs::read_to_string(&status).expect("a status").trim(), "125");
    let reason = "worker 0 (exit status 0) ended before all workers had reached the barrier";
    assert_eq!(notes(&rows), [&json!([reason]); 3]);
    let cancelled: Vec<_> = rows.iter().map(|row| &row["cancelled"]).collect();
    assert_eq!(cancelled, [&json!(false), &json!(true), &json!(true)]);
    assert!(Path::new(&alone).exists(), "the engine hears of it at once");
    let error = fs::read_to_string(&error).expect("an error");
    assert!(error.contains("worker 0 ended"), "{error}");
}

/// The one that waits is stopped meanwhile, so that SIGTERM is there before it can say anything.
#[test]
fn who_is_sent_away_says_so_before_it_heeds_sigterm() {
    let scratch = Scratch::new("shield");
    let [pid, go] = ["pid", "go"].map(|name| scratch.file(name));
    let slow = waiter(&pid);
    let early = worker(&format!("while ! test -e {go}; do sleep 0.01; done; exit 3"));
    let mut engine = Engine::start();
    engine.send(&request(
        json!([slow, worker("MEET true"), early]),
        json!({"barrier": "inside", "grace_s": 60}),
    ));
    let pid = written_pid(&pid);
    let kill = |signal: i32| {
        // SAFETY: takes integers only.
        unsafe { libc::kill(pid as i32, signal) };
    };
    eventually("it waits", || waits(pid));
    kill(libc::SIGSTOP);
    eventually("it has stopped", || state_of(pid) == Some('T'));
    fs::write(&go, "").expect("written");
    eventually("SIGTERM is sent", || has_sigterm(pid, "ShdPnd:"));
    kill(libc::SIGCONT);
    let answer = engine.receive();
    let row = &answer["rows"][0];
    assert_eq!((&row["exit_status"], &row["cancelled"]), (&json!(125), &json!(true)), "{row}");
    assert_eq!(said(row), "aptime: the barrier was broken: worker 2 ended before all had reached it\n");
}

#[test]
fn an_end_that_nobody_waits_for_disturbs_nobody() {
    let mut engine = Engine::start();
    let rows = engine.launch(
        json!([worker("MEET true"), worker("MEET sleep 0.2; sleep 0.1"), worker("MEET false; exit 0")]),
        inside(),
    );
    assert!(rows.iter().all(|row| row["exit_status"] == 0 && row.get("notes").is_none()), "{rows:?}");
    assert_eq!(measured(&rows[2])[0]["status"], 1);
    let rows = engine.launch(json!([worker("exit 0"), worker("sleep 0.1")]), inside());
    assert!(rows.iter().all(|row| row["exit_status"] == 0 && row.get("notes").is_none()), "{rows:?}");
}

#[test]
fn a_waiting_command_can_be_given_up_and_tried_again() {
    let scratch = Scratch::new("again");
    let given_up = scratch.file("given-up");
    let impatient =
        worker(&format!("timeout -k 9 0.2 \"$0\" --barrier true; echo $? >{given_up}; sleep 0.3; MEET true"));
    let patient = worker(&format!("while ! test -s {given_up}; do sleep 0.01; done; MEET true"));
    let waits = worker("MEET true");
    let rows = Engine::start().launch(json!([impatient, patient, waits]), inside());
    assert_eq!(fs::read_to_string(&given_up).expect("a status").trim(), "124", "SIGTERM ends a wait");
    let starts: Vec<_> = rows.iter().map(|row| started(measured(row).last().expect("one"))).collect();
    assert_eq!(starts.len(), 3);
    assert!(rows.iter().all(|row| row["exit_status"] == 0 && row.get("notes").is_none()), "{rows:?}");
}

#[test]
fn a_timeout_and_a_cancel_reach_those_that_wait() {
    let scratch = Scratch::new("cancel");
    let pid = scratch.file("pid");
    let mut engine = Engine::start();
    let workers = || json!([waiter(&pid), worker("sleep 60; true")]);
    let rows = engine.launch(workers(), json!({"barrier": "inside", "timeout_s": 0.3}));
    assert!(rows.iter().all(|row| row["timed_out"] == true && row.get("notes").is_none()), "{rows:?}");
    fs::remove_file(&pid).expect("removed");
    engine.send(&request(workers(), inside()));
    let waits = written_pid(&pid);
    eventually("it waits", || has_sigterm(waits, "SigCgt:"));
    let answer = engine.ask(&json!({"do": "cancel"}));
    let rows = answer["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["cancelled"] == true && row.get("notes").is_none()), "{rows:?}");
    assert_eq!(said(&rows[0]), "aptime: the barrier was broken: the trial is being ended\n");
}

#[test]
fn each_trial_of_a_repetition_has_a_whole_barrier() {
    let scratch = Scratch::new("repeat");
    let (journal, count) = (scratch.file("journal"), scratch.file("count"));
    let again = json!({"barrier": "inside",
                       "repeat": {"count": 20, "journal": journal, "trial": 1, "block": 1, "head": {}}});
    let workers = json!([worker("MEET true"), worker("MEET true; MEET true || true")]);
    let done = Engine::start().repeat(workers, again.clone());
    assert_eq!(done["stopped"], "failed", "the second waits for one that has ended: {done}");
    let fails = worker(&format!("echo >>{count}; test $(wc -l <{count}) -lt 5 || exit 3; MEET true"));
    let done = Engine::start().repeat(json!([fails, worker("MEET true")]), again);
    assert_eq!((&done["done"], &done["stopped"]), (&json!(5), &json!("failed")));
    let text = fs::read_to_string(&journal).expect("a journal");
    let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert!(last["notes"][0].as_str().is_some_and(|note| note.contains("exit status 3")), "{last}");
}
