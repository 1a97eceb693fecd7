//! What outlives its parent.

mod common;

use common::{Engine, Scratch, lives, number, sh, written_pid};
use serde_json::json;

fn daemon(pid: &str) -> String {
    format!(
        "setsid sh -c 'sh -c \"echo \\$\\$ >{pid}.new; mv {pid}.new {pid}; exec sleep 60\" &' & while ! test -s {pid}; do :; done"
    )
}

#[test]
fn a_daemon_is_ended_and_counted() {
    let scratch = Scratch::new("daemon");
    let pid = scratch.file("pid");
    let row = Engine::start().launch(json!([sh(&daemon(&pid))]), json!({})).remove(0);
    assert_eq!(row["exit_status"], 0);
    assert!(!lives(written_pid(&pid)));
    assert!(number(&row, "orphans") >= 1.0, "{row}");
}

#[test]
fn an_orphan_that_ends_by_itself_is_counted_with_its_time() {
    let script = "(sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' &) ; sleep 0.6";
    let row = Engine::start().launch(json!([sh(script)]), json!({})).remove(0);
    assert_eq!(number(&row, "orphans"), 1.0, "{row}");
    assert!(number(&row, "orphans_user") + number(&row, "orphans_system") > 0.01, "{row}");
}

#[test]
fn kept_processes_live_through_other_launches_until_the_end_request() {
    let scratch = Scratch::new("kept");
    let pid = scratch.file("pid");
    let mut engine = Engine::start();
    let row = engine.launch(json!([sh(&daemon(&pid))]), json!({"leftovers": "keep"})).remove(0);
    assert_eq!(row["exit_status"], 0);
    let pid = written_pid(&pid);
    let row = engine.launch(json!([sh("sleep 60 & exit 0")]), json!({})).remove(0);
    assert_eq!(number(&row, "orphans"), 1.0, "the measured leftover is ended, {row}");
    assert!(lives(pid));
    let answer = engine.ask(&json!({"do": "end", "id": 9}));
    assert_eq!(answer, json!({"id": 9, "ended": 1}));
    assert!(!lives(pid));
    assert_eq!(engine.ask(&json!({"do": "end", "id": 10})), json!({"id": 10, "ended": 0}));
}

#[test]
fn a_kept_server_can_go_on_writing_to_its_captured_streams() {
    let scratch = Scratch::new("writer");
    let pid = scratch.file("pid");
    let mut engine = Engine::start();
    let script = format!("(echo begun; sh -c 'echo $$ >{pid}; yes'; echo ended >{pid}) & sleep 0.1");
    let worker = json!({"argv": ["sh", "-c", script], "stdout": "capture"});
    engine.launch(json!([worker]), json!({"leftovers": "keep"}));
    let pid = written_pid(&pid);
    engine.launch(json!([{"argv": ["sleep", "0.3"]}]), json!({}));
    assert!(lives(pid), "neither blocked nor ended by SIGPIPE");
    assert!(engine.ask(&json!({"do": "end", "id": 9}))["ended"].as_u64() >= Some(1));
    assert!(!lives(pid));
}

#[test]
fn kept_processes_do_not_outlive_the_engine() {
    let scratch = Scratch::new("outlive");
    let pid = scratch.file("pid");
    let mut engine = Engine::start();
    engine.launch(json!([sh(&daemon(&pid))]), json!({"leftovers": "keep"}));
    let pid = written_pid(&pid);
    assert!(lives(pid));
    engine.finish();
    assert!(!lives(pid));
}
