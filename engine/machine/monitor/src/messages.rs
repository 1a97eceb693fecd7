//! `/dev/kmsg`: what the kernel says.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use crate::kept::Root;
use crate::text::{find, number};

/// Messages of one sample that are kept; a flood of them must not fill the disk that is measured.
const MOST: usize = 100;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// 0 (emergency) to 7 (debugging).
    pub level: u8,
    /// 0: the kernel itself; others were written into its log by programs.
    pub facility: u32,
    /// Its number in the log.
    pub sequence: i64,
    /// By the scheduler's clock, which starts with the monotonic one and drifts from it.
    pub us: i64,
    pub text: String,
}

/// The kernel's log from now on.
pub struct Messages {
    file: File,
    buffer: Vec<u8>,
    /// The number of the record that comes next; none before the first.
    next: Option<i64>,
}

impl Messages {
    /// # Errors
    /// Why its messages cannot be read here.
    pub fn open(root: &Root) -> Result<Messages, String> {
        let path = root.path("dev/kmsg");
        let mut options = OpenOptions::new();
        let opened = options.read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let mut file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "there is no /dev/kmsg, as in most containers".to_owned(),
            io::ErrorKind::PermissionDenied => {
                "/dev/kmsg is for root here (kernel.dmesg_restrict)".to_owned()
            }
            _ => format!("/dev/kmsg: {error}"),
        })?;
        file.seek(SeekFrom::End(0)).map_err(|error| format!("/dev/kmsg: {error}"))?;
        let mut messages = Messages { file, buffer: vec![0; 16 << 10], next: None };
        // Some containers let it be opened and not be read.
        messages.record().map_err(|error| format!("/dev/kmsg: {error}"))?;
        messages.file.seek(SeekFrom::End(0)).map_err(|error| format!("/dev/kmsg: {error}"))?;
        Ok(messages)
    }

    /// What was said since the last call, and how many messages of it were not kept.
    pub fn read(&mut self) -> (Vec<Message>, u64) {
        let (mut kept, mut dropped) = (Vec::new(), 0);
        while let Ok(Some(record)) = self.record() {
            let Some(message) = message(record) else { continue };
            let missed = self.next.map_or(0, |next| message.sequence.saturating_sub(next).max(0));
            dropped += missed.unsigned_abs();
            self.next = message.sequence.checked_add(1);
            if kept.len() < MOST {
                kept.push(message);
            } else {
                dropped += 1;
            }
        }
        (kept, dropped)
    }

    /// The next record; none where there is none yet.
    fn record(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            match self.file.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => return Ok(Some(&self.buffer[..length])),
                // Older records were overwritten before they were read: it goes on with the oldest that is left.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

/// `LEVEL+8*FACILITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT`, then lines that begin with a blank.
pub fn message(record: &[u8]) -> Option<Message> {
    let semicolon = find(record, b';')?;
    let mut fields = record[..semicolon].split(|byte| *byte == b',');
    let mut next = || number(fields.next()?);
    let (priority, sequence, us) = (next()?, next()?, next()?);
    let text = &record[semicolon + 1..];
    let text = &text[..find(text, b'\n').unwrap_or(text.len())];
    Some(Message {
        level: (priority & 7) as u8,
        facility: u32::try_from(priority >> 3).ok()?,
        sequence,
        us,
        text: String::from_utf8_lossy(&unescaped(text)).into_owned(),
    })
}

/// Bytes that are no printable ASCII, and backslashes, stand as `\xNN`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.strip_prefix(b"x").filter(|_| *first == b'\\').and_then(|behind| behind.get(..2));
        let byte = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        found.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[3..] } else { behind };
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_is_read_without_its_dictionary() {
        let record =
            b"6,9852,21506645877,-;EXT4-fs (loop0): a\\x5cb \\xc3\\xa9\n SUBSYSTEM=block\n DEVICE=b7:0\n";
        let found = message(record).unwrap();
        assert_eq!((found.level, found.facility, found.sequence, found.us), (6, 0, 9852, 21_506_645_877));
        assert_eq!(found.text, "EXT4-fs (loop0): a\\b é");
    }

    #[test]
    fn a_record_that_a_program_wrote_says_so() {
        let found = message(b"12,7,8,-,caller=T1;\\xzz \\x4\n").unwrap();
        assert_eq!((found.level, found.facility), (4, 1));
        assert_eq!(found.text, "\\xzz \\x4", "what is no escape stays");
    }

    #[test]
    fn what_is_no_record_is_passed_over() {
        for wrong in [&b""[..], b"6,1,2", b"a,1,2,-;x", b"6;x", b"-6,1,2,-;x"] {
            assert_eq!(message(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_record_is_read_or_passed_over(text in "[0-9]{1,20},[0-9]{1,20},[0-9]{1,20},-;(\\\\x|\\PC){0,30}", bytes: Vec<u8>) {
            let _ = (message(text.as_bytes()), message(&bytes));
        }

        #[test]
        fn a_text_comes_back_as_it_was_written(text in "\\PC{0,60}", level in 0..8u8) {
            let escape = |byte: u8| match byte {
                b'\\' | 127.. | ..32 => format!("\\x{byte:02x}"),
                _ => char::from(byte).to_string(),
            };
            let escaped: String = text.bytes().map(escape).collect();
            let found = message(format!("{level},1,2,-;{escaped}\n").as_bytes()).unwrap();
            prop_assert_eq!((found.text, found.level), (text, level));
        }
    }
}
