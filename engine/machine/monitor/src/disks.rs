//! `/proc/diskstats`: bytes and requests of each disk, and for how long it was busy.

use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};
use crate::text::{lines, lone_number, name, number, words};

const COLUMNS: [(&str, &str, f64); 5] = [
    ("read", "B", 1.0),
    ("written", "B", 1.0),
    ("reads", "", 1.0),
    ("writes", "", 1.0),
    ("busy", "s", 1000.0),
];
/// The kernel counts in sectors of this size, whatever the device's own are.
const SECTOR: i64 = 512;

/// What a line of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Followed,
    /// A whole disk without a size: a loop device without a file, a drive without a medium. It has a size when something
    /// is put there, and then its counters move; to read its size each time would cost more.
    Unused([Option<i64>; COLUMNS.len()]),
    Partition,
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: Vec<u8>,
    is: Is,
}

/// The source.
pub struct Disks {
    root: Root,
    file: Result<Kept, String>,
    rows: Vec<Row>,
    buffer: Vec<u8>,
}

impl Disks {
    pub fn open(root: &Root) -> Disks {
        let file = Kept::open(root, "proc/diskstats").map_err(|error| format!("/proc/diskstats: {error}"));
        let file = file.and_then(|file| match root.path("sys/block").is_dir() {
            true => Ok(file),
            false => Err("there is no /sys/block, which distinguishes disks from partitions".to_owned()),
        });
        let mut disks = Disks { root: root.clone(), file, rows: Vec::new(), buffer: Vec::new() };
        disks.read(true, &mut Vec::new());
        disks
    }

    /// Whether the lines are those that are known, and no disk without a size has moved.
    fn are_known(&self, text: &[u8]) -> bool {
        let mut rows = self.rows.iter();
        let same = lines(text).filter_map(line).all(|(name, counters)| {
            rows.next().is_some_and(|row| {
                row.name == name && !matches!(row.is, Is::Unused(before) if before != counters)
            })
        });
        same && rows.next().is_none()
    }
}

impl Source for Disks {
    fn columns(&self) -> Vec<Column> {
        let of = |row: &Row| {
            let name = name(&row.name);
            COLUMNS.map(|(what, unit, per)| Column::interval(format!("disk.{name}.{what}"), unit, per))
        };
        self.rows.iter().filter(|row| row.is == Is::Followed).flat_map(of).collect()
    }

    fn absent(&self) -> Absent {
        self.file.as_ref().err().map(|why| ("disk".to_owned(), why.clone())).into_iter().collect()
    }

    fn read(&mut self, look_again: bool, values: &mut Vec<Option<i64>>) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let text = self.file.as_ref().ok().and_then(|file| file.read(&mut buffer).ok());
        let mut changed = false;
        if let Some(text) = text {
            if look_again || !self.are_known(text) {
                let rows = lines(text).filter_map(line).map(|(name, counters)| Row {
                    name: name.to_vec(),
                    is: what_is(&self.root, name, counters),
                });
                let rows: Vec<Row> = rows.collect();
                let followed = |rows: &[Row]| -> Vec<Vec<u8>> {
                    rows.iter().filter(|row| row.is == Is::Followed).map(|row| row.name.clone()).collect()
                };
                changed = followed(&rows) != followed(&self.rows);
                self.rows = rows;
            }
            for ((_, counters), row) in lines(text).filter_map(line).zip(&self.rows) {
                values.extend(counters.iter().filter(|_| row.is == Is::Followed));
            }
        } else {
            let followed = self.rows.iter().filter(|row| row.is == Is::Followed).count();
            values.resize(values.len() + followed * COLUMNS.len(), None);
        }
        self.buffer = buffer;
        changed
    }
}

fn what_is(root: &Root, disk: &[u8], counters: [Option<i64>; COLUMNS.len()]) -> Is {
    // In /sys a slash in a device's name (cciss/c0d0) is an exclamation mark.
    let size = root.text(&format!("sys/block/{}/size", name(disk).replace('/', "!")));
    match size.map(|text| lone_number(&text)) {
        None => Is::Partition,
        Some(Some(1..)) => Is::Followed,
        Some(_) => Is::Unused(counters),
    }
}

/// Name and counters in the order of the columns.
fn line(line: &[u8]) -> Option<(&[u8], [Option<i64>; COLUMNS.len()])> {
    let mut fields = words(line).skip(2);
    let name = fields.next()?;
    let mut fields = fields.map(number);
    let mut next = || fields.next().flatten();
    let (reads, _merged, read, _ms) = (next(), next(), next(), next());
    let (writes, _merged, written, _ms) = (next(), next(), next(), next());
    let (_in_flight, busy_ms) = (next(), next());
    let bytes = |sectors: Option<i64>| sectors?.checked_mul(SECTOR);
    Some((name, [bytes(read), bytes(written), reads, writes, busy_ms]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_read_in_bytes() {
        let text = b" 254       0 vda 2774581 935571 225110372 2137546 1766735 1341147 209771042 1834860 0 520968 41";
        let (name, counters) = line(text).unwrap();
        assert_eq!(name, b"vda");
        let expected = [225_110_372 * 512, 209_771_042 * 512, 2_774_581, 1_766_735, 520_968];
        assert_eq!(counters, expected.map(Some));
        assert_eq!(line(b"   1 0"), None);
        assert_eq!(line(b"   8 1 sda1 36 24 12 5").unwrap().1[4], None, "partitions before Linux 2.6.25");
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_passed_over(text in "( +[0-9]{1,3}){0,2} ?[a-z0-9/!]{0,9}[ 0-9\\PC]{0,90}", bytes: Vec<u8>) {
            let _ = (line(text.as_bytes()), line(&bytes));
        }

        #[test]
        fn counters_are_read_as_the_kernel_wrote_them(values in proptest::array::uniform5(0..i64::MAX / 512)) {
            let [read, written, reads, writes, busy] = values;
            let text = format!("   7    0 loop0 {reads} 1 {read} 2 {writes} 3 {written} 4 5 {busy} 6 0 0 0 0 0 0");
            let expected = [read * 512, written * 512, reads, writes, busy].map(Some);
            prop_assert_eq!(line(text.as_bytes()), Some((&b"loop0"[..], expected)));
        }
    }
}
