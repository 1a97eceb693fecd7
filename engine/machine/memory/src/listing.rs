//! A data set as a list of its files: `SIZE PATH` each, ended by a zero byte.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// As it was when it was listed, B.
    pub bytes: u64,
    /// Absolute.
    pub path: &'a Path,
}

pub fn write(out: &mut dyn Write, file: &Listed) -> io::Result<()> {
    write!(out, "{} ", file.bytes)?;
    out.write_all(file.path.as_os_str().as_bytes())?;
    out.write_all(&[0])
}

/// # Errors
/// Which record is wrong.
pub fn read(text: &[u8]) -> Result<Vec<Listed<'_>>, String> {
    let Some((0, records)) = text.split_last().map(|(last, records)| (*last, records)) else {
        return if text.is_empty() { Ok(Vec::new()) } else { Err("its last record is cut short".to_owned()) };
    };
    let records = records.split(|byte| *byte == 0).enumerate();
    records
        .map(|(index, record)| {
            record_of(record)
                .ok_or_else(|| format!("record {}: expected SIZE PATH, an absolute path", index + 1))
        })
        .collect()
}

fn record_of(record: &[u8]) -> Option<Listed<'_>> {
    let blank = record.iter().position(|byte| *byte == b' ')?;
    let (size, path) = (&record[..blank], &record[blank + 1..]);
    let is_number = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
    let bytes = str::from_utf8(size).ok().filter(|_| is_number)?.parse().ok()?;
    path.starts_with(b"/").then(|| Listed { bytes, path: Path::new(OsStr::from_bytes(path)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_listing_that_is_none_is_refused_with_the_record() {
        for (text, part) in [
            (&b"12 /a"[..], "cut short"),
            (b"\0", "record 1"),
            (b"12 /a\0 /b\0", "record 2"),
            (b"12 /a\0x /b\0", "record 2"),
            (b"+1 /a\0", "record 1"),
            (b"12 a\0", "absolute"),
            (b"99999999999999999999 /a\0", "record 1"),
        ] {
            assert!(read(text).unwrap_err().contains(part), "{}", text.escape_ascii());
        }
        assert_eq!(read(b""), Ok(Vec::new()), "an empty data set is one");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_whatever_files_are_called(
            files in proptest::collection::vec((any::<u64>(), proptest::collection::vec(1u8.., 0..40)), 0..8)
        ) {
            let named: Vec<(u64, Vec<u8>)> =
                files.into_iter().map(|(bytes, name)| (bytes, [b"/", &name[..]].concat())).collect();
            let files: Vec<Listed> = named
                .iter()
                .map(|(bytes, name)| Listed { bytes: *bytes, path: Path::new(OsStr::from_bytes(name)) })
                .collect();
            let mut text = Vec::new();
            for file in &files {
                write(&mut text, file).unwrap();
            }
            prop_assert_eq!(read(&text).unwrap(), files);
        }

        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>) {
            let _ = read(&text);
        }
    }
}
