//! `/proc/stat` and `/proc/loadavg`: CPU time by mode, tasks, switches, forks, interrupts, load.

use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};
use crate::text::{lines, number, words};

const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
const COUNTS: [(&str, &str); 5] = [
    ("tasks.runnable", "procs_running"),
    ("tasks.blocked", "procs_blocked"),
    ("switches", "ctxt"),
    ("forks", "processes"),
    ("interrupts", "intr"),
];

/// Clock ticks a second, in which the kernel gives CPU time; 100 on all that Étude runs on.
pub fn ticks_a_second() -> i64 {
    // SAFETY: a call on numbers.
    match unsafe { libc::sysconf(libc::_SC_CLK_TCK) } {
        ticks @ 1.. => ticks,
        _ => 100,
    }
}

/// What `/proc/stat` says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Ticks by mode, of all CPUs together.
    pub modes: [Option<i64>; MODES.len()],
    pub counts: [Option<i64>; COUNTS.len()],
    /// The CPUs that are online.
    pub cpus: Vec<u32>,
}

impl Stat {
    /// Reads it anew into the same place.
    pub fn read(&mut self, text: &[u8]) {
        self.modes = [None; MODES.len()];
        self.counts = [None; COUNTS.len()];
        self.cpus.clear();
        for line in lines(text) {
            let mut words = words(line);
            let Some(name) = words.next() else { continue };
            if name == b"cpu" {
                for (place, word) in self.modes.iter_mut().zip(&mut words) {
                    *place = number(word);
                }
            } else if let Some(cpu) = name.strip_prefix(b"cpu") {
                self.cpus.extend(number(cpu).and_then(|cpu| u32::try_from(cpu).ok()));
            } else if let Some(at) = COUNTS.iter().position(|(_, key)| key.as_bytes() == name) {
                self.counts[at] = words.next().and_then(number);
            }
        }
    }
}

/// Hundredths of the load over one minute, from `/proc/loadavg`.
fn load(text: &[u8]) -> Option<i64> {
    let word = words(text).next()?;
    let point = crate::text::find(word, b'.')?;
    let fraction = number(&word[point + 1..]).filter(|_| word.len() == point + 3)?;
    number(&word[..point])?.checked_mul(100)?.checked_add(fraction)
}

/// The source.
pub struct Machine {
    stat: Kept,
    loadavg: Option<Kept>,
    buffer: Vec<u8>,
    found: Stat,
    cpus: Vec<u32>,
    ticks_a_second: f64,
}

impl Machine {
    /// # Errors
    /// There is no `/proc/stat`: nothing can be sampled here.
    pub fn open(root: &Root) -> std::io::Result<Machine> {
        let mut machine = Machine {
            stat: Kept::open(root, "proc/stat")?,
            loadavg: Kept::open(root, "proc/loadavg").ok(),
            buffer: Vec::new(),
            found: Stat::default(),
            cpus: Vec::new(),
            ticks_a_second: ticks_a_second() as f64,
        };
        machine.found.read(machine.stat.read(&mut machine.buffer)?);
        machine.cpus.clone_from(&machine.found.cpus);
        Ok(machine)
    }

    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }
}

impl Source for Machine {
    fn columns(&self) -> Vec<Column> {
        let mode = |mode: &&str| Column::interval(format!("cpu.{mode}"), "s", self.ticks_a_second);
        let count = |(name, _): &(&str, &str)| match name.starts_with("tasks.") {
            true => Column::level(*name, "", 1.0),
            false => Column::interval(*name, "", 1.0),
        };
        let load = self.loadavg.iter().map(|_| Column::level("load.1", "", 100.0));
        MODES.iter().map(mode).chain(load).chain(COUNTS.iter().map(count)).collect()
    }

    fn absent(&self) -> Absent {
        match self.loadavg {
            Some(_) => Absent::new(),
            None => vec![("load".to_owned(), "there is no /proc/loadavg".to_owned())],
        }
    }

    fn read(&mut self, _: bool, values: &mut Vec<Option<i64>>) -> bool {
        let text = self.stat.read(&mut self.buffer).unwrap_or_default();
        self.found.read(text);
        values.extend(self.found.modes);
        if let Some(loadavg) = &self.loadavg {
            values.push(loadavg.piece(&mut [0; 128]).ok().and_then(load));
        }
        values.extend(self.found.counts);
        let changed = self.found.cpus != self.cpus;
        if changed {
            self.cpus.clone_from(&self.found.cpus);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"cpu  2070304 558300 426368 1642723 27437 0 7298 7539 11 12\n\
        cpu0 1011492 259525 210041 872644 10309 0 1286 3765 0 0\ncpu3 1 2 3 4 5 6 7 8 0 0\n\
        intr 38932013 0 0 14\nctxt 95248498\nbtime 1795340967\nprocesses 799198\nprocs_running 2\nprocs_blocked 1\n\
        softirq 15074172 0 1641990\n";

    fn read(text: &[u8]) -> Stat {
        let mut stat = Stat::default();
        stat.read(text);
        stat
    }

    #[test]
    fn cpu_time_is_that_of_all_cpus_and_without_guests_which_are_in_user_already() {
        let stat = read(TEXT);
        assert_eq!(stat.modes.map(Option::unwrap), [2070304, 558300, 426368, 1642723, 27437, 0, 7298, 7539]);
        assert_eq!(stat.counts.map(Option::unwrap), [2, 1, 95248498, 799198, 38932013]);
        assert_eq!(stat.cpus, [0, 3], "those that are online");
    }

    #[test]
    fn what_an_old_kernel_does_not_say_is_none() {
        let stat = read(b"cpu  1 2 3 4\nctxt many\n");
        assert_eq!(stat.modes[3..], [Some(4), None, None, None, None]);
        assert_eq!(stat.counts, [None; 5]);
    }

    #[test]
    fn load_is_read_in_hundredths() {
        assert_eq!(load(b"0.22 0.28 0.94 1/94 20459\n"), Some(22));
        assert_eq!(load(b"131.07 1 1"), Some(13_107));
        for wrong in [&b""[..], b"1", b"1.", b"a.bc", b"1.234"] {
            assert_eq!(load(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "((cpu[0-9]{0,2}|intr|ctxt)?[ 0-9\\PC]{0,40}\n){0,9}", bytes: Vec<u8>) {
            let _ = (read(text.as_bytes()), read(&bytes), load(&bytes), load(text.as_bytes()));
        }

        #[test]
        fn ticks_are_read_as_the_kernel_wrote_them(modes in proptest::array::uniform8(0..i64::MAX)) {
            let words = modes.map(|ticks| ticks.to_string()).join(" ");
            prop_assert_eq!(read(format!("cpu  {words} 0 0\n").as_bytes()).modes, modes.map(Some));
        }
    }
}
