//! What is measured of a trial as a whole; and what the engine itself takes.

mod common;

use common::{Engine, Scratch, eventually, number, sh, written_pid};
use serde_json::{Value, json};

const SPIN: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

fn in_group(name: &str) -> Value {
    json!({"cgroup": format!("etude-{}-{name}", std::process::id())})
}

fn groups(name: &str) -> usize {
    let name = format!("etude-{}-{name}", std::process::id());
    let found =
        std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output().expect("find");
    found.stdout.iter().filter(|&&byte| byte == b'\n').count()
}

/// Runs with both versions, as far as this machine has them.
fn with_each_version(check: impl Fn(Engine, &str)) {
    for version in ["1", "2"] {
        let engine = Engine::with(&["--cgroup", version]);
        if engine.hello["cgroup"]["version"].is_null() {
            println!("skipped: no cgroup v{version}: {}", engine.hello["cgroup"]["reason"]);
            continue;
        }
        check(engine, version);
    }
}

#[test]
fn a_group_counts_the_cpu_time_of_the_whole_tree_but_not_ours() {
    with_each_version(|mut engine, version| {
        let group = in_group(&format!("cpu{version}"));
        let row = engine.launch(json!([sh(&format!("({SPIN}) & {SPIN}"))]), group.clone()).remove(0);
        let cpu = number(&row, "user")
            + number(&row, "system")
            + number(&row, "orphans_user")
            + number(&row, "orphans_system");
        assert!((number(&row, "tree_cpu") - cpu).abs() < 0.05 * cpu + 0.005, "{row}");
        let noise = json!({"argv": ["head", "-c", "30000000", "/dev/zero"], "stdout": "capture"});
        let row = engine.launch(json!([noise]), group).remove(0);
        let cpu = number(&row, "user") + number(&row, "system");
        assert!((number(&row, "tree_cpu") - cpu).abs() < 0.05 * cpu + 0.005, "{row}");
        engine.finish();
        assert_eq!(groups(&format!("cpu{version}")), 0);
    });
}

#[test]
fn peak_memory_of_the_tree_is_that_of_this_trial() {
    let mut engine = Engine::start();
    let group = in_group("peak");
    let large = "x=$(head -c 40000000 /dev/zero | tr '\\0' x)";
    let row = engine.launch(json!([sh(large)]), group.clone()).remove(0);
    if row["metrics"]["tree_peak_memory"][0].is_null() {
        println!("skipped: {}", row["metrics"]["tree_peak_memory"][2]);
        return;
    }
    assert!(number(&row, "tree_peak_memory") > 40e6, "{row}");
    let row = engine.launch(json!([{"argv": ["true"]}]), group).remove(0);
    assert!(number(&row, "tree_peak_memory") < 20e6, "{row}");
}

#[test]
fn groups_last_as_long_as_their_engine_and_are_taken_over_from_a_killed_one() {
    with_each_version(|mut engine, version| {
        let (first, second) = (format!("a{version}"), format!("b{version}"));
        engine.launch(json!([{"argv": ["true"]}]), in_group(&first));
        assert!(groups(&first) > 0);
        engine.launch(json!([{"argv": ["true"]}]), in_group(&second));
        let both = groups(&first);
        let row = engine.launch(json!([{"argv": ["true"]}]), in_group(&first)).remove(0);
        assert!(number(&row, "tree_cpu") > 0.0, "{row}");
        assert_eq!(groups(&first), both, "a test comes back to its own group");
        engine.launch(json!([{"argv": ["true"]}]), in_group(&second));
        let scratch = Scratch::new("takeover");
        let pid = scratch.file("pid");
        let script = format!("setsid sh -c 'echo $$ >{pid}; sleep 60; true' & sleep 60");
        engine.send(&common::request(json!([sh(&script)]), in_group(&second)));
        let pid = written_pid(&pid);
        engine.process.kill().expect("killed");
        engine.process.wait().expect("reaped");
        assert!(common::lives(pid), "a daemon survives its engine until its group is used again");
        let mut next = Engine::with(&["--cgroup", version]);
        next.launch(json!([{"argv": ["true"]}]), in_group(&first));
        next.launch(json!([{"argv": ["true"]}]), in_group(&second));
        eventually("the daemon has gone", || !common::lives(pid));
        next.finish();
        assert_eq!(groups(&first) + groups(&second), 0);
    });
}

#[test]
fn groups_that_a_killed_engine_left_are_swept_away() {
    with_each_version(|mut engine, version| {
        let mut gone = std::process::Command::new("true").spawn().expect("a process");
        gone.wait().expect("its end");
        let name = format!("etude-{}-left{version}", gone.id());
        engine.launch(json!([{"argv": ["true"]}]), json!({"cgroup": name}));
        engine.process.kill().expect("killed");
        engine.process.wait().expect("reaped");
        let count = || {
            let found = std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output();
            found.expect("find").stdout.len()
        };
        // An engine of a test that runs beside this one may have swept it already.
        Engine::with(&["--cgroup", version])
            .launch(json!([{"argv": ["true"]}]), in_group(&format!("s{version}")));
        assert_eq!(count(), 0);
    });
}

#[test]
fn a_group_that_is_not_ours_is_refused() {
    let answer =
        Engine::start().ask(&common::request(json!([sh("exit 0")]), json!({"cgroup": "system.slice"})));
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("expected etude-")), "{answer}");
}

#[test]
fn counters_count_descendants_or_say_why_not() {
    let mut engine = Engine::start();
    for _ in 0..20 {
        let rows = engine.launch(json!([sh("sh -c :; :"), sh(":")]), json!({"counters": "on"}));
        for (name, why) in engine.hello["counters"].as_object().expect("an object").clone() {
            let metric = &rows[0]["metrics"][&name];
            match why {
                Value::Null => assert!(metric[0].is_number(), "{name}: {metric}"),
                why => assert_eq!((&metric[0], &metric[2]), (&Value::Null, &why)),
            }
        }
        if engine.hello["counters"]["page_faults"].is_null() {
            assert!(number(&rows[0], "page_faults") > 50.0, "{rows:?}");
            assert!(number(&rows[0], "task_clock") > 1e-4, "{rows:?}");
        }
    }
    let row = engine.launch(json!([sh(":")]), json!({})).remove(0);
    assert!(row["metrics"].get("page_faults").is_none(), "not asked for");
}

#[test]
fn without_hardware_events_auto_counts_none_and_says_why() {
    let mut engine = Engine::start();
    let row = engine.launch(json!([sh(":")]), json!({"counters": "auto"})).remove(0);
    let has_hardware = engine.hello["counters"]["cycles"].is_null();
    let cycles = &row["metrics"]["cycles"];
    assert_eq!(cycles[0].is_number(), has_hardware, "{cycles}");
    assert_eq!(cycles[2].is_string(), !has_hardware, "{cycles}");
    assert_eq!(row["metrics"].get("page_faults").is_some(), has_hardware, "{row}");
}

#[test]
fn storage_counts_what_descendants_wrote() {
    let scratch = Scratch::new("storage");
    let to = scratch.file("to");
    let mut engine = Engine::start();
    let script = format!("(dd if=/dev/zero of={to} bs=1M count=8 conv=fsync 2>/dev/null); true");
    let row = engine.launch(json!([sh(&script)]), json!({})).remove(0);
    assert!((8e6..9.5e6).contains(&number(&row, "storage_written")), "{row}");
    let row = engine.launch(json!([{"argv": ["true"]}]), json!({})).remove(0);
    assert_eq!(number(&row, "storage_written"), 0.0);
}

#[test]
fn the_engine_stays_small() {
    let mut engine = Engine::start();
    let scratch = Scratch::new("small");
    let mut ask = in_group("small");
    ask["counters"] = json!("on");
    ask["repeat"] =
        json!({"count": 200, "journal": scratch.file("journal"), "trial": 1, "block": 1, "head": {}});
    let worker = json!({"argv": ["true"], "stdout": "capture", "stderr": "capture"});
    assert_eq!(engine.repeat(json!([worker]), ask)["done"], 200);
    let limit = if cfg!(debug_assertions) { 12 * 1024 } else { 3 * 1024 };
    assert!(engine.memory_kib("VmHWM") < limit, "{} kB", engine.memory_kib("VmHWM"));
}

#[test]
fn rubbish_is_answered_and_the_engine_goes_on() {
    let mut engine = Engine::start();
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let good =
        common::request(json!([{"argv": ["true"], "env": {"A": null}, "cpus": [0]}]), json!({"inner": 2}));
    for round in 0..500 {
        let mut line = if round % 2 == 0 { good.to_string().into_bytes() } else { vec![0; random() % 300] };
        let damages = if round % 2 == 0 { 1 + random() % 3 } else { line.len() };
        for _ in 0..damages {
            let at = random() % line.len();
            line[at] = random() as u8;
        }
        line.retain(|&byte| byte != b'\n');
        line.push(b'\n');
        engine.send_bytes(&line);
    }
    engine.send(&json!({"do": "end", "id": 4242}));
    while engine.receive() != json!({"id": 4242, "ended": 0}) {}
    engine.finish();
}
