//! What has to be known of an ELF image: its build-id, and where in it instructions are.

use std::io::{self, Error, ErrorKind};
use std::ops::Range;

/// What lies where it is read from: a file, or a program that has been loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A file: places are offsets.
    File,
    /// Memory: places are addresses less that of the first byte of the image.
    Memory,
}

/// An image of 64 bits, little-endian.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elf {
    /// The note that the linker wrote (`--build-id`); None where it wrote none, or one too short to tell images apart.
    pub build_id: Option<Vec<u8>>,
    /// Loaded parts that are executable.
    pub segments: Vec<Part>,
    /// Sections that hold instructions; empty in memory, and where a file has no table of sections.
    pub sections: Vec<Part>,
}

/// A part of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it is in the file.
    pub offset: u64,
    /// The address that it was linked for.
    pub address: u64,
    /// Its length in the file, in bytes.
    pub length: u64,
}

impl Part {
    /// The offsets in the file that it takes.
    pub fn offsets(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

const EXECUTABLE_SEGMENT: u64 = 1;
const EXECUTABLE_SECTION: u64 = 4;
const LOAD: u64 = 1;
const NOTE: u64 = 4;
const PROGBITS: u64 = 1;
/// More than any image has, in bytes.
const MOST_NOTES: u64 = 1 << 16;
/// Shorter ones are typed by hand.
const SHORTEST_ID: usize = 8;

impl Elf {
    /// Reads it by `read`, which fills a buffer from a place on.
    ///
    /// # Errors
    /// Those of `read`; `InvalidData` where it is no such image or is damaged.
    pub fn read(layout: Layout, mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>) -> io::Result<Elf> {
        let mut head = [0; 64];
        read(0, &mut head)?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return Err(wrong("no ELF image of 64 bits, little-endian"));
        }
        let mut elf = Elf::default();
        let programs = table(&mut read, word(&head, 32, 8), word(&head, 54, 2), word(&head, 56, 2), 56)?;
        let low = programs.iter().filter(|one| word(one, 0, 4) == LOAD).map(|one| word(one, 16, 8)).min();
        let low = low.unwrap_or(0) & !0xfff;
        for one in &programs {
            let (kind, flags) = (word(one, 0, 4), word(one, 4, 4));
            let part = Part { offset: word(one, 8, 8), address: word(one, 16, 8), length: word(one, 32, 8) };
            if kind == LOAD && flags & EXECUTABLE_SEGMENT != 0 {
                elf.segments.push(part);
            } else if kind == NOTE && elf.build_id.is_none() && part.length <= MOST_NOTES {
                let place = match layout {
                    Layout::File => part.offset,
                    Layout::Memory => part.address.wrapping_sub(low),
                };
                let mut notes = vec![0; part.length as usize];
                read(place, &mut notes)?;
                elf.build_id = build_id(&notes);
            }
        }
        if layout == Layout::File {
            elf.sections = sections(&mut read, &head)?;
        }
        Ok(elf)
    }
}

fn sections(read: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>, head: &[u8]) -> io::Result<Vec<Part>> {
    let all = table(read, word(head, 40, 8), word(head, 58, 2), word(head, 60, 2), 64)?;
    let is_code = |one: &&Vec<u8>| word(one, 4, 4) == PROGBITS && word(one, 8, 8) & EXECUTABLE_SECTION != 0;
    let part = |one: &Vec<u8>| Part {
        address: word(one, 16, 8),
        offset: word(one, 24, 8),
        length: word(one, 32, 8),
    };
    Ok(all.iter().filter(is_code).map(part).collect())
}

/// Rows of a table; none where it begins at 0.
fn table(
    read: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    place: u64,
    width: u64,
    count: u64,
    expected: u64,
) -> io::Result<Vec<Vec<u8>>> {
    if place == 0 || count == 0 {
        return Ok(Vec::new());
    }
    if width != expected {
        return Err(wrong("its tables are damaged"));
    }
    let mut bytes = vec![0; (width * count) as usize];
    read(place, &mut bytes)?;
    Ok(bytes.chunks_exact(width as usize).map(<[u8]>::to_vec).collect())
}

/// The description of the note NT_GNU_BUILD_ID.
fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let (name, length, kind) = (word(notes, 0, 4), word(notes, 4, 4), word(notes, 8, 4));
        let start = 12 + (name as usize).next_multiple_of(4);
        let end = start + length as usize;
        let (owner, id) = (notes.get(12..12 + name as usize)?, notes.get(start..end)?);
        if owner == b"GNU\0" && kind == 3 {
            return (id.len() >= SHORTEST_ID && id.iter().any(|byte| *byte != 0)).then(|| id.to_vec());
        }
        notes = notes.get(end.next_multiple_of(4)..)?;
    }
    None
}

fn word(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
