//! Recording by eBPF: bpftrace watches in the kernel, and prints what it sees. For root, and for programs that neither
//! can be rewritten nor may be stopped; nothing is done to the program.
//!
//! `script.rs` is what bpftrace runs, `line.rs` what it prints, `order.rs` puts that in order, `store.rs` writes it.

mod line;
mod order;
mod script;
mod store;
mod tool;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use etude_trace::{Clock, Header, Writer};

use crate::PROCESSOR;
use crate::ebpf::line::parse;
use crate::ebpf::script::Whom;
use crate::ebpf::store::Store;
use crate::ebpf::tool::Tool;
use crate::queue;
use crate::record::Outcome;
use crate::rewrite::exec_start::{Held, ignore_interrupts};
use crate::rewrite::remote::Pid;

/// How often is looked whether the program has ended.
const EVERY: Duration = Duration::from_millis(50);
/// After so long without a line, threads whose end was not read are looked for; and a signal is sent again.
const QUIET: Duration = Duration::from_secs(2);

/// What is recorded.
pub enum Subject {
    Command(Vec<CString>),
    /// A process that runs already.
    Process(Pid),
}

static ASKED_TO_END: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ASKED_TO_END.store(true, Ordering::Relaxed);
}

/// Records to the end of the program and of all that it starts; of a process that ran already also to SIGINT or
/// SIGTERM.
///
/// # Errors
/// Why it cannot be; then nothing was started.
pub fn record(subject: &Subject, file: File) -> Result<Outcome, String> {
    tool::allowed()?;
    let (whom, held) = match subject {
        Subject::Command(argv) => {
            let held = Held::fork(argv, &[]).map_err(|error| error.to_string())?;
            (Whom::FromExec(held.pid), Some(held))
        }
        Subject::Process(pid) => {
            running(*pid)?;
            (Whom::FromNow(*pid), None)
        }
    };
    let (mut tool, clocks) = Tool::start(&script::script(whom))?;
    let zero = clocks.now();
    let writer = Writer::create(file, &header(subject)).map_err(|error| error.to_string())?;
    let mut store = Store::new(writer, zero);
    let first = match held {
        Some(held) => {
            ignore_interrupts();
            store.lives(held.pid, 1);
            held.release()
        }
        None => {
            for signal in [libc::SIGINT, libc::SIGTERM] {
                // SAFETY: the handler does nothing but to store a flag.
                unsafe { libc::signal(signal, end as *const () as libc::sighandler_t) };
            }
            0
        }
    };
    let (status, cut) = follow(&mut tool, &mut store, first, whom);
    Ok(Outcome { status, run_on: 0, summary: store.finish(clocks.now(), cut) })
}

/// Takes lines until all have ended; the status of the first process, and why lines end before that.
fn follow(tool: &mut Tool, store: &mut Store, first: Pid, whom: Whom) -> (i32, Option<String>) {
    let (mut status, mut gone, mut heard) = (0, first == 0, Instant::now());
    let (mut cut, mut ending): (_, Option<Instant>) = (None, None);
    loop {
        match tool.lines(EVERY) {
            Some(lines) => {
                heard = Instant::now();
                for line in lines {
                    match parse(&line) {
                        Ok(line) => store.line(line),
                        Err(error) => cut = Some(error),
                    }
                }
            }
            None if tool.is_over() => break,
            None => {}
        }
        if !gone {
            // SAFETY: `status` is a valid place.
            gone = unsafe { libc::waitpid(first, &mut status, libc::WNOHANG) } == first;
        }
        let over = match whom {
            Whom::FromExec(pid) => gone && ended(store, pid, heard),
            Whom::FromNow(pid) => {
                ASKED_TO_END.load(Ordering::Relaxed) || !exists(pid) && ended(store, pid, heard)
            }
        };
        let asked = ending.is_some_and(|at| at.elapsed() < QUIET || heard.elapsed() < QUIET);
        if !asked && (over || ending.is_some()) {
            ending = Some(Instant::now());
            tool.end();
        }
    }
    if ending.is_none() {
        cut = Some(format!("all that came after bpftrace ended: {}", tool.said()));
    }
    if !gone {
        // SAFETY: as above. The program runs on unrecorded, and has its own status.
        while unsafe { libc::waitpid(first, &mut status, 0) } < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
    }
    (status, cut)
}

/// Whether no thread is left. The end of one may be lost: after a while /proc is asked.
fn ended(store: &Store, first: Pid, heard: Instant) -> bool {
    store.has_ended(first) && store.living().next().is_none() && heard.elapsed() >= EVERY
        || heard.elapsed() >= QUIET && !store.living().any(exists)
}

fn exists(tid: Pid) -> bool {
    std::fs::metadata(format!("/proc/{tid}")).is_ok()
}

fn running(pid: Pid) -> Result<(), String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|_| "there is no such process; see ps".to_owned())?;
    let group: Option<Pid> = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    match group {
        Some(group) if group == pid => Ok(()),
        Some(group) => Err(format!("it is a thread of process {group}; name that")),
        None => Err("/proc does not identify it".to_owned()),
    }
}

fn header(subject: &Subject) -> Header {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let (argv, cwd) = match subject {
        Subject::Command(argv) => (
            argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            std::env::current_dir().unwrap_or_default(),
        ),
        Subject::Process(pid) => {
            (queue::words(*pid), std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default())
        }
    };
    Header {
        argv,
        cwd: cwd.to_string_lossy().into_owned(),
        start: crate::rewrite::clock::now(),
        host: text("/proc/sys/kernel/hostname"),
        kernel: text("/proc/sys/kernel/osrelease"),
        processor: PROCESSOR.name().to_owned(),
        technique: "ebpf".to_owned(),
        clock: Clock { kind: "monotonic".to_owned(), ns_per_tick: 1.0 },
        ..Header::default()
    }
}
