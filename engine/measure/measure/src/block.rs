//! A measurement as text.

use std::fmt::Write;

use etude_clock::seconds;
use etude_launch::{Status, Usage, time_of_day};

use crate::Request;

/// What one command gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// When it started on the monotonic clock, ns.
    pub start_ns: u64,
    /// From the monotonic clock to the time of day, ns.
    pub day_offset_ns: u64,
    /// Wall-clock time, ns.
    pub elapsed_ns: u64,
    /// How it ended.
    pub status: Status,
    /// What it and the children it waited for used.
    pub usage: Usage,
    /// Peak memory of the launcher, from which that of the command starts, B.
    pub peak_memory_floor_bytes: Option<u64>,
}

impl Measured {
    /// As a shell tells it: the command's own, or 128+n for a signal.
    pub fn exit_status(&self) -> u8 {
        match self.status {
            Status::Exited(status) => status as u8,
            Status::Signalled(signal) => 128u8.wrapping_add(signal as u8),
        }
    }

    /// An Auto-pilot measurement block.
    pub fn block(&self, request: &Request) -> String {
        let mut text = String::from("[measurement]\n");
        let mut field = |name: &str, value: &dyn std::fmt::Display| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} = {value}");
        };
        field("thread", &request.thread);
        field("epoch", &request.epoch);
        field("command", &quoted(&request.argv));
        field("user", &format!("{:.6}", self.usage.user_us as f64 / 1e6));
        field("sys", &format!("{:.6}", self.usage.system_us as f64 / 1e6));
        field("elapsed", &format!("{:.6}", seconds(self.elapsed_ns)));
        field("status", &self.exit_status());
        for (name, value) in self.counts() {
            field(name, &value);
        }
        field("start", &self.start());
        field("start_ns", &self.start_ns);
        text
    }

    /// One JSON object and the end of its line.
    pub fn json(&self, request: &Request) -> String {
        let mut object = serde_json::json!({
            "thread": request.thread,
            "epoch": request.epoch,
            "command": request.argv,
            "user": self.usage.user_us as f64 / 1e6,
            "sys": self.usage.system_us as f64 / 1e6,
            "elapsed": seconds(self.elapsed_ns),
            "status": self.exit_status(),
        });
        for (name, value) in self.counts() {
            object[name] = value.into();
        }
        object["start"] = self.start().into();
        object["start_ns"] = self.start_ns.into();
        format!("{object}\n")
    }

    /// Time of day at the start, as rows have it.
    fn start(&self) -> String {
        time_of_day::utc(self.start_ns.wrapping_add(self.day_offset_ns))
    }

    fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let signal = match self.status {
            Status::Signalled(signal) => Some(signal as u64),
            Status::Exited(_) => None,
        };
        let memory = [
            ("signal", signal),
            ("peak_memory", Some(self.usage.peak_memory_bytes)),
            ("peak_memory_floor", self.peak_memory_floor_bytes),
        ];
        let known = memory.into_iter().filter_map(|(name, value)| Some((name, value?)));
        known.chain(self.usage.counts())
    }
}

/// A command as a shell would take it, on one line whatever it holds.
fn quoted(argv: &[String]) -> String {
    argv.iter().map(|word| quoted_word(word)).collect::<Vec<_>>().join(" ")
}

fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-+=./,:@%^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.chars().any(char::is_control) {
        let escaped: String = word.chars().map(escaped).collect();
        format!("$'{escaped}'")
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn escaped(c: char) -> String {
    match c {
        '\n' => r"\n".into(),
        '\t' => r"\t".into(),
        '\'' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", c as u32),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(argv: &[&str]) -> Request {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        Request { argv, output: None, json: false, thread: 1, epoch: 3, barrier: None }
    }

    fn measured() -> Measured {
        let usage = Usage { user_us: 1234, system_us: 5, peak_memory_bytes: 4096, ..Usage::default() };
        Measured {
            start_ns: 7,
            day_offset_ns: 951_782_400_000_000_000,
            elapsed_ns: 2_000_000_400,
            status: Status::Exited(3),
            usage,
            peak_memory_floor_bytes: None,
        }
    }

    #[test]
    fn a_block_begins_with_the_fields_of_auto_pilot() {
        let block = measured().block(&request(&["postmark", "x = [y]"]));
        let expected = "[measurement]\nthread = 1\nepoch = 3\ncommand = postmark 'x = [y]'\nuser = 0.001234\n\
                        sys = 0.000005\nelapsed = 2.000000\nstatus = 3\npeak_memory = 4096\nminor_faults = 0\n";
        assert!(block.starts_with(expected), "{block}");
    }

    #[test]
    fn a_block_ends_with_its_start() {
        let block = measured().block(&request(&["x"]));
        let expected = "blocks_out = 0\nstart = 2000-02-29T00:00:00.000000007Z\nstart_ns = 7\n";
        assert!(block.ends_with(expected), "{block}");
        let object: serde_json::Value = serde_json::from_str(&measured().json(&request(&["x"]))).unwrap();
        assert_eq!(
            (&object["start"], &object["start_ns"]),
            (&"2000-02-29T00:00:00.000000007Z".into(), &7.into())
        );
    }

    #[test]
    fn a_command_stays_on_its_line() {
        assert_eq!(quoted_word("a\nb'\u{1}"), r"$'a\nb\'\u0001'");
        assert_eq!(quoted_word("it's"), r"'it'\''s'");
        assert_eq!(quoted_word(""), "''");
        assert_eq!(quoted_word("-j4"), "-j4");
    }

    #[test]
    fn a_signal_is_told_as_a_shell_does() {
        let killed = Measured { status: Status::Signalled(9), ..measured() };
        assert_eq!(killed.exit_status(), 137);
        assert!(killed.block(&request(&["x"])).contains("status = 137\nsignal = 9\n"));
    }
}
