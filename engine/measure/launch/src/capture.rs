//! A captured stream: of any length at no cost in memory.
//!
//! The launcher keeps both ends of the pipe, so that it serves any number of launches and no end of file is awaited:
//! what a command has written when it ends is what counts.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use etude_protocol::Captured;
use sha2::{Digest, Sha256};

use crate::sys;

const PIPE_BYTES: libc::c_int = 1 << 20;

/// How much is taken of one stream before anything else is looked at again: what a full pipe holds, B.
const TURN_BYTES: usize = PIPE_BYTES as usize;

/// Bytes read at once; the caller's buffer has this length.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// One stream of one worker.
pub struct Capture {
    read: File,
    write: OwnedFd,
    bytes: u64,
    digest: Sha256,
    tail: Vec<u8>,
    keep: usize,
}

impl Capture {
    /// A stream of whose end `keep` bytes are kept.
    pub fn new(keep: usize) -> io::Result<Capture> {
        let (read, write) = sys::pipe()?;
        sys::grow_pipe(&write, PIPE_BYTES);
        Ok(Capture { read, write, bytes: 0, digest: Sha256::new(), tail: Vec::new(), keep })
    }

    /// The end for the worker.
    pub fn write_end(&self) -> RawFd {
        self.write.as_raw_fd()
    }

    /// The descriptor to poll.
    pub fn read_end(&self) -> RawFd {
        self.read.as_raw_fd()
    }

    /// Takes what is in the pipe now. Somebody may write as fast as we read: more than a pipe can hold is left for the
    /// next time.
    pub fn drain(&mut self, buffer: &mut [u8]) {
        let mut taken = 0;
        while taken < TURN_BYTES {
            match (&self.read).read(buffer) {
                Ok(length) if length > 0 => {
                    self.take(&buffer[..length]);
                    taken += length;
                    if length < buffer.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.digest.update(chunk);
        if chunk.len() >= self.keep {
            self.tail.clear();
            self.tail.extend_from_slice(&chunk[chunk.len() - self.keep..]);
            return;
        }
        if self.tail.len() + chunk.len() > 2 * self.keep {
            let surplus = self.tail.len() + chunk.len() - self.keep;
            self.tail.drain(..surplus);
        }
        self.tail.extend_from_slice(chunk);
    }

    /// What was captured since the last call.
    pub fn finish(&mut self) -> Captured {
        let surplus = self.tail.len().saturating_sub(self.keep);
        let cut = self.bytes > (self.tail.len() - surplus) as u64;
        let mut tail = &self.tail[surplus..];
        // A tail may begin in the middle of a character: at most three bytes that only continue one.
        for _ in 0..3 {
            match tail.first() {
                Some(byte) if cut && byte & 0xC0 == 0x80 => tail = &tail[1..],
                _ => break,
            }
        }
        let tail = String::from_utf8_lossy(tail).into_owned();
        let captured =
            Captured { bytes: self.bytes, sha256: hexadecimal(&self.digest.finalize_reset()), tail };
        self.bytes = 0;
        self.tail.clear();
        captured
    }

    /// Whether anything was captured since the last [`finish`](Self::finish).
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[digit as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(keep: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(keep).unwrap();
        for chunk in chunks {
            capture.take(chunk);
        }
        capture.finish()
    }

    #[test]
    fn nothing_has_the_digest_of_nothing() {
        let nothing = captured(10, &[]);
        assert_eq!((nothing.bytes, nothing.tail.as_str()), (0, ""));
        assert_eq!(nothing.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn the_tail_is_the_end_however_it_came() {
        let all: Vec<u8> = (0..500u32).map(|i| b'a' + (i % 26) as u8).collect();
        for step in [1, 3, 7, 64, 500] {
            let chunks: Vec<&[u8]> = all.chunks(step).collect();
            let got = captured(60, &chunks);
            assert_eq!((got.bytes, got.tail.as_bytes()), (500, &all[440..]), "in steps of {step}");
        }
        assert_eq!(captured(0, &[&all]).tail, "");
    }

    #[test]
    fn a_tail_does_not_begin_inside_a_character() {
        assert_eq!(captured(4, &["aé€".as_bytes()]).tail, "€");
        assert_eq!(captured(2, &["€".as_bytes()]).tail, "");
    }

    #[test]
    fn a_capture_serves_again() {
        let mut capture = Capture::new(8).unwrap();
        capture.take(b"first");
        let first = capture.finish();
        capture.take(b"first");
        assert_eq!(capture.finish(), first);
        assert!(capture.is_empty());
    }
}
