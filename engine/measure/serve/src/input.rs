//! Requests and signals, also while a launch is under way.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use etude_launch::{Control, Launcher, sys};
use etude_protocol::{Request, parse};
use serde_json::Value;

/// Longest line of input that is taken, B.
const LINE_BYTES: usize = 64 << 20;

/// A request, or what to answer to a line that is none.
pub(crate) type Parsed = Result<Request, (Value, String)>;

/// What comes in.
pub(crate) struct Input {
    signals: OwnedFd,
    lines: Lines,
    ended: bool,
}

impl Input {
    pub fn new() -> io::Result<Input> {
        let signals = sys::signalfd(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
        Ok(Input { signals, lines: Lines::default(), ended: false })
    }

    /// Waits for the next request. None: it is time to end. Meanwhile, what kept processes write is thrown away.
    pub fn next(&mut self, launcher: &mut Launcher) -> io::Result<Option<Parsed>> {
        loop {
            if let Some(parsed) = self.lines.take() {
                return Ok(Some(parsed));
            }
            if self.ended {
                return Ok(None);
            }
            let mut polled: Vec<_> =
                self.fds().into_iter().chain(launcher.idle_fds()).map(sys::wanted).collect();
            sys::poll(&mut polled, None)?;
            if polled[..2].iter().any(|news| news.revents != 0) {
                self.look();
            }
            launcher.drain_idle();
        }
    }

    /// Takes the instant at which the launch `id` shall be released, if that was told.
    pub fn take_release(&mut self, id: u64) -> Option<u64> {
        self.lines.take_release(id)
    }

    fn read(&mut self) {
        let mut chunk = [0u8; 16 * 1024];
        // SAFETY: `chunk` is a valid place for its length.
        let length = unsafe { libc::read(0, chunk.as_mut_ptr().cast(), chunk.len()) };
        match usize::try_from(length) {
            Ok(0) => self.ended = true,
            Ok(length) => self.lines.feed(&chunk[..length]),
            Err(_) if sys::last_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.ended = true,
        }
    }
}

impl Control for Input {
    fn fds(&self) -> [RawFd; 2] {
        let stdin = if self.ended { -1 } else { 0 };
        [stdin, self.signals.as_raw_fd()]
    }

    fn look(&mut self) {
        let mut polled = self.fds().map(sys::wanted);
        if sys::poll(&mut polled, Some(0)).is_err() {
            self.ended = true;
            return;
        }
        if polled[1].revents != 0 {
            sys::take_signal(&self.signals);
            self.ended = true;
        } else if polled[0].revents != 0 {
            self.read();
        }
    }

    /// A cancel that waits behind other requests counts for them as well.
    fn cancelled(&self) -> bool {
        self.ended || self.lines.cancels > 0
    }
}

/// Bytes to lines to requests.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    too_long: bool,
    waiting: VecDeque<Parsed>,
    cancels: usize,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|&byte| byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            if self.begun.len() + piece.len() > LINE_BYTES {
                self.too_long = true;
                self.begun = Vec::new();
            } else if !self.too_long {
                self.begun.extend_from_slice(piece);
            }
            if pieces.peek().is_some() {
                self.finish_line();
            }
        }
    }

    fn finish_line(&mut self) {
        let line = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.too_long) {
            let error = format!("request: a line longer than {LINE_BYTES} bytes; expected a shorter one");
            self.waiting.push_back(Err((Value::Null, error)));
        } else if !line.trim_ascii().is_empty() {
            let parsed = parse(&line);
            self.cancels += usize::from(parsed == Ok(Request::Cancel));
            self.waiting.push_back(parsed);
        }
    }

    fn take_release(&mut self, launch: u64) -> Option<u64> {
        let told = |parsed: &Parsed| matches!(parsed, Ok(Request::Release { id, .. }) if *id == launch);
        match self.waiting.remove(self.waiting.iter().position(told)?) {
            Some(Ok(Request::Release { at_ns, .. })) => Some(at_ns),
            _ => None,
        }
    }

    fn take(&mut self) -> Option<Parsed> {
        let parsed = self.waiting.pop_front()?;
        self.cancels -= usize::from(parsed == Ok(Request::Cancel));
        Some(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_together_from_any_pieces() {
        let text = b"{\"do\":\"end\",\"id\":1}\n\n {\"do\":\"cancel\"}\nrubbish\n{\"do\":\"en";
        for step in 1..text.len() {
            let mut lines = Lines::default();
            text.chunks(step).for_each(|chunk| lines.feed(chunk));
            assert_eq!(lines.cancels, 1);
            assert_eq!(lines.take(), Some(Ok(Request::End { id: 1 })));
            assert_eq!(lines.take(), Some(Ok(Request::Cancel)));
            assert!(matches!(lines.take(), Some(Err((Value::Null, _)))));
            assert_eq!((lines.take(), lines.cancels), (None, 0));
        }
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; 1 << 20];
        (0..100).for_each(|_| lines.feed(&chunk));
        assert!(lines.begun.len() <= LINE_BYTES);
        lines.feed(b"\n{\"do\":\"end\",\"id\":2}\n");
        assert!(matches!(lines.take(), Some(Err((Value::Null, error))) if error.contains("longer")));
        assert_eq!(lines.take(), Some(Ok(Request::End { id: 2 })));
    }
}
