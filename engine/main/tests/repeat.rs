//! Repetitions and their journal.

mod common;

use std::fs;
use std::process::Command;
use std::time::Duration;

use common::{Engine, Scratch, request, sh};
use serde_json::{Value, json};

fn lines(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a journal");
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is cut short");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn repeat(count: u64, journal: &str) -> Value {
    json!({"repeat": {"count": count, "journal": journal, "trial": 5, "block": 2, "head": {"test": "x", "worker": 99}}})
}

#[test]
fn every_trial_has_its_whole_line() {
    let scratch = Scratch::new("lines");
    let journal = scratch.file("journal");
    let done = Engine::start().repeat(json!([{"argv": ["true"]}, {"argv": ["true"]}]), repeat(50, &journal));
    assert_eq!(done, json!({"id": 1, "done": 50, "stopped": null}));
    let lines = lines(&journal);
    assert_eq!(lines.len(), 100);
    for (index, line) in lines.iter().enumerate() {
        let trial = index as u64 / 2;
        assert_eq!((&line["test"], &line["worker"]), (&json!("x"), &json!(index % 2)));
        assert_eq!((&line["trial"], &line["block"]), (&json!(5 + trial), &json!(2 + trial)));
        assert_eq!((&line["kept"], &line["why"]), (&json!(true), &Value::Null));
        assert!(line["metrics"]["elapsed"][0].as_f64() > Some(0.0));
    }
}

#[test]
fn a_failed_trial_is_written_and_stops() {
    let scratch = Scratch::new("failed");
    let (journal, count) = (scratch.file("journal"), scratch.file("count"));
    let script = format!("echo x >>{count}; test $(wc -l <{count}) -lt 3");
    let done = Engine::start().repeat(json!([sh(&script)]), repeat(10, &journal));
    assert_eq!(done, json!({"id": 1, "done": 3, "stopped": "failed"}));
    let lines = lines(&journal);
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[2]["kept"], &lines[2]["why"]), (&json!(false), &json!("failed")));
    fs::remove_file(&count).expect("removed");
    let mut any = repeat(10, &journal);
    any["accept"] = json!("any");
    assert_eq!(Engine::start().repeat(json!([sh(&script)]), any)["done"], 10);
}

#[test]
fn a_repetition_is_cancelled_and_tells_its_progress() {
    let scratch = Scratch::new("cancel");
    let journal = scratch.file("journal");
    let mut engine = Engine::start();
    engine.send(&request(json!([{"argv": ["sleep", "0.02"]}]), repeat(100_000, &journal)));
    let first = engine.receive();
    assert!(first["progress"].as_u64() > Some(0), "{first}");
    engine.send(&json!({"do": "cancel"}));
    let done = loop {
        let answer = engine.receive();
        if answer.get("done").is_some() {
            break answer;
        }
    };
    assert_eq!(done["stopped"], "cancelled");
    let lines = lines(&journal);
    assert_eq!(Some(lines.len() as u64), done["done"].as_u64());
    assert!(lines[..lines.len() - 1].iter().all(|line| line["kept"] == true));
}

#[test]
fn a_journal_that_cannot_be_continued_is_refused() {
    let scratch = Scratch::new("torn");
    let journal = scratch.file("journal");
    fs::write(&journal, "{\"torn").expect("written");
    let mut engine = Engine::start();
    let answer = engine.repeat(json!([{"argv": ["true"]}]), repeat(1, &journal));
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("cut short")), "{answer}");
    let answer = engine.repeat(json!([{"argv": ["true"]}]), repeat(1, "/nowhere/journal"));
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("/nowhere/journal")), "{answer}");
}

/// Runs the engine in a mount namespace of its own, on a tmpfs of 1 MiB that fills up.
#[test]
fn a_full_file_system_stops_with_whole_lines() {
    let scratch = Scratch::new("full");
    let folder = scratch.file("small");
    fs::create_dir(&folder).expect("a mount point");
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        println!("skipped: needs root and mount namespaces");
        return;
    }
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size=1m none {folder} && exec \"$0\" serve");
    command.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_etude-engine")]);
    let mut engine = Engine::from(command);
    let done = engine.repeat(json!([{"argv": ["true"]}]), repeat(100_000, &format!("{folder}/journal")));
    assert!(done["stopped"].as_str().is_some_and(|why| why.starts_with("journal: ")), "{done}");
    let lines = lines(&format!("/proc/{}/root{folder}/journal", engine.pid()));
    assert!(lines.len() > 100);
    assert_eq!(done["done"].as_u64(), Some(lines.len() as u64));
}

#[test]
fn a_killed_engine_leaves_whole_lines() {
    let scratch = Scratch::new("killed");
    let journal = scratch.file("journal");
    let mut engine = Engine::start();
    engine.send(&request(json!([{"argv": ["true"]}]), repeat(1_000_000, &journal)));
    std::thread::sleep(Duration::from_millis(300));
    engine.process.kill().expect("killed");
    engine.process.wait().expect("reaped");
    assert!(!lines(&journal).is_empty());
}
