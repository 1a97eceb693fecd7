//! One sample, between two processes: a child sends, this one receives.

use etude_counters::Around;
use etude_micro::exit::{Fail, IOERR, OSERR};
use etude_micro::usage::Usage;

use crate::link::Link;
use crate::modes::{Measured, pin_sender, receiver, sender, touched};
use crate::options::Options;
use crate::shared::{Shared, Told};
use crate::transfer::exactly;

/// A child that sends; this process receives.
pub(crate) fn two_processes(
    options: &Options,
    link: Link,
    around: Option<&Around>,
) -> Result<Measured, Fail> {
    let (mut out, mut into) = (touched(options)?, touched(options)?);
    let (into, total) = (into.as_mut_slice(), options.total_bytes);
    let told = Shared::map()?;
    let Link { sending, receiving, .. } = link;
    // SAFETY: takes nothing.
    let parent = unsafe { libc::getpid() };
    // SAFETY: this process has one thread, so that the child is whole.
    let mut child = match unsafe { libc::fork() } {
        -1 => return Err(Fail::last(OSERR, "start a second process")),
        0 => {
            drop(receiving);
            let done = die_with(parent)
                .and_then(|()| pin_sender(options))
                .and_then(|()| sender(options, &sending, out.as_mut_slice(), &told, around));
            told.set_usage(Usage::now().since(told.usage()));
            let code = done.err().map_or(0, |fail| {
                told.set_failure(&fail);
                fail.code
            });
            // SAFETY: ends this process, and runs nothing that belongs to its parent.
            unsafe { libc::_exit(code.into()) }
        }
        pid => Child(Some(pid)),
    };
    drop(sending);
    let end = receiver(options, &receiving, into, &told, around)?;
    ended(child.wait(), &told, end.received, total)?;
    exactly(end.received, total, &receiving, into, true)?;
    let elapsed_ns = end.end_ns - told.start_ns();
    Ok(Measured { bytes: end.received, elapsed_ns, usage: sum(end.usage.since(end.before), told.usage()) })
}

/// Lets the kernel end this process with the one that started it, whatever ends that.
fn die_with(parent: libc::pid_t) -> Result<(), Fail> {
    // SAFETY: takes integers only.
    let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if result != 0 {
        return Err(Fail::last(OSERR, "bind the sender to the receiver's end"));
    }
    // SAFETY: takes nothing.
    if unsafe { libc::getppid() } == parent {
        Ok(())
    } else {
        Err(Fail::new(OSERR, "the receiver has ended"))
    }
}

/// A child of ours, which is ended and reaped if it is dropped.
struct Child(Option<libc::pid_t>);

impl Child {
    /// Waits for its end; its wait status.
    fn wait(&mut self) -> libc::c_int {
        let mut status = 0;
        if let Some(pid) = self.0.take() {
            // SAFETY: `status` is a valid place for the answer. No handler of ours interrupts it, but others may exist.
            while unsafe { libc::waitpid(pid, &mut status, 0) } == -1
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {}
        }
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // SAFETY: takes integers only; a child that was not waited for keeps its number.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            self.wait();
        }
    }
}

/// What the sender's end means: its own failure, or a signal, is why not everything came.
fn ended(status: libc::c_int, told: &Told, received: u64, total: u64) -> Result<(), Fail> {
    if let Some(fail) = told.failure() {
        return Err(fail);
    }
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        let line =
            format!("the sending process was ended by signal {signal} after {received} of {total} bytes");
        return Err(Fail::new(IOERR, line));
    }
    Ok(())
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        utime_ns: one.utime_ns + other.utime_ns,
        stime_ns: one.stime_ns + other.stime_ns,
        nvcsw: one.nvcsw + other.nvcsw,
        nivcsw: one.nivcsw + other.nivcsw,
        inblock: one.inblock + other.inblock,
        oublock: one.oublock + other.oublock,
    }
}
