//! One sample, within one process.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use etude_clock::monotonic_ns;
use etude_counters::Around;
use etude_micro::buffer::Buffer;
use etude_micro::exit::{Fail, OSERR};
use etude_micro::pin;
use etude_micro::usage::Usage;

use crate::link::Link;
use crate::options::Options;
use crate::shared::{Shared, Told};
use crate::transfer::{alternate, exactly, receive, send};

/// What a sample gave.
pub(crate) struct Measured {
    pub bytes: u64,
    pub elapsed_ns: u64,
    pub usage: Usage,
}

/// One thread that writes and reads in turn.
pub(crate) fn one_thread(options: &Options, link: Link, around: Option<&Around>) -> Result<Measured, Fail> {
    let (mut out, mut into) = (touched(options)?, touched(options)?);
    let (out, into, total) = (out.as_mut_slice(), into.as_mut_slice(), options.total_bytes);
    link.unblock()?;
    let before = Usage::now();
    around.inspect(|around| around.start());
    let start_ns = monotonic_ns();
    let received = alternate(&link.sending, &link.receiving, out, into, total);
    let end_ns = monotonic_ns();
    around.inspect(|around| around.pause());
    let usage = Usage::now().since(before);
    let bytes = received?;
    exactly(bytes, total, &link.receiving, into, false)?;
    Ok(Measured { bytes, elapsed_ns: end_ns - start_ns, usage })
}

/// A thread that sends; this one receives.
pub(crate) fn two_threads(options: &Options, link: Link, around: Option<&Around>) -> Result<Measured, Fail> {
    let (mut out, mut into) = (touched(options)?, touched(options)?);
    let (out, into, total) = (out.as_mut_slice(), into.as_mut_slice(), options.total_bytes);
    let told = &Shared::map()?;
    let Link { sending, receiving, .. } = link;
    thread::scope(move |scope| {
        // Both ends are closed by whoever has them when it ends, so that nobody waits for one who has failed.
        let sender = move || pin_sender(options).and_then(|()| sender(options, &sending, out, told, around));
        let receiving = receiving;
        let named = thread::Builder::new().name("sender".to_owned());
        let sender = named
            .spawn_scoped(scope, sender)
            .map_err(|error| Fail::call(OSERR, "start a second thread", &error))?;
        let end = receiver(options, &receiving, into, told, around)?;
        sender.join().unwrap_or_else(|_| Err(Fail::new(OSERR, "the sending thread fell")))?;
        exactly(end.received, total, &receiving, into, true)?;
        let elapsed_ns = end.end_ns - told.start_ns();
        Ok(Measured { bytes: end.received, elapsed_ns, usage: end.usage.since(told.usage()) })
    })
}

/// The sender's half. What its process had used until the first byte stands in `told.usage` then.
pub(crate) fn sender(
    options: &Options,
    end: &OwnedFd,
    out: &[u8],
    told: &Told,
    around: Option<&Around>,
) -> Result<(), Fail> {
    if !options.bare {
        while !told.is_ready() {
            thread::sleep(Duration::from_micros(50));
        }
        // It said so just before its first read, in which it should wait.
        thread::sleep(Duration::from_millis(1));
    }
    told.set_usage(Usage::now());
    around.inspect(|around| around.start());
    told.set_start_ns(monotonic_ns());
    send(end, out, options.total_bytes)
}

/// What the receiver knows at the last byte.
pub(crate) struct End {
    pub received: u64,
    pub end_ns: u64,
    /// Of its process, before it received anything.
    pub before: Usage,
    /// Of its process, now.
    pub usage: Usage,
}

/// The receiver's half.
pub(crate) fn receiver(
    options: &Options,
    end: &OwnedFd,
    into: &mut [u8],
    told: &Told,
    around: Option<&Around>,
) -> Result<End, Fail> {
    let before = Usage::now();
    told.set_ready();
    let received = receive(end, into, options.total_bytes);
    let end_ns = monotonic_ns();
    around.inspect(|around| around.pause());
    let usage = Usage::now();
    Ok(End { received: received?, end_ns, before, usage })
}

pub(crate) fn pin_sender(options: &Options) -> Result<(), Fail> {
    options.cpus.first().map_or(Ok(()), |cpu| pin::to(*cpu))
}

/// A buffer whose pages are there: it is not their making that is timed.
pub(crate) fn touched(options: &Options) -> Result<Buffer, Fail> {
    let mut buffer = Buffer::map(options.buffer_bytes, None)?;
    buffer.touch();
    Ok(buffer)
}
