//! Files, cut at line ends into chunks that can be parsed beside each other.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A file to read.
pub struct Source {
    pub path: PathBuf,
    /// How many lines a trial has, unless it says so itself; None where that is not known.
    pub workers: Option<u64>,
}

/// Bytes of a file: the lines that begin in it.
pub struct Chunk {
    pub file: usize,
    start: u64,
    end: u64,
    /// How long the file is.
    size: u64,
}

impl Chunk {
    /// Whether it is the last of its file.
    pub fn is_last(&self) -> bool {
        self.end == self.size
    }
}

/// The lines of a chunk: from `begin` to `end` in the buffer.
#[derive(Debug)]
pub struct Span {
    pub begin: usize,
    pub end: usize,
    /// Where the buffer begins in the file.
    pub offset: u64,
    /// Behind the last newline of the file there is more than blanks.
    pub torn: bool,
}

/// The chunks of all files in order, `size` bytes each, and the bytes of all. The error names its file.
pub fn cut(sources: &[Source], size: u64) -> Result<(Vec<Chunk>, u64), (usize, io::Error)> {
    let (mut chunks, mut all) = (Vec::new(), 0);
    for (file, source) in sources.iter().enumerate() {
        let found = std::fs::metadata(&source.path).map_err(|error| (file, error))?;
        if found.is_dir() {
            return Err((file, ErrorKind::IsADirectory.into()));
        }
        if !found.is_file() {
            let reason = "is no file; write what comes out of a pipe to a file first";
            return Err((file, io::Error::other(reason)));
        }
        let length = found.len();
        let mut start = 0;
        loop {
            let end = length.min(start + size);
            chunks.push(Chunk { file, start, end, size: length });
            start = end;
            if start == length {
                break;
            }
        }
        all += length;
    }
    Ok((chunks, all))
}

/// Reads a chunk into the buffer, up to the end of the last line that begins in it.
pub fn read(chunk: &Chunk, source: &Source, buffer: &mut Vec<u8>) -> io::Result<Span> {
    let file = File::open(&source.path)?;
    let offset = chunk.start.saturating_sub(1);
    buffer.clear();
    more(&file, buffer, offset, chunk.end - offset)?;
    let begin = match chunk.start {
        0 => 0,
        _ => buffer.iter().position(|&byte| byte == b'\n').map_or(buffer.len(), |newline| newline + 1),
    };
    let mut at = chunk.end;
    while begin < buffer.len() && buffer.last() != Some(&b'\n') && at < chunk.size {
        let (step, before) = ((chunk.size - at).min(1 << 16), buffer.len());
        more(&file, buffer, offset + before as u64, step)?;
        if buffer.len() == before {
            break; // it was cut short meanwhile
        }
        let newline = buffer[before..].iter().position(|&byte| byte == b'\n');
        buffer.truncate(newline.map_or(buffer.len(), |newline| before + newline + 1));
        at += step;
    }
    let end = buffer.iter().rposition(|&byte| byte == b'\n').map_or(begin, |newline| newline + 1).max(begin);
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let torn = !buffer[end.min(buffer.len())..].iter().all(blank);
    Ok(Span { begin, end, offset, torn })
}

/// Appends up to `count` bytes from a place in the file on.
fn more(file: &File, buffer: &mut Vec<u8>, at: u64, count: u64) -> io::Result<()> {
    let before = buffer.len();
    buffer.resize(before + usize::try_from(count).map_err(|_| ErrorKind::OutOfMemory)?, 0);
    let mut filled = before;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + (filled - before) as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(filled);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of all chunks of a file, joined, and whether it was torn.
    fn joined(text: &[u8], size: u64) -> (Vec<u8>, bool) {
        let path = std::env::temp_dir().join(format!("etude-chunks-{}-{size}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let sources = [Source { path: path.clone(), workers: None }];
        let (chunks, all) = cut(&sources, size).unwrap();
        assert_eq!(all, text.len() as u64);
        assert!(chunks.last().unwrap().is_last());
        let (mut lines, mut torn, mut buffer) = (Vec::new(), false, Vec::new());
        for chunk in &chunks {
            let span = read(chunk, &sources[0], &mut buffer).unwrap();
            lines.extend_from_slice(&buffer[span.begin..span.end]);
            torn |= span.torn;
        }
        std::fs::remove_file(path).unwrap();
        (lines, torn)
    }

    #[test]
    fn each_line_is_in_one_chunk_however_long_the_chunks_are() {
        let long = [b"x".repeat(200_000), b"\n".to_vec()].concat();
        for text in [&b""[..], b"\n", b"a\nbc\n\ndef\n", b"a\nbc\ndef", b"abc", b"a\n \n", b"a\n \t", &long] {
            let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
            for size in [1, 2, 3, 5, 1 << 17, 1 << 20] {
                let (lines, torn) = joined(text, size.max(text.len() as u64 / 1000));
                assert_eq!(lines, &text[..whole]);
                assert_eq!(torn, !text[whole..].trim_ascii().is_empty(), "{:?}", text.escape_ascii());
            }
        }
    }
}
