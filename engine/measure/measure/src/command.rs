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
use libc::c_char;

use crate::Measured;

/// Signals of the terminal reach the command by themselves; we only have to outlive them.
const LEFT_TO_COMMAND: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Signals that are sent to us alone are passed on.
const PASSED_ON: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGHUP];

/// A command that is ready to be run.
pub(crate) struct Command {
    path: CString,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    _strings: [Vec<CString>; 2],
    defaults: Vec<libc::c_int>,
    stack: Box<Stack>,
    /// From CLOCK_MONOTONIC to the time of day, ns.
    day_offset_ns: u64,
}

impl Command {
    /// Does all that can be done before the clock is read, and before others are waited for.
    pub(crate) fn prepare(argv: &[String]) -> Result<Command, Unrunnable> {
        let unusable = Unrunnable::NotFound;
        let name = argv.first().ok_or_else(|| unusable("no command".into()))?;
        let arguments: Result<Vec<_>, _> =
            argv.iter().map(|word| resolve::c_string("argument", word)).collect();
        let arguments = arguments.map_err(unusable)?;
        let environment = resolve::environment(&BTreeMap::new()).map_err(unusable)?;
        let found = resolve::program(name, resolve::variable(&environment, "PATH"), None)?;
        let path = CString::new(found.as_os_str().as_bytes()).map_err(|_| unusable("a NUL byte".into()))?;
        Ok(Command {
            path,
            argv: resolve::terminated(&arguments),
            envp: resolve::terminated(&environment),
            _strings: [arguments, environment],
            defaults: defaults(),
            stack: Stack::new(),
            day_offset_ns: clock::realtime_ns().wrapping_sub(clock::monotonic_ns()),
        })
    }

    /// Runs it and waits for it; it starts at once, or at `start_at_ns` of the monotonic clock.
    pub(crate) fn run(mut self, start_at_ns: Option<u64>) -> Result<Measured, Unrunnable> {
        let listening = listen().map_err(|error| Unrunnable::NotFound(format!("no signalfd: {error}")));
        let (signals, mask) = listening?;
        ignore(&LEFT_TO_COMMAND);
        let plan = self.plan(mask);
        self.launch(&plan, &signals, start_at_ns).map_err(|failure| match failure {
            Failure::System(error) => {
                Unrunnable::NotExecutable(format!("no process could be started: {error}"))
            }
            Failure::Child(stage, errno) => {
                Unrunnable::NotExecutable(explain(&self.path, None, stage, errno))
            }
        })
    }

    fn plan(&self, mask: libc::sigset_t) -> Plan {
        Plan {
            path: self.path.as_ptr(),
            argv: self.argv.as_ptr(),
            envp: self.envp.as_ptr(),
            cwd: ptr::null(),
            stdio: [-1; 3],
            cpus: ptr::null(),
            cpus_bytes: 0,
            defaults: self.defaults.as_ptr(),
            defaults_len: self.defaults.len(),
            mask,
            open_files: ptr::null(),
            new_group: false,
            parent: 0,
        }
    }

    fn launch(
        &mut self,
        plan: &Plan,
        signals: &OwnedFd,
        start_at_ns: Option<u64>,
    ) -> Result<Measured, Failure> {
        let report = Report::default();
        let peak_memory_floor_bytes = sys::peak_memory_bytes();
        let start_ns = clock::spin_until(start_at_ns.unwrap_or(0));
        // SAFETY: the plan points to what `self` owns.
        let started = unsafe { spawn(plan, &report, &mut self.stack) }.map_err(Failure::System)?;
        let end_ns = await_end(&started, signals);
        let Wait::Reaped(reaped) = sys::wait(started.pid, 0) else {
            return Err(Failure::System(io::Error::other("the end of the command was not reported")));
        };
        if let Some((stage, errno)) = report.failure() {
            return Err(Failure::Child(stage, errno));
        }
        let mut usage = Usage::default();
        usage.add(&reaped.usage);
        Ok(Measured {
            start_ns,
            day_offset_ns: self.day_offset_ns,
            elapsed_ns: end_ns - start_ns,
            status: Status::from_wait(reaped.status),
            usage,
            peak_memory_floor_bytes,
        })
    }
}

enum Failure {
    System(io::Error),
    Child(Stage, i32),
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

/// Signals that the command shall not find ignored. What was ignored when we were started stays so for it;
/// Rust's own runtime ignores SIGPIPE.
fn defaults() -> Vec<libc::c_int> {
    let ignored = sys::ignored_signals();
    let left = LEFT_TO_COMMAND.into_iter().filter(|signal| !ignored.contains(signal));
    std::iter::once(libc::SIGPIPE).chain(left).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_starts_at_its_instant() {
        let instant = clock::monotonic_ns() + 5_000_000;
        let command = Command::prepare(&["true".to_owned()]).unwrap();
        let measured = command.run(Some(instant)).unwrap();
        assert!((instant..=clock::monotonic_ns()).contains(&measured.start_ns));
        assert_eq!(measured.status, Status::Exited(0));
    }
}
