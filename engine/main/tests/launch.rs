//! One trial, on the real engine: results, limits, capture, workers together.

mod common;

use std::time::{Duration, Instant};

use common::{Engine, Scratch, eventually, lives, number, sh, written_pid};
use serde_json::{Value, json};

#[test]
fn a_row_says_how_the_command_ended_and_what_it_took() {
    let mut engine = Engine::start();
    let row = engine.launch(json!([{"argv": ["/bin/true"]}]), json!({})).remove(0);
    assert_eq!((&row["exit_status"], &row["signal"], &row["error"]), (&json!(0), &Value::Null, &Value::Null));
    assert_eq!((&row["timed_out"], &row["cancelled"]), (&json!(false), &json!(false)));
    assert!((1e-5..5.0).contains(&number(&row, "elapsed")), "{row}");
    assert!(number(&row, "peak_memory") > 100_000.0, "{row}");
    assert!(row["start"].as_str().is_some_and(|start| start.len() == 30 && start.ends_with('Z')), "{row}");
    assert!(row.get("stdout").is_none() && row.get("stderr").is_none(), "{row}");
    engine.finish();
}

#[test]
fn statuses_and_signals_are_told_apart() {
    let mut engine = Engine::start();
    assert_eq!(engine.launch(json!([sh("exit 7")]), json!({}))[0]["exit_status"], 7);
    let row = engine.launch(json!([sh("kill -SEGV $$")]), json!({})).remove(0);
    assert_eq!((&row["exit_status"], &row["signal"]), (&Value::Null, &json!(11)));
}

#[test]
fn the_command_gets_its_directory_environment_and_default_signals() {
    let mut engine = Engine::start();
    let script = "trap 'echo INT' INT; echo $PWD $A ${HOME-none}; kill -INT $$; yes | head -n1; \
                  grep SigBlk /proc/self/status";
    let worker = json!({"argv": ["bash", "-c", script], "cwd": "/usr", "stdout": "capture",
                        "env": {"A": "ä b", "HOME": null}});
    let row = engine.launch(json!([worker]), json!({})).remove(0);
    let expected = "/usr ä b none\nINT\ny\nSigBlk:\t0000000000000000\n";
    assert_eq!(row["stdout"]["tail"], expected);
    let pipe = json!({"argv": ["bash", "-c", "yes | head -n1; exit ${PIPESTATUS[0]}"]});
    assert_eq!(engine.launch(json!([pipe]), json!({}))[0]["exit_status"], 141, "SIGPIPE ends a command");
}

#[test]
fn what_cannot_be_started_says_why() {
    let mut engine = Engine::start();
    for (worker, why) in [
        (json!({"argv": ["no-such-program"]}), "no-such-program: not found in PATH"),
        (json!({"argv": ["/etc/passwd"]}), "/etc/passwd: not executable"),
        (json!({"argv": ["true"], "cwd": "/nowhere"}), "cwd: /nowhere: No such file"),
        (json!({"argv": ["true"], "cpus": [9999]}), "cpus: none of them"),
        (json!({"argv": ["true"], "stdin": {"file": "/nowhere"}}), "stdin: /nowhere: No such file"),
    ] {
        let row = engine.launch(json!([worker]), json!({})).remove(0);
        assert!(row["error"].as_str().is_some_and(|error| error.starts_with(why)), "{row}");
        assert_eq!(row["metrics"]["elapsed"], json!([null, "s", row["error"]]));
        assert_eq!((&row["start"], &row["exit_status"]), (&Value::Null, &Value::Null));
    }
}

#[test]
fn what_is_no_program_is_an_error_of_its_worker() {
    let scratch = Scratch::new("noexec");
    let file = scratch.file("program");
    std::fs::write(&file, "no #! line").expect("written");
    std::process::Command::new("chmod").args(["+x", &file]).status().expect("chmod");
    let row = Engine::start().launch(json!([{"argv": [file]}]), json!({})).remove(0);
    assert!(row["error"].as_str().is_some_and(|error| error.contains("#! line")), "{row}");
}

#[test]
fn a_timeout_ends_a_tree_that_ignores_sigterm() {
    let scratch = Scratch::new("timeout");
    let pid = scratch.file("pid");
    let mut engine = Engine::start();
    let script = format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >{pid}; sleep 77; sleep 77' & sleep 77; sleep 77"
    );
    let start = Instant::now();
    let row = engine.launch(json!([sh(&script)]), json!({"timeout_s": 0.3, "grace_s": 0.2})).remove(0);
    assert_eq!(
        (&row["timed_out"], &row["signal"], &row["cancelled"]),
        (&json!(true), &json!(9), &json!(false))
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(!lives(written_pid(&pid)));
}

#[test]
fn a_timeout_asks_before_it_forces() {
    let mut engine = Engine::start();
    let worker =
        json!({"argv": ["sh", "-c", "trap 'echo asked; exit 5' TERM; sleep 77 & wait"], "stdout": "capture"});
    let row = engine.launch(json!([worker]), json!({"timeout_s": 0.3, "grace_s": 5})).remove(0);
    assert_eq!((&row["timed_out"], &row["exit_status"]), (&json!(true), &json!(5)));
    assert_eq!(row["stdout"]["tail"], "asked\n");
}

#[test]
fn captured_output_is_counted_and_digested_whole_at_no_cost_in_memory() {
    let mut engine = Engine::start();
    let before = engine.memory_kib("VmHWM");
    let script = "yes 0123456789 | head -c 100000000; printf 'the end'; printf warning >&2";
    let worker = json!({"argv": ["sh", "-c", script], "stdout": "capture", "stderr": "capture"});
    let row = engine.launch(json!([worker]), json!({"capture_bytes": 7})).remove(0);
    assert_eq!((&row["stdout"]["bytes"], &row["stdout"]["tail"]), (&json!(100_000_007), &json!("the end")));
    assert_eq!(row["stderr"]["tail"], "warning");
    let sums = std::process::Command::new("sh")
        .args(["-c", &format!("({script}) 2>/dev/null | sha256sum")])
        .output();
    let sums = String::from_utf8(sums.expect("sha256sum").stdout).expect("text");
    assert_eq!(row["stdout"]["sha256"].as_str(), sums.split_whitespace().next());
    assert!(engine.memory_kib("VmHWM") < before + 512, "grew from {before} kB");
}

#[test]
fn an_empty_stream_is_reported_for_standard_output_only() {
    let worker = json!({"argv": ["true"], "stdout": "capture", "stderr": "capture"});
    let row = Engine::start().launch(json!([worker]), json!({})).remove(0);
    assert_eq!(row["stdout"]["bytes"], 0);
    assert!(row.get("stderr").is_none());
}

#[test]
fn files_are_read_from_their_beginning_and_appended_to() {
    let scratch = Scratch::new("files");
    let (from, to) = (scratch.file("from"), scratch.file("to"));
    std::fs::write(&from, "abc").expect("written");
    let worker = json!({"argv": ["cat"], "stdin": {"file": from}, "stdout": {"file": to}});
    let row = Engine::start().launch(json!([worker]), json!({"inner": 3})).remove(0);
    assert_eq!(row["inner"], 3);
    assert_eq!(std::fs::read_to_string(to).expect("read"), "abcabcabc");
}

#[test]
fn inner_launches_share_one_trial_and_times_are_per_launch() {
    let mut engine = Engine::start();
    let row = engine.launch(json!([{"argv": ["sleep", "0.05"]}]), json!({"inner": 4})).remove(0);
    assert!((0.05..0.15).contains(&number(&row, "elapsed")), "{row}");
    let row = engine.launch(json!([sh("exit 3")]), json!({"inner": 4})).remove(0);
    assert_eq!((&row["inner"], &row["exit_status"]), (&json!(1), &json!(3)));
}

#[test]
fn workers_start_together_and_each_has_its_own_clock() {
    let mut engine = Engine::start();
    for workers in [2, 5, 64] {
        let sleeper = |index: usize| json!({"argv": ["sleep", if index == 0 { "0.3" } else { "0" }]});
        let rows = engine.launch((0..workers).map(sleeper).collect(), json!({}));
        let starts: Vec<u64> = rows.iter().map(|row| row["start_ns"].as_u64().expect("a stamp")).collect();
        let spread = starts.iter().max().zip(starts.iter().min()).map(|(last, first)| last - first);
        println!("{workers} workers: first to last start {} us", spread.unwrap_or(0) / 1000);
        assert!(number(&rows[0], "elapsed") >= 0.3);
        assert!(workers > 2 || number(&rows[1], "elapsed") < 0.3, "{rows:?}");
        assert!(rows[1]["metrics"].get("orphans").is_none(), "metrics of the trial stand with worker 0 only");
    }
}

#[test]
fn a_worker_that_cannot_start_does_not_hang_the_others() {
    let mut engine = Engine::start();
    for bad in [json!({"argv": ["true"], "cwd": "/nowhere"}), json!({"argv": ["true"], "cpus": [9999]})] {
        let start = Instant::now();
        let rows =
            engine.launch(json!([{"argv": ["sleep", "60"]}, bad, {"argv": ["sleep", "60"]}]), json!({}));
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(rows[1]["error"].is_string() && rows[1]["cancelled"] == false);
        for index in [0, 2] {
            assert_eq!((&rows[index]["cancelled"], &rows[index]["error"]), (&json!(true), &Value::Null));
        }
    }
}

#[test]
fn a_worker_that_fails_on_exec_ends_the_others() {
    let scratch = Scratch::new("exec");
    let file = scratch.file("program");
    std::fs::write(&file, "#!/no/such/interpreter\n").expect("written");
    std::process::Command::new("chmod").args(["+x", &file]).status().expect("chmod");
    let rows = Engine::start().launch(json!([{"argv": ["sleep", "60"]}, {"argv": [file]}]), json!({}));
    assert_eq!((&rows[0]["cancelled"], &rows[0]["signal"]), (&json!(true), &json!(15)));
    assert!(rows[1]["error"].as_str().is_some_and(|error| error.contains("interpreter")), "{rows:?}");
}

#[test]
fn a_launch_is_cancelled_in_its_middle() {
    let mut engine = Engine::start();
    for workers in [json!([sh("sleep 60; true")]), json!([sh("sleep 60; true"), sh("sleep 60; true")])] {
        let start = Instant::now();
        engine.send(&common::request(workers, json!({})));
        std::thread::sleep(Duration::from_millis(100));
        engine.send(&json!({"do": "cancel"}));
        let answer = engine.receive();
        assert!(start.elapsed() < Duration::from_secs(5));
        for row in answer["rows"].as_array().expect("rows") {
            assert_eq!(
                (&row["cancelled"], &row["signal"], &row["timed_out"]),
                (&json!(true), &json!(15), &json!(false))
            );
        }
        assert_eq!(engine.launch(json!([sh("exit 0")]), json!({}))[0]["exit_status"], 0);
    }
}

#[test]
fn a_hundred_workers_with_both_streams_captured() {
    let workers: Vec<Value> = (0..200)
        .map(|n| {
            json!({"argv": ["sh", "-c", format!("echo {n}; echo {n} >&2; ulimit -n")],
                                "stdout": "capture", "stderr": "capture"})
        })
        .collect();
    let rows = Engine::start().launch(workers.into(), json!({}));
    let limit = std::process::Command::new("sh").args(["-c", "ulimit -n"]).output().expect("sh").stdout;
    let limit = String::from_utf8(limit).expect("text");
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row["stdout"]["tail"], format!("{n}\n{limit}"), "{row}");
        assert_eq!(row["stderr"]["tail"], format!("{n}\n"));
    }
}

#[test]
fn the_end_of_input_ends_everything() {
    let scratch = Scratch::new("eof");
    let pid = scratch.file("pid");
    let mut engine = Engine::start();
    engine.send(&common::request(
        json!([sh(&format!("setsid sh -c 'echo $$ >{pid}; sleep 60; true' & wait"))]),
        json!({}),
    ));
    let pid = written_pid(&pid);
    assert!(lives(pid));
    engine.finish();
    assert!(!lives(pid));
}

#[test]
fn a_signal_ends_everything() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let scratch = Scratch::new("signal");
        let pid = scratch.file("pid");
        let mut engine = Engine::start();
        engine.send(&common::request(json!([sh(&format!("echo $$ >{pid}; sleep 60; true"))]), json!({})));
        let pid = written_pid(&pid);
        // SAFETY: takes integers only.
        unsafe { libc::kill(engine.pid() as i32, signal) };
        assert_eq!(engine.receive()["rows"][0]["cancelled"], true);
        assert!(engine.process.wait().expect("an end").success());
        assert!(!lives(pid));
    }
}

#[test]
fn workers_do_not_survive_a_killed_engine() {
    let scratch = Scratch::new("killed");
    let pids = [scratch.file("0"), scratch.file("1")];
    let mut engine = Engine::start();
    let worker = |pid: &String| json!({"argv": ["sh", "-c", format!("echo $$ >{pid}; exec sleep 60")]});
    engine.send(&common::request(pids.iter().map(worker).collect(), json!({})));
    let found = pids.map(|pid| written_pid(&pid));
    engine.process.kill().expect("killed");
    eventually("the workers have gone", || found.iter().all(|&pid| !lives(pid)));
}

#[test]
fn the_hello_lists_tlbs_as_far_as_this_machine_tells_them() {
    let engine = Engine::start();
    let tlbs = engine.hello["tlb"].as_array().expect("a list, empty where they are not known");
    for tlb in tlbs {
        let kind = tlb["kind"].as_str().expect("a kind");
        assert!(["data", "instruction", "unified", "load", "store"].contains(&kind), "{tlb}");
        let number = |name: &str| tlb[name].as_u64().unwrap_or_default();
        assert!(number("level") >= 1 && number("entries") >= 1, "{tlb}");
        assert!(number("page_bytes").is_power_of_two() && number("page_bytes") >= 4096, "{tlb}");
    }
}
