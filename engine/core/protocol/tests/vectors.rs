//! The examples that both sides of the boundary are checked against.

use etude_protocol::{Counting, Line, Reply, Request, Row, parse};
use serde_json::Value;

fn vectors() -> Vec<(String, Value)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/vectors/boundary.jsonl");
    let text = std::fs::read_to_string(path).expect("the vectors");
    let vector = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        (line["kind"].as_str().expect("a kind").to_owned(), line["value"].take())
    };
    text.lines().map(vector).collect()
}

#[test]
fn every_vector_is_understood_and_written_as_it_stands() {
    for (kind, value) in vectors() {
        match kind.as_str() {
            "launch" | "end" | "cancel" | "release" | "clock" | "processes" => check_request(&value),
            "row" => {
                let row: Row = serde_json::from_value(value.clone()).expect("a row");
                assert_eq!(serde_json::to_value(&row).expect("JSON"), value);
            }
            "journal" => check_journal(&value),
            "refused" => {
                let (id, error) = parse(value.to_string().as_bytes()).expect_err("no request");
                assert_eq!(id, value.get("id").cloned().unwrap_or_default());
                assert!(error.starts_with("request: ") && !error.contains('\n'), "{error}");
            }
            kind => check_reply(kind, &value),
        }
    }
}

/// What a request says is kept; members with defaults may be added, unknown ones are dropped.
fn check_request(value: &Value) {
    let request = parse(value.to_string().as_bytes()).expect("a request");
    let written = serde_json::to_value(&request).expect("JSON");
    for (name, member) in value.as_object().expect("an object") {
        if name != "member_of_a_later_version" && name != "workers" {
            assert_eq!(&written[name], member, "{name}");
        }
    }
    assert_eq!(parse(written.to_string().as_bytes()), Ok(request));
}

fn check_reply(kind: &str, value: &Value) {
    let reply: Reply = serde_json::from_value(value.clone()).expect("a reply");
    let is_that = match reply {
        Reply::Hello { .. } => kind == "hello",
        Reply::Rows { .. } => kind == "rows",
        Reply::Progress { .. } => kind == "progress",
        Reply::Done { .. } => kind == "done",
        Reply::Ended { .. } => kind == "ended",
        Reply::Error { .. } => kind == "error",
        Reply::Ready { .. } => kind == "ready",
        Reply::Clock { .. } => kind == "clock told",
        Reply::Processes { .. } => kind == "processes told",
    };
    assert!(is_that, "{kind} is read as {reply:?}");
    assert_eq!(&serde_json::to_value(&reply).expect("JSON"), value);
}

fn check_journal(value: &Value) {
    let row: Row = serde_json::from_value(value.clone()).expect("a row");
    let mut head = value.as_object().expect("an object").clone();
    head.retain(|name, _| !Line::OWN.contains(&name.as_str()));
    let number = |name: &str| value[name].as_u64().expect("a number");
    let (trial, block) = (number("trial"), number("block"));
    let line = Line { head: &head, trial, block, kept: false, why: Some("failed"), row: &row };
    assert_eq!(&serde_json::to_value(&line).expect("JSON"), value);
}

#[test]
fn a_request_with_defaults_says_what_they_are() {
    let request = parse(br#"{"do":"launch","id":1,"workers":[{"argv":["true"]}]}"#);
    let Ok(Request::Launch(launch)) = request else { panic!("{request:?}") };
    assert_eq!(
        (launch.grace_s, launch.inner, launch.capture_bytes, launch.counters),
        (2.0, 1, 4096, Counting::Off)
    );
}
