//! A real engine to talk to.
#![allow(dead_code)] // each test program uses a part of it

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub struct Engine {
    pub process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub hello: Value,
}

impl Engine {
    pub fn start() -> Engine {
        Engine::with(&[])
    }

    pub fn with(options: &[&str]) -> Engine {
        let mut command = Command::new(env!("CARGO_BIN_EXE_etude-engine"));
        command.arg("serve").args(options);
        Engine::from(command)
    }

    pub fn from(mut command: Command) -> Engine {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the engine starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let mut engine = Engine { process, input, output, hello: Value::Null };
        engine.hello = engine.receive()["hello"].take();
        engine
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().expect("open").write_all(bytes).expect("the engine reads");
    }

    pub fn send(&mut self, request: &Value) {
        self.send_bytes(format!("{request}\n").as_bytes());
    }

    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the engine answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON ({error}): {line:?}"))
    }

    pub fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.receive()
    }

    /// Launches `workers` with more members of the request; the rows.
    pub fn launch(&mut self, workers: Value, more: Value) -> Vec<Value> {
        let answer = self.ask(&request(workers, more));
        answer["rows"].as_array().unwrap_or_else(|| panic!("no rows: {answer}")).clone()
    }

    /// Repeats a launch; the last line of the answer.
    pub fn repeat(&mut self, workers: Value, more: Value) -> Value {
        self.send(&request(workers, more));
        loop {
            let answer = self.receive();
            if answer.get("progress").is_none() {
                return answer;
            }
        }
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the input and waits for a good end.
    pub fn finish(mut self) {
        self.close_input();
        let status = self.process.wait().expect("the engine ends");
        assert!(status.success(), "{status}");
    }

    /// A line of the engine's /proc/PID/status, in kB.
    pub fn memory_kib(&self, name: &str) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the engine lives");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("that line");
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().expect("a number")
    }
}

impl Drop for Engine {
    /// Lets the engine clean up after itself; one that does not end is killed.
    fn drop(&mut self) {
        self.close_input();
        let start = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) {
            if start.elapsed() > Duration::from_secs(10) {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub fn request(workers: Value, more: Value) -> Value {
    let mut request = json!({"do": "launch", "id": 1, "workers": workers});
    for (name, value) in more.as_object().expect("an object") {
        request[name] = value.clone();
    }
    request
}

/// A worker that runs a shell script.
pub fn sh(script: &str) -> Value {
    json!({"argv": ["sh", "-c", script]})
}

pub fn number(row: &Value, metric: &str) -> f64 {
    row["metrics"][metric][0].as_f64().unwrap_or_else(|| panic!("no {metric}: {row}"))
}

/// A fresh directory, removed in the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("etude-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Scratch(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("plain").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until something holds, at most ten seconds.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process lives (a zombie does not).
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The process id that a script has written to a file.
pub fn written_pid(path: &str) -> u32 {
    let read = || std::fs::read_to_string(path).ok()?.trim().parse().ok();
    eventually("a pid is written", || read().is_some());
    read().expect("a pid")
}
