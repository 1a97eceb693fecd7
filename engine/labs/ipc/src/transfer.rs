//! The loops that are timed. Nothing is allocated, printed or looked up in them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use etude_micro::exit::{Fail, IOERR};

/// Writes `total` bytes in blocks of the buffer; the last one may be shorter.
///
/// # Errors
/// The receiver has closed its end, or the system cannot write.
pub(crate) fn send(end: &OwnedFd, buffer: &[u8], total: u64) -> Result<(), Fail> {
    let mut sent = 0;
    while sent < total {
        let rest = block(buffer, sent, total);
        match write(end, rest) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed("send", sent, total, &error)),
        }
    }
    Ok(())
}

/// Reads until `total` bytes have come or the sender has closed its end; how many came.
///
/// # Errors
/// The system cannot read.
pub(crate) fn receive(end: &OwnedFd, buffer: &mut [u8], total: u64) -> Result<u64, Fail> {
    let mut received = 0;
    while received < total {
        match read(end, buffer) {
            Ok(0) => break,
            Ok(bytes) => received += bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed("receive", received, total, &error)),
        }
    }
    Ok(received)
}

/// Writes and reads in turn, neither of which waits: as much of a block as there is room for, then as much as there is.
/// How many bytes came.
///
/// # Errors
/// The system can do neither.
pub(crate) fn alternate(
    sending: &OwnedFd,
    receiving: &OwnedFd,
    out: &[u8],
    into: &mut [u8],
    total: u64,
) -> Result<u64, Fail> {
    let (mut sent, mut received) = (0, 0);
    while received < total {
        let mut moved = false;
        if sent < total {
            match write(sending, block(out, sent, total)) {
                Ok(bytes) => (sent, moved) = (sent + bytes as u64, true),
                Err(error) if later(&error) => {}
                Err(error) => return Err(failed("send", sent, total, &error)),
            }
        }
        match read(receiving, into) {
            Ok(0) => break,
            Ok(bytes) => (received, moved) = (received + bytes as u64, true),
            Err(error) if later(&error) => {}
            Err(error) => return Err(failed("receive", received, total, &error)),
        }
        if !moved {
            wait(sending, receiving, sent < total);
        }
    }
    Ok(received)
}

/// Makes sure that so many bytes came, and that nothing comes behind them. A sender that has ended gives the end of the
/// stream; one that is this thread (`waits` is false), nothing.
///
/// # Errors
/// Fewer or more came.
pub(crate) fn exactly(
    received: u64,
    total: u64,
    end: &OwnedFd,
    buffer: &mut [u8],
    waits: bool,
) -> Result<(), Fail> {
    if received != total {
        return Err(unequal(received, total));
    }
    loop {
        match read(end, buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => return Err(unequal(total + bytes as u64, total)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !waits => return Ok(()),
            Err(error) => return Err(failed("look for the end", total, total, &error)),
        }
    }
}

/// What is left of the block that the next byte is in.
fn block(buffer: &[u8], sent: u64, total: u64) -> &[u8] {
    let size = buffer.len() as u64;
    let start = (sent % size) as usize;
    let rest = usize::try_from(total - sent).unwrap_or(usize::MAX);
    &buffer[start..][..rest.min(buffer.len() - start)]
}

fn write(end: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes live through the call, and their number is said.
    let result = unsafe { libc::write(end.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn read(end: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer lives through the call, and its size is said.
    let result = unsafe { libc::read(end.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Sleeps until there is something to read, or room to write to. TCP delivers later than it takes.
fn wait(sending: &OwnedFd, receiving: &OwnedFd, more: bool) {
    let wanted = |end: &OwnedFd, events| libc::pollfd { fd: end.as_raw_fd(), events, revents: 0 };
    let mut ends = [wanted(receiving, libc::POLLIN), wanted(sending, libc::POLLOUT)];
    let count = if more { 2 } else { 1 };
    // SAFETY: there are at least so many entries, which live through the call. What it finds, the next round finds, too.
    unsafe { libc::poll(ends.as_mut_ptr(), count, -1) };
}

fn unequal(received: u64, total: u64) -> Fail {
    let line = if received < total {
        format!("receive: the sender closed its end after {received} of {total} bytes")
    } else {
        format!("receive: more than {total} bytes came, where no more were sent; please report it")
    };
    Fail::new(IOERR, line)
}

fn failed(doing: &str, bytes: u64, total: u64, error: &io::Error) -> Fail {
    Fail::call(IOERR, format!("{doing}: after {bytes} of {total} bytes"), error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::os::unix::thread::JoinHandleExt;
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    fn ends() -> (OwnedFd, OwnedFd) {
        let (one, other) = UnixStream::pair().expect("descriptors");
        (one.into(), other.into())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

        #[test]
        fn each_byte_goes_once_whatever_the_sizes(size in 1usize..9000, room in 1usize..9000, total in 1u64..100_000) {
            let (sending, receiving) = ends();
            let out: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
            thread::scope(|scope| {
                scope.spawn(move || send(&sending, &out, total).expect("somebody reads"));
                let mut into = vec![0; room];
                let received = receive(&receiving, &mut into, total).expect("all come");
                exactly(received, total, &receiving, &mut into, true).expect("and no more");
            });
        }

        #[test]
        fn alternating_moves_each_byte_once(size in 1usize..9000, room in 1usize..9000, total in 1u64..100_000) {
            let (sending, receiving) = UnixStream::pair().expect("descriptors");
            sending.set_nonblocking(true).and_then(|()| receiving.set_nonblocking(true)).expect("sockets");
            let (sending, receiving) = (sending.into(), receiving.into());
            let mut into = vec![0; room];
            let received = alternate(&sending, &receiving, &vec![7; size], &mut into, total).expect("all come");
            exactly(received, total, &receiving, &mut into, false).expect("and no more");
        }

        #[test]
        fn blocks_are_those_of_the_buffer_and_the_last_is_the_rest(size in 1usize..100, total in 1u64..1000) {
            let buffer = vec![0; size];
            let mut sent = 0;
            while sent < total {
                let whole = block(&buffer, sent, total).len();
                prop_assert_eq!(whole as u64, (size as u64).min(total - sent));
                if whole > 1 {
                    // After a partial write comes what is left of the block.
                    prop_assert_eq!(block(&buffer, sent + 1, total).len(), whole - 1);
                }
                sent += whole as u64;
            }
            prop_assert_eq!(sent, total);
        }
    }

    #[test]
    fn a_write_that_a_signal_cuts_short_is_gone_on_with() {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: sigaction is plain old data; the handler does nothing, and no other test uses this signal.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        }
        let (receiving, sending) = std::io::pipe().expect("descriptors");
        let (receiving, sending) = (OwnedFd::from(receiving), OwnedFd::from(sending));
        let total = 4 << 20;
        let sender = thread::spawn(move || send(&sending, &vec![1; 1 << 20], total));
        let (mut received, mut buffer) = (0, vec![0; 50_000]);
        while received < total {
            received += match read(&receiving, &mut buffer).expect("it can be read") {
                0 => break,
                bytes => bytes as u64,
            };
            // SAFETY: the thread is not joined before the end, so that its handle is valid.
            unsafe { libc::pthread_kill(sender.as_pthread_t(), libc::SIGUSR1) };
        }
        sender.join().expect("no panic").expect("all is sent");
        exactly(received, total, &receiving, &mut buffer, true).expect("each byte once");
    }

    #[test]
    fn a_sender_that_ends_early_is_told_with_how_far_it_came() {
        let (sending, receiving) = ends();
        send(&sending, &[0; 10], 25).expect("there is room");
        drop(sending);
        let received = receive(&receiving, &mut [0; 64], 26).expect("it is the end");
        let fail = exactly(received, 26, &receiving, &mut [0; 64], true).expect_err("one is missing");
        assert_eq!(fail, Fail::new(IOERR, "receive: the sender closed its end after 25 of 26 bytes"));
    }

    #[test]
    fn a_receiver_that_ends_early_is_an_error_and_no_signal() {
        let (sending, receiving) = ends();
        drop(receiving);
        let fail = send(&sending, &[0; 10], 25).expect_err("nobody reads");
        assert_eq!(fail, Fail::new(IOERR, "send: after 0 of 25 bytes: Broken pipe"));
    }

    #[test]
    fn a_byte_too_many_is_noticed() {
        let (mut sending, receiving) = UnixStream::pair().expect("descriptors");
        let receiving = receiving.into();
        sending.write_all(&[0; 11]).expect("there is room");
        let received = receive(&receiving, &mut [0; 64], 10).expect("they come");
        assert_eq!(received, 11);
        let fail = exactly(received, 10, &receiving, &mut [0; 5], true).expect_err("one too many");
        assert!(fail.line.contains("more than 10 bytes came"), "{}", fail.line);
        sending.write_all(&[0; 11]).expect("there is room");
        let received = receive(&receiving, &mut [0; 5], 10).expect("so many come in two reads");
        assert_eq!(received, 10);
        assert!(exactly(received, 10, &receiving, &mut [0; 5], true).is_err());
    }
}
