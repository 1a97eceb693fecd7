//! Launches that start at an instant which is told, as workers on several machines do.

mod common;

use common::{Engine, request, sh};
use serde_json::{Value, json};

const AHEAD_NS: u64 = 100_000_000;
const APTIME: &str = env!("CARGO_BIN_EXE_aptime");

/// The clock of the starts, ns.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn told() -> Value {
    json!({"release": "told", "grace_s": 5})
}

/// Releases launch 1 at `at_ns`; the next answer.
fn release(engine: &mut Engine, at_ns: u64) -> Value {
    engine.ask(&json!({"do": "release", "id": 1, "at_ns": at_ns}))
}

fn started(row: &Value) -> u64 {
    row["start_ns"].as_u64().unwrap_or_else(|| panic!("not started: {row}"))
}

#[test]
fn workers_stand_ready_and_start_at_the_instant_that_is_told() {
    let mut engine = Engine::start();
    for workers in 1..4 {
        let answer = engine.ask(&request((0..workers).map(|_| sh("exit 0")).collect(), told()));
        assert_eq!(answer, json!({"id": 1, "ready": workers}));
        let at_ns = monotonic_ns() + AHEAD_NS;
        let answer = release(&mut engine, at_ns);
        for row in answer["rows"].as_array().expect("rows") {
            assert!(started(row) >= at_ns && row["exit_status"] == 0, "{row}");
        }
        println!("{workers} workers: {} us late", (started(&answer["rows"][0]) - at_ns) / 1000);
    }
    engine.finish();
}

#[test]
fn an_instant_that_has_passed_starts_nobody() {
    let mut engine = Engine::start();
    engine.ask(&request(json!([sh("exit 0"), sh("exit 0")]), told()));
    let answer = release(&mut engine, monotonic_ns() - 1);
    for row in answer["rows"].as_array().expect("rows") {
        let error = row["error"].as_str().expect("a reason");
        assert!(error.contains("the start time arrived") && row["start_ns"].is_null(), "{row}");
    }
    engine.finish();
}

#[test]
fn who_stands_ready_can_be_sent_away() {
    let mut engine = Engine::start();
    engine.ask(&request(json!([sh("exit 0")]), told()));
    let answer = engine.ask(&json!({"do": "cancel"}));
    assert_eq!((&answer["rows"][0]["cancelled"], &answer["rows"][0]["start"]), (&json!(true), &Value::Null));
    engine.ask(&request(json!([sh("exit 0")]), told()));
    engine.send(&json!({"do": "release", "id": 1, "at_ns": monotonic_ns() + 1000 * AHEAD_NS}));
    let answer = engine.ask(&json!({"do": "cancel"}));
    assert_eq!(answer["rows"][0]["cancelled"], json!(true), "also when the instant is known already");
    engine.finish();
}

#[test]
fn the_release_of_another_launch_is_none() {
    let mut engine = Engine::start();
    engine.send(&json!({"do": "release", "id": 1, "at_ns": 1}));
    let mut other = request(json!([sh("exit 0")]), told());
    other["id"] = json!(2);
    assert_eq!(engine.ask(&other), json!({"id": 2, "ready": 1}));
    engine.send(&json!({"do": "release", "id": 1, "at_ns": 1}));
    let at_ns = monotonic_ns() + AHEAD_NS;
    let answer = engine.ask(&json!({"do": "release", "id": 2, "at_ns": at_ns}));
    assert!(started(&answer["rows"][0]) >= at_ns, "{answer}");
    engine.finish();
}

#[test]
fn one_that_cannot_be_started_is_never_ready() {
    let mut engine = Engine::start();
    let answer = engine.ask(&request(json!([sh("exit 0"), {"argv": ["no-such-program"]}]), told()));
    assert_eq!(answer["rows"][0]["cancelled"], json!(true), "{answer}");
    assert!(answer["rows"][1]["error"].as_str().expect("why").contains("not found"), "{answer}");
    engine.finish();
}

#[test]
fn the_barrier_inside_the_workers_is_released_as_well_each_time() {
    let mut engine = Engine::start();
    let script = "\"$0\" --barrier --json true && \"$0\" --barrier --json true";
    let worker = json!({"argv": ["sh", "-c", script, APTIME], "stderr": "capture", "env": {"APLOG": null}});
    for workers in [1, 3] {
        let more = json!({"release": "told", "barrier": "inside", "grace_s": 5});
        engine.send(&request((0..workers).map(|_| worker.clone()).collect(), more));
        let mut instants = Vec::new();
        for _ in 0..3 {
            assert_eq!(engine.receive(), json!({"id": 1, "ready": workers}));
            instants.push(monotonic_ns() + AHEAD_NS);
            engine.send(&json!({"do": "release", "id": 1, "at_ns": instants.last()}));
        }
        let answer = engine.receive();
        for row in answer["rows"].as_array().expect("rows") {
            assert_eq!(row["exit_status"], json!(0), "{row}");
            let said = row["stderr"]["tail"].as_str().expect("measured");
            let starts: Vec<_> =
                said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect();
            assert_eq!(starts.len(), 2);
            for (start, instant) in starts.iter().zip(&instants[1..]) {
                assert!(started(start) >= *instant, "{start} {instant}");
            }
        }
    }
    engine.finish();
}

#[test]
fn a_late_release_of_the_barrier_inside_ends_the_trial_with_its_reason() {
    let mut engine = Engine::start();
    let worker = json!({"argv": [APTIME, "--barrier", "true"], "stderr": "capture", "env": {"APLOG": null}});
    engine.ask(&request(json!([worker]), json!({"release": "told", "barrier": "inside", "grace_s": 5})));
    assert_eq!(release(&mut engine, monotonic_ns() + AHEAD_NS)["ready"], json!(1));
    let answer = release(&mut engine, 1);
    let row = &answer["rows"][0];
    assert!(row["notes"][0].as_str().expect("a note").contains("the start time arrived"), "{row}");
    assert_eq!(row["cancelled"], json!(true), "{row}");
    engine.finish();
}

#[test]
fn repetitions_cannot_be_told_when_to_start() {
    let mut engine = Engine::start();
    for more in
        [json!({"inner": 2}), json!({"repeat": {"count": 2, "journal": "/dev/null", "trial": 1, "block": 1}})]
    {
        let mut asked = request(json!([sh("exit 0")]), more);
        asked["release"] = json!("told");
        let error = engine.ask(&asked)["error"].take();
        assert!(error.as_str().expect("refused").contains("release"), "{error}");
    }
    engine.finish();
}

#[test]
fn the_clock_is_that_of_the_starts() {
    let mut engine = Engine::start();
    let before = monotonic_ns();
    let answer = engine.ask(&json!({"do": "clock", "id": 5}));
    let told = answer["clock_ns"].as_u64().expect("ns");
    assert!((before..=monotonic_ns()).contains(&told) && answer["id"] == 5, "{answer}");
    engine.finish();
}

#[test]
fn processes_are_told_by_their_name() {
    let mut engine = Engine::start();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", engine.pid())).expect("it lives");
    let answer = engine.ask(&json!({"do": "processes", "id": 6, "names": [name.trim_end()]}));
    let own = json!(engine.pid());
    let found = answer["processes"].as_array().expect("a list").iter().find(|process| process["pid"] == own);
    assert!(found.expect("the engine")["threads"][0][1].as_u64() > Some(0), "{answer}");
    assert_eq!(engine.ask(&json!({"do": "processes", "id": 7, "names": []}))["processes"], json!([]));
    engine.finish();
}
