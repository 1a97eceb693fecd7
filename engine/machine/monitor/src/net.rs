//! `/proc/net/dev`: bytes and packets of each network interface.

use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};
use crate::text::{find, lines, name, number, words};

const COLUMNS: [(&str, &str); 4] =
    [("received", "B"), ("sent", "B"), ("packets_received", ""), ("packets_sent", "")];

/// An interface's name and its counters in the order of the columns.
type Row<'a> = (&'a [u8], [Option<i64>; 4]);

/// The source. The interfaces are those of the network namespace in which it was opened.
pub struct Net {
    file: Result<Kept, String>,
    names: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Net {
    pub fn open(root: &Root) -> Net {
        let file = Kept::open(root, "proc/net/dev").map_err(|error| format!("/proc/net/dev: {error}"));
        let mut net = Net { file, names: Vec::new(), buffer: Vec::new() };
        net.read(false, &mut Vec::new());
        net
    }
}

impl Source for Net {
    fn columns(&self) -> Vec<Column> {
        let of = |bytes: &Vec<u8>| {
            let name = name(bytes);
            COLUMNS.map(|(what, unit)| Column::interval(format!("net.{name}.{what}"), unit, 1.0))
        };
        self.names.iter().flat_map(of).collect()
    }

    fn absent(&self) -> Absent {
        self.file.as_ref().err().map(|why| ("net".to_owned(), why.clone())).into_iter().collect()
    }

    fn read(&mut self, _: bool, values: &mut Vec<Option<i64>>) -> bool {
        let text = match &self.file {
            Ok(file) => file.read(&mut self.buffer),
            Err(_) => return false,
        };
        let Ok(text) = text else {
            values.resize(values.len() + self.names.len() * COLUMNS.len(), None);
            return false;
        };
        let mut same = true;
        let mut count = 0;
        for (found, counters) in lines(text).filter_map(row) {
            same &= self.names.get(count).is_some_and(|known| known == found);
            count += 1;
            values.extend(counters);
        }
        if same && count == self.names.len() {
            return false;
        }
        self.names = lines(text).filter_map(row).map(|(found, _)| found.to_vec()).collect();
        true
    }
}

/// A line of an interface; the two lines of headings are none.
fn row(line: &[u8]) -> Option<Row<'_>> {
    let colon = find(line, b':')?;
    let mut fields = words(&line[colon + 1..]);
    let received = [fields.next().and_then(number), fields.next().and_then(number)];
    let mut behind = fields.skip(6);
    let sent = [behind.next().and_then(number), behind.next().and_then(number)];
    let named = line[..colon].trim_ascii();
    let complete = !named.is_empty() && sent[1].is_some();
    complete.then_some((named, [received[0], sent[0], received[1], sent[1]]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_and_packets_of_both_directions_are_read() {
        let line = b"  eth0.100: 6818369978  155653    1    2    3     4          5         6  8278807   89564    7    8 0 0 0 0";
        let (name, counters) = row(line).unwrap();
        assert_eq!(name, b"eth0.100");
        assert_eq!(counters, [6_818_369_978, 8_278_807, 155_653, 89_564].map(Some));
    }

    #[test]
    fn headings_are_no_interfaces() {
        for line in
            [&b"Inter-|   Receive       |  Transmit"[..], b" face |bytes    packets errs", b"eth0: 1 2 3"]
        {
            assert_eq!(row(line), None);
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_passed_over(line in "( {0,3}[a-z0-9.]{1,15}:)?[ 0-9\\PC]{0,80}", bytes: Vec<u8>) {
            let _ = (row(line.as_bytes()), row(&bytes));
        }

        #[test]
        fn counters_are_read_as_the_kernel_wrote_them(values in proptest::array::uniform4(0..i64::MAX), name in "[a-z0-9._-]{1,15}") {
            let [received, packets, sent, out] = values;
            let line = format!("{name:>6}: {received} {packets} 0 0 0 0 0 0 {sent} {out} 0 0 0 0 0 0");
            prop_assert_eq!(row(line.as_bytes()), Some((name.as_bytes(), [received, sent, packets, out].map(Some))));
        }
    }
}
