//! The file of columns (docs/reference/formats.md, "Columns"): where everything is in it, and what its last part says.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Serialize;

/// Where the columns begin, and what each begins at a multiple of.
pub const PAGE: u64 = 4096;
const MAGIC: &[u8; 8] = b"etudecol";
pub const VERSION: u32 = 1;

/// A file that is being written. It has room for more rows than there are; what is not written is not stored.
pub struct Out {
    file: File,
    room: u64,
}

impl Out {
    /// Columns of up to so many rows, into a file that is empty.
    pub fn new(file: File, rows: u64) -> io::Result<Self> {
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("standard output is no file: redirect it into one"));
        }
        file.set_len(0)?;
        Ok(Out { file, room: (8 * rows).next_multiple_of(PAGE).max(PAGE) })
    }

    /// Where a column begins.
    pub fn place(&self, column: usize) -> u64 {
        PAGE + self.room * column as u64
    }

    /// Writes bytes of a column from a row on; `width` is a row's.
    pub fn write(&self, column: usize, row: u64, width: u64, bytes: &[u8]) -> io::Result<()> {
        assert!(row * width + bytes.len() as u64 <= self.room, "more rows than the files have room for");
        self.file.write_all_at(bytes, self.place(column) + row * width)
    }

    /// Writes a column's doubles from a row on, all of them NaN.
    pub fn write_nulls(&self, column: usize, row: u64, count: u64) -> io::Result<()> {
        let nulls = f64::NAN.to_ne_bytes().repeat(1 << 13);
        let (mut row, end) = (row, row + count);
        while row < end {
            let step = (end - row).min(1 << 13);
            self.write(column, row, 8, &nulls[..8 * step as usize])?;
            row += step;
        }
        Ok(())
    }

    /// Writes the last part behind `columns` columns, and then the first, which says where it is.
    pub fn finish(&self, columns: usize, index: &Index) -> io::Result<()> {
        let text = serde_json::to_vec(index)?;
        let place = self.place(columns);
        self.file.write_all_at(&text, place)?;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_ne_bytes());
        head.extend_from_slice(&0u32.to_ne_bytes());
        head.extend_from_slice(&place.to_ne_bytes());
        head.extend_from_slice(&(text.len() as u64).to_ne_bytes());
        self.file.write_all_at(&head, 0)
    }
}

/// The last part of the file.
#[derive(Default, Serialize)]
pub struct Index {
    pub rows: u64,
    pub columns: Vec<Place>,
    pub metrics: Vec<MetricPlace>,
    pub texts: Vec<Dictionary>,
    pub files: Vec<FileEnd>,
    pub wrong: Option<WrongLine>,
}

#[derive(Serialize)]
pub struct Place {
    pub name: &'static str,
    /// As numpy calls it: i8, u4, u1.
    pub kind: &'static str,
    pub at: u64,
}

#[derive(Serialize)]
pub struct MetricPlace {
    pub name: String,
    pub unit: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub join: String,
    pub at: u64,
    /// Pairs: a test's code, and that of the reason why the metric had no value in its first row without one.
    pub reasons: Vec<(u32, u32)>,
}

#[derive(Serialize)]
pub struct Dictionary {
    pub name: &'static str,
    pub texts: Vec<Box<str>>,
}

/// What became of a file.
#[derive(Clone, Copy, Default, Serialize)]
pub struct FileEnd {
    pub rows: u64,
    pub torn: bool,
    /// Rows of a last trial that lacks some, which were left out.
    pub left_out: u64,
}

/// Why there is nothing: a line that is no measurement, a file that cannot be read, or too much of it.
#[derive(Serialize)]
pub struct WrongLine {
    pub file: usize,
    /// From 1; 0 where it is not about a line.
    pub line: u64,
    /// Where the line begins in its file.
    pub at: u64,
    pub reason: String,
    /// Of the system, where a file cannot be read.
    pub errno: Option<i32>,
}
