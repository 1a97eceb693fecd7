//! bpftrace itself: started, read, ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ebpf::line::{Line, parse};
use crate::ebpf::script::STRING;
use crate::record::resolve;

/// It compiles its program, which takes a second, and more where the machine is busy.
const ATTACHED_WITHIN: Duration = Duration::from_secs(60);
/// After its end, what it has complained of is read.
const SAID_WITHIN: Duration = Duration::from_secs(5);
/// What is copied by a program that bpftrace starts once all probes are attached.
const READY: &[u8] = b"ready\n";
/// Pages of each CPU's buffer: 32 MiB.
const PAGES: &str = "8192";
/// Threads that are watched at a time, and a map each.
const THREADS: &str = "65536";
/// Lines that are handed over together, and how many such lots may wait.
const LOT: usize = 4096;
const LOTS: usize = 64;

pub type Lines = Vec<Vec<u8>>;

/// Whether it can be used here; if not, why.
pub fn allowed() -> Result<(), String> {
    const SYS_ADMIN: u32 = 21;
    const PERFMON: u32 = 38;
    const BPF: u32 = 39;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let rights = rights.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    let has = |right: u32| rights >> right & 1 == 1;
    let enough = has(SYS_ADMIN) || has(BPF) && has(PERFMON);
    if !enough {
        return Err(
            "eBPF is for root, or with CAP_BPF and CAP_PERFMON; use the default technique, or sudo".into()
        );
    }
    resolve("bpftrace".as_ref())
        .map(drop)
        .map_err(|_| "bpftrace is not installed; install the Debian package bpftrace".into())
}

/// A clock of the kernel's.
#[derive(Clone, Copy)]
pub struct Clocks(libc::clockid_t);

impl Clocks {
    /// The one that bpftrace reads: CLOCK_BOOTTIME as a rule, CLOCK_MONOTONIC in old and in some new versions. They differ by
    /// the time for which the machine slept.
    fn between(before: [u64; 2], read: u64) -> Option<Clocks> {
        let clocks = [libc::CLOCK_MONOTONIC, libc::CLOCK_BOOTTIME].map(Clocks);
        let within = |index: usize| (before[index]..=clocks[index].now()).contains(&read);
        (0..2).find(|index| within(*index)).map(|index| clocks[index])
    }

    fn both() -> [u64; 2] {
        [libc::CLOCK_MONOTONIC, libc::CLOCK_BOOTTIME].map(|clock| Clocks(clock).now())
    }

    pub fn now(self) -> u64 {
        etude_clock::read(self.0)
    }
}

/// A bpftrace that runs.
pub struct Tool {
    child: Child,
    /// Its end makes bpftrace end, also when this program is killed.
    input: Option<ChildStdin>,
    lines: Receiver<Lines>,
    errors: Arc<Mutex<Vec<u8>>>,
    /// Reads its complaints.
    complaints: JoinHandle<()>,
    over: bool,
}

impl Tool {
    /// Starts it, and waits until it watches.
    ///
    /// # Errors
    /// It ends before, or says nothing.
    pub fn start(script: &str) -> Result<(Tool, Clocks), String> {
        let before = Clocks::both();
        let mut child = Command::new("bpftrace")
            // It starts its command when all is attached. So the word comes back that was sent to it.
            .args(["-f", "json", "-c", "/bin/cat", "-e", script])
            .env("BPFTRACE_STRLEN", STRING.to_string())
            .env("BPFTRACE_PERF_RB_PAGES", PAGES)
            .env("BPFTRACE_MAP_KEYS_MAX", THREADS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0) // what the terminal sends is for the program
            .spawn()
            .map_err(|error| format!("bpftrace cannot be started: {error}"))?;
        let (sender, lines) = sync_channel(LOTS);
        let output = child.stdout.take().expect("it is a pipe");
        std::thread::spawn(move || hand_over(BufReader::with_capacity(1 << 20, output), &sender));
        let errors = Arc::new(Mutex::new(Vec::new()));
        let (mut stderr, kept) = (child.stderr.take().expect("it is a pipe"), errors.clone());
        let complaints = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(many @ 1..) = stderr.read(&mut piece) {
                kept.lock().expect("no thread panics").extend(&piece[..many]);
            }
        });
        let mut input = child.stdin.take();
        let _ = input.as_mut().map(|input| input.write_all(READY)); // if it has ended, that is seen below
        let mut tool = Tool { child, input, lines, errors, complaints, over: false };
        let clocks = tool.attached(before)?;
        Ok((tool, clocks))
    }

    fn attached(&mut self, before: [u64; 2]) -> Result<Clocks, String> {
        // Its own first line goes through its buffers, the word does not: either may come first.
        let (since, mut ready, mut clocks) = (Instant::now(), false, None);
        while since.elapsed() < ATTACHED_WITHIN {
            for line in self.lines(Duration::from_millis(100)).unwrap_or_default() {
                ready |= line == READY;
                if let Line::Begin { pid, ns } = parse(&line)? {
                    if pid as u32 != self.child.id() {
                        return Err(
                            "eBPF sees other process numbers here (a container); record outside of it".into(),
                        );
                    }
                    let known = Clocks::between(before, ns);
                    clocks = Some(known.ok_or("bpftrace reads a clock that is not known")?);
                }
            }
            if let Some(clocks) = clocks.filter(|_| ready) {
                return Ok(clocks);
            }
            if self.over {
                return Err(format!("bpftrace cannot watch: {}", self.said()));
            }
        }
        Err(format!("bpftrace does not begin within {} s", ATTACHED_WITHIN.as_secs()))
    }

    /// What it has printed since; none within that time, or it is over.
    pub fn lines(&mut self, within: Duration) -> Option<Lines> {
        match self.lines.recv_timeout(within) {
            Ok(lines) => Some(lines),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.over = true;
                None
            }
        }
    }

    /// Whether it has printed all that it will.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Asks it to print what it has, and to end. It misses a signal that comes while it prints: to be asked again.
    pub fn end(&mut self) {
        // SAFETY: a child that was not waited for yet.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
    }

    /// Its complaints, in one line.
    pub fn said(&self) -> String {
        // It has ended: what it said last may not be read yet.
        let since = Instant::now();
        while self.over && !self.complaints.is_finished() && since.elapsed() < SAID_WITHIN {
            std::thread::sleep(Duration::from_millis(1));
        }
        let bytes = self.errors.lock().expect("no thread panics").clone();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // That it cannot raise a limit stands in front of every run in some containers.
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.contains("MEMLOCK") && !line.contains("WARNING"))
            .collect();
        let shown: String = lines.join("; ").chars().take(300).collect();
        if shown.is_empty() { "it says nothing".to_owned() } else { shown }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines from a pipe, as they come, but many together where many come.
fn hand_over(mut from: BufReader<impl Read>, to: &SyncSender<Lines>) {
    let mut lot = Lines::new();
    loop {
        let mut line = Vec::new();
        match from.read_until(b'\n', &mut line) {
            Ok(1..) if line.ends_with(b"\n") => lot.push(line),
            _ => break,
        }
        if (lot.len() >= LOT || from.buffer().is_empty()) && to.send(std::mem::take(&mut lot)).is_err() {
            return;
        }
    }
    let _ = to.send(lot);
}
