//! `/proc/meminfo` and `/proc/vmstat`: a name and a number on each line.

use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};
use crate::text::{lines, number, words};

const KIB: i64 = 1024;

/// A column and the lines behind it: the first line's number, less the second's where there is one.
struct Wanted {
    column: Column,
    line: &'static str,
    less: Option<&'static str>,
    /// What the number is multiplied by.
    times: i64,
}

/// The source of one file.
pub struct Keyed {
    file: Option<Kept>,
    wanted: Vec<Wanted>,
    absent: Absent,
    buffer: Vec<u8>,
}

/// Memory, B.
pub fn memory(root: &Root) -> Keyed {
    let level = |name: &str, line, less| Wanted {
        column: Column::level(format!("memory.{name}"), "B", 1.0),
        line,
        less,
        times: KIB,
    };
    let wanted = vec![
        level("available", "MemAvailable", None),
        level("free", "MemFree", None),
        level("cached", "Cached", None),
        level("dirty", "Dirty", None),
        level("writeback", "Writeback", None),
        level("anonymous", "AnonPages", None),
        level("swap_used", "SwapTotal", Some("SwapFree")),
    ];
    Keyed::open(root, "proc/meminfo", "memory", wanted)
}

/// What goes between memory and disks.
pub fn paging(root: &Root) -> Keyed {
    let interval = |name: &str, unit, line, times| Wanted {
        column: Column::interval(format!("paging.{name}"), unit, 1.0),
        line,
        less: None,
        times,
    };
    let wanted = vec![
        interval("in", "B", "pgpgin", KIB),
        interval("out", "B", "pgpgout", KIB),
        interval("swapped_in", "", "pswpin", 1),
        interval("swapped_out", "", "pswpout", 1),
        interval("major_faults", "", "pgmajfault", 1),
    ];
    Keyed::open(root, "proc/vmstat", "paging", wanted)
}

impl Keyed {
    fn open(root: &Root, path: &str, group: &str, mut wanted: Vec<Wanted>) -> Keyed {
        let (mut absent, mut buffer) = (Absent::new(), Vec::new());
        let file = match Kept::open(root, path) {
            Ok(file) => Some(file),
            Err(error) => {
                absent.push((group.to_owned(), format!("/{path}: {error}")));
                wanted.clear();
                None
            }
        };
        let text = file.as_ref().and_then(|file| file.read(&mut buffer).ok()).unwrap_or_default();
        wanted.retain(|wanted| {
            let there = valued(text, wanted.line).is_some();
            if !there {
                absent.push((wanted.column.name.clone(), format!("/{path} has no {}", wanted.line)));
            }
            there
        });
        Keyed { file, wanted, absent, buffer }
    }
}

impl Source for Keyed {
    fn columns(&self) -> Vec<Column> {
        self.wanted.iter().map(|wanted| wanted.column.clone()).collect()
    }

    fn absent(&self) -> Absent {
        self.absent.clone()
    }

    fn read(&mut self, _: bool, values: &mut Vec<Option<i64>>) -> bool {
        let text = self.file.as_ref().and_then(|file| file.read(&mut self.buffer).ok()).unwrap_or_default();
        values.extend(self.wanted.iter().map(|wanted| {
            let value = valued(text, wanted.line)?;
            let less = wanted.less.map_or(Some(0), |line| valued(text, line))?;
            value.checked_sub(less)?.checked_mul(wanted.times)
        }));
        false
    }
}

/// The number on the line of this name: `Name:   12 kB` or `name 12`.
fn valued(text: &[u8], name: &str) -> Option<i64> {
    let behind = |line: &'_ [u8]| -> Option<usize> {
        let rest = line.strip_prefix(name.as_bytes())?;
        matches!(rest.first(), Some(b':' | b' ')).then_some(name.len() + 1)
    };
    let (line, at) = lines(text).find_map(|line| behind(line).map(|at| (line, at)))?;
    words(&line[at..]).next().and_then(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MEMINFO: &[u8] = b"MemTotal:       24684084 kB\nMemFree:        23253940 kB\nCached:          1146660 kB\n\
        SwapCached:            7 kB\nWritebackTmp:          9 kB\nWriteback:             3 kB\nHugePages_Total:       0\n";

    #[test]
    fn a_line_is_found_by_its_whole_name() {
        assert_eq!(valued(MEMINFO, "Cached"), Some(1_146_660), "and not SwapCached");
        assert_eq!(valued(MEMINFO, "Writeback"), Some(3), "and not WritebackTmp");
        assert_eq!(valued(MEMINFO, "Dirty"), None);
        assert_eq!(valued(b"pgpgin 12\npgpgout 13\n", "pgpgout"), Some(13));
        assert_eq!(valued(b"pgpgin\npgpgout many", "pgpgin"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "((Cached|pgpgin)[: ]?[ 0-9kB\\PC]{0,30}\n){0,6}", bytes: Vec<u8>) {
            let _ = (valued(text.as_bytes(), "Cached"), valued(&bytes, ""), valued(text.as_bytes(), "pgpgin"));
        }

        #[test]
        fn numbers_are_read_as_the_kernel_wrote_them(kib in 0..i64::MAX) {
            prop_assert_eq!(valued(format!("A: 1 kB\nDirty:   {kib} kB\n").as_bytes(), "Dirty"), Some(kib));
        }
    }
}
