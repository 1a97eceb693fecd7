//! Runs the command in the foreground: its terminal, its environment, its signals.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use etude_launch::child::{Plan, Report, Stage};
use etude_launch::resolve::{self, Unrunnable};
use etude_launch::spawn::{Stack, Started, spawn};
use etude_launch::sys::{self, Wait};
use etude_launch::{Status, Usage, clock, explain};

use crate::Measured;

/// Signals of the terminal reach the command by themselves; we only have to outlive them.
const LEFT_TO_COMMAND: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Signals that are sent to us alone are passed on.
const PASSED_ON: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGHUP];

/// Runs `argv` and waits for it.
pub(crate) fn run(argv: &[String]) -> Result<Measured, Unrunnable> {
    let unusable = Unrunnable::NotFound;
    let name = argv.first().ok_or_else(|| unusable("no command".into()))?;
    let arguments: Result<Vec<_>, _> = argv.iter().map(|word| resolve::c_string("argument", word)).collect();
    let arguments = arguments.map_err(unusable)?;
    let environment = resolve::environment(&BTreeMap::new()).map_err(unusable)?;
    let found = resolve::program(name, resolve::variable(&environment, "PATH"), None)?;
    let path = CString::new(found.as_os_str().as_bytes()).map_err(|_| unusable("a NUL byte".into()))?;
    let (signals, mask) = listen().map_err(|error| unusable(format!("no signalfd: {error}")))?;
    // What was ignored when we were started stays so for the command. Rust's own runtime ignores SIGPIPE.
    let ignored = sys::ignored_signals();
    let mut defaults = vec![libc::SIGPIPE];
    defaults.extend(LEFT_TO_COMMAND.iter().filter(|signal| !ignored.contains(signal)));
    ignore(&LEFT_TO_COMMAND);
    let (argv, envp) = (resolve::terminated(&arguments), resolve::terminated(&environment));
    let plan = Plan {
        path: path.as_ptr(),
        argv: argv.as_ptr(),
        envp: envp.as_ptr(),
        cwd: ptr::null(),
        stdio: [-1; 3],
        cpus: ptr::null(),
        cpus_bytes: 0,
        defaults: defaults.as_ptr(),
        defaults_len: defaults.len(),
        mask,
        open_files: ptr::null(),
        new_group: false,
        parent: 0,
    };
    launch(&plan, &signals).map_err(|failure| match failure {
        Failure::System(error) => Unrunnable::NotExecutable(format!("no process could be started: {error}")),
        Failure::Child(stage, errno) => Unrunnable::NotExecutable(explain(&path, None, stage, errno)),
    })
}

enum Failure {
    System(io::Error),
    Child(Stage, i32),
}

fn launch(plan: &Plan, signals: &OwnedFd) -> Result<Measured, Failure> {
    let (mut stack, report) = (Stack::new(), Report::default());
    let peak_memory_floor_bytes = sys::peak_memory_bytes();
    let start = clock::monotonic_ns();
    // SAFETY: the plan points to what `run` owns.
    let started = unsafe { spawn(plan, &report, &mut stack) }.map_err(Failure::System)?;
    let end = await_end(&started, signals);
    let Wait::Reaped(reaped) = sys::wait(started.pid, 0) else {
        return Err(Failure::System(io::Error::other("the command's end was not told to us")));
    };
    if let Some((stage, errno)) = report.failure() {
        return Err(Failure::Child(stage, errno));
    }
    let mut usage = Usage::default();
    usage.add(&reaped.usage);
    let status = Status::from_wait(reaped.status);
    Ok(Measured { elapsed_ns: end - start, status, usage, peak_memory_floor_bytes })
}

/// Waits until the command has ended, and returns when that was, ns.
fn await_end(started: &Started, signals: &OwnedFd) -> u64 {
    loop {
        let mut polled = [started.pidfd.as_raw_fd(), signals.as_raw_fd()].map(sys::wanted);
        // A poll that fails is tried again.
        let _ = sys::poll(&mut polled, None);
        let now = clock::monotonic_ns();
        if polled[0].revents != 0 {
            return now;
        }
        if polled[1].revents != 0
            && let Some(signal) = sys::take_signal(signals)
        {
            sys::kill(started.pid, signal);
        }
    }
}

/// Where signals that are to be passed on arrive, and the signal mask that stood before.
fn listen() -> io::Result<(OwnedFd, libc::sigset_t)> {
    let mask = sys::signal_mask();
    Ok((sys::signalfd(&PASSED_ON)?, mask))
}

fn ignore(signals: &[libc::c_int]) {
    for &signal in signals {
        // SAFETY: ignoring a signal installs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
