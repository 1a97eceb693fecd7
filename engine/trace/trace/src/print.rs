//! Events as lines, in Pianola's form (Figure 3 of its paper): interval, call, result, duration.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use crate::event::Event;
use crate::meta::Meta;
use crate::reader::{Ending, Failed, Ordered, in_order};
use crate::words;

/// Writes a line an event, in order of their beginnings:
///
/// ```text
/// 0.000102840 openat(AT_FDCWD, "/etc/hosts", O_RDONLY|O_CLOEXEC) = 3 <0.000012080>
/// ```
///
/// The interval is that since the beginning of the thread's event before (of its first, since the beginning of the
/// trace); both times are in seconds. Where more than one thread has events, each line begins with the numbers of its
/// process (`-` if that is not known) and thread.
pub fn print(path: &Path, out: &mut impl Write) -> Result<Ending, Failed> {
    let mut lines =
        Lines { out, text: String::new(), before: HashMap::new(), owners: HashMap::new(), many: false };
    let ending = in_order(path, |next| match next {
        Ordered::Header(_, threads) => {
            lines.many = threads > 1;
            Ok(())
        }
        Ordered::Meta(Meta::Thread { thread, process, .. }) => {
            lines.owners.insert(thread, process);
            Ok(())
        }
        Ordered::Event { thread, event } => lines.add(thread, event),
        Ordered::Meta(_) | Ordered::Footer(_) => Ok(()),
    });
    // What came before damage is shown as well.
    lines.flush()?;
    ending
}

struct Lines<'a, W> {
    out: &'a mut W,
    text: String,
    /// When the last event of each thread began.
    before: HashMap<u32, u64>,
    /// The process of each thread.
    owners: HashMap<u32, u32>,
    /// Whether there is more than one thread.
    many: bool,
}

impl<W: Write> Lines<'_, W> {
    fn add(&mut self, thread: u32, event: &Event) -> io::Result<()> {
        if self.many {
            let written = match self.owners.get(&thread) {
                Some(process) => write!(self.text, "{process:3} {thread:3} "),
                None => write!(self.text, "  - {thread:3} "),
            };
            written.expect("a string grows");
        }
        let before = self.before.insert(thread, event.start_ns).unwrap_or(0);
        line(&mut self.text, event, event.start_ns.wrapping_sub(before) as i64);
        if self.text.len() > 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
}

/// Appends an event's line.
fn line(out: &mut String, event: &Event, interval_ns: i64) {
    if interval_ns < 0 {
        out.push('-');
    }
    words::seconds(out, interval_ns.unsigned_abs());
    out.push(' ');
    out.push_str(event.call.name());
    out.push('(');
    for index in 0..event.call.used(&event.arguments) {
        if index > 0 {
            out.push_str(", ");
        }
        let kind = event.call.kind(&event.arguments, index);
        words::argument(out, kind, event.arguments[index], event.text(index).map(|text| &text[..]));
    }
    out.push_str(") = ");
    words::result(out, event.call, event.result);
    out.push_str(" <");
    words::seconds(out, event.duration_ns);
    out.push_str(">\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use etude_calls::Call;
    use smallvec::smallvec;

    fn shown(name: &str, arguments: [u64; 6], result: i64, text: Option<(u8, &[u8])>) -> String {
        let mut event = Event {
            start_ns: 0,
            duration_ns: 1_000_012_080,
            call: Call::named(name).unwrap(),
            result,
            arguments,
            texts: smallvec![],
        };
        event.texts.extend(text.map(|(argument, bytes)| crate::Text { argument, bytes: bytes.into() }));
        let mut out = String::new();
        line(&mut out, &event, 102_840);
        out
    }

    #[test]
    fn a_line_is_that_of_pianolas_figure() {
        let cwd = -100_i64 as u64;
        assert_eq!(
            shown("openat", [cwd, 5, 0o2000000, 0, 0, 0], 3, Some((1, b"/etc/hosts"))),
            "0.000102840 openat(AT_FDCWD, \"/etc/hosts\", O_RDONLY|O_CLOEXEC) = 3 <1.000012080>\n"
        );
        assert_eq!(
            shown("openat", [cwd, 5, 0, 0, 0, 0], -2, None),
            "0.000102840 openat(AT_FDCWD, 0x5, O_RDONLY) = -1 ENOENT <1.000012080>\n"
        );
        let ends = |line: String, end: &str| assert!(line.ends_with(end), "{line}");
        ends(shown("brk", [0; 6], 0x5000, None), "brk(NULL) = 0x5000 <1.000012080>\n");
        ends(
            shown("lseek", [3, 0, 2, 0, 0, 0], i64::MAX, None),
            "SEEK_END) = 9223372036854775807 <1.000012080>\n",
        );
        ends(shown("close", [3, 0, 0, 0, 0, 0], -4000, None), "close(3) = -4000 <1.000012080>\n");
        let pair = [3_i32, 4].map(i32::to_le_bytes).concat();
        ends(shown("pipe2", [9, 0, 0, 0, 0, 0], 0, Some((0, &pair))), "pipe2([3, 4], 0) = 0 <1.000012080>\n");
        ends(
            shown("unlink", [9, 0, 0, 0, 0, 0], 0, Some((0, b"a\"\\\n\x01\xff"))),
            "unlink(\"a\\\"\\\\\\n\\001\\377\") = 0 <1.000012080>\n",
        );
    }

    #[test]
    fn an_event_that_began_before_the_last_one_has_an_interval_below_zero() {
        let event = Event {
            start_ns: 0,
            duration_ns: 0,
            call: Call::named("sync").unwrap(),
            result: 0,
            arguments: [0; 6],
            texts: smallvec![],
        };
        let mut out = String::new();
        line(&mut out, &event, -1_500_000_000);
        assert_eq!(out, "-1.500000000 sync() = 0 <0.000000000>\n");
    }
}
