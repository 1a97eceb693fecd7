//! `/proc/pressure`: for how long tasks waited for a resource (PSI, Linux 4.20).

use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};
use crate::text::{lines, number, words};

const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];
const NONE: &str = "this kernel does not count it (CONFIG_PSI), or was started with psi=0";

/// The source.
pub struct Pressure {
    /// A file, and whether it has a line `full`.
    files: Vec<(&'static str, Kept, bool)>,
    absent: Absent,
}

impl Pressure {
    pub fn open(root: &Root) -> Pressure {
        let (mut files, mut absent) = (Vec::new(), Absent::new());
        for resource in RESOURCES {
            let kept = Kept::open(root, &format!("proc/pressure/{resource}"));
            // With psi=0 the files of some kernels are there, and reading them fails.
            match kept.and_then(|kept| kept.piece(&mut [0; 256]).map(totals).map(|totals| (kept, totals))) {
                Ok((kept, [Some(_), full])) => files.push((resource, kept, full.is_some())),
                Ok(_) => absent.push((format!("pressure.{resource}"), "its text is not known".to_owned())),
                Err(error) => absent.push((format!("pressure.{resource}"), error.to_string())),
            }
        }
        if files.is_empty() {
            absent = vec![("pressure".to_owned(), NONE.to_owned())];
        }
        for (resource, _, _) in files.iter().filter(|(_, _, full)| !full) {
            absent.push((format!("pressure.{resource}.full"), "counted from Linux 5.13 on".to_owned()));
        }
        Pressure { files, absent }
    }
}

impl Source for Pressure {
    fn columns(&self) -> Vec<Column> {
        let column =
            |resource: &str, who: &str| Column::interval(format!("pressure.{resource}.{who}"), "s", 1e6);
        let each = |(resource, _, full): &(&'static str, Kept, bool)| {
            let full = full.then(|| column(resource, "full"));
            [Some(column(resource, "some")), full].into_iter().flatten()
        };
        self.files.iter().flat_map(each).collect()
    }

    fn absent(&self) -> Absent {
        self.absent.clone()
    }

    fn read(&mut self, _: bool, values: &mut Vec<Option<i64>>) -> bool {
        for (_, kept, full) in &self.files {
            let found = kept.piece(&mut [0; 256]).map(totals).unwrap_or_default();
            values.extend(&found[..if *full { 2 } else { 1 }]);
        }
        false
    }
}

/// µs so far in which some tasks waited, and in which all did.
fn totals(text: &[u8]) -> [Option<i64>; 2] {
    ["some", "full"].map(|who| {
        let line = lines(text).find(|line| words(line).next() == Some(who.as_bytes()))?;
        number(words(line).find_map(|word| word.strip_prefix(b"total="))?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_sums_are_read() {
        let text =
            b"some avg10=0.71 avg60=0.42 avg300=0.50 total=373097604\nfull avg10=0.71 total=168079929\n";
        assert_eq!(totals(text), [Some(373_097_604), Some(168_079_929)]);
        assert_eq!(totals(b"some avg10=0.00 total=5\n"), [Some(5), None], "before Linux 5.13");
        assert_eq!(totals(b"full total=x"), [None, None]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "((some|full) avg10=0 (total=)?[0-9\\PC]{0,30}\n){0,3}", bytes: Vec<u8>) {
            let _ = (totals(text.as_bytes()), totals(&bytes));
        }
    }
}
