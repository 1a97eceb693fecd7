//! Makes the file that is to be read or written over.

use std::fs::{self, File};
use std::io::{self, Write};

use etude_micro::buffer::Buffer;
use etude_micro::exit::{Fail, IOERR};
use etude_micro::report::{Style, print};

use crate::configuration;
use crate::file;
use crate::options::Options;

/// Writes the file and prints the configuration.
///
/// # Errors
/// It cannot be created, or not be written to its end; then nothing of it is left.
pub fn create(options: &Options) -> Result<(), Fail> {
    let mut buffer = Buffer::map(options.blocks.size, None)?;
    fill(buffer.as_mut_slice());
    let file = file::create(&options.path)?;
    if let Some(free) = file::free_bytes(&file).filter(|free| *free < options.blocks.total()) {
        let _ = fs::remove_file(&options.path);
        let (path, total) = (options.path.display(), options.blocks.total());
        let line = format!(
            "{path}: {total} bytes are wanted, and {free} are free there; choose fewer with -t, or another place"
        );
        return Err(Fail::new(IOERR, line));
    }
    if let Err(error) = write(&file, buffer.as_mut_slice(), options.blocks.total()) {
        let _ = file.set_len(0);
        let _ = fs::remove_file(&options.path);
        let doing = format!(
            "write {} bytes to {}, which is removed again",
            options.blocks.total(),
            options.path.display()
        );
        return Err(Fail::call(IOERR, doing, &error));
    }
    let style = if options.style == Style::Json { Style::Json } else { Style::Verbose };
    let containers = match style {
        Style::Json => configuration::all(options, None),
        _ => vec![configuration::benchmark(options, None)],
    };
    print(&containers, None, style)
}

/// Bytes that a file system can neither leave out as zeros nor make smaller: Marsaglia's xorshift64 (2003).
fn fill(buffer: &mut [u8]) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for bytes in buffer.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.copy_from_slice(&state.to_le_bytes()[..bytes.len()]);
    }
}

/// Without a copy in between, and closed with what it wrote on its way to the device: a full disk may be told by fsync
/// only.
fn write(mut file: &File, block: &[u8], total: u64) -> io::Result<()> {
    let mut left = total;
    while left > 0 {
        let bytes = left.min(block.len() as u64);
        file.write_all(&block[..bytes as usize])?;
        left -= bytes;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_filled_with_what_cannot_be_compressed() {
        let mut buffer = vec![0u8; 65537];
        fill(&mut buffer);
        let mut times = [0u32; 256];
        buffer.iter().for_each(|byte| times[usize::from(*byte)] += 1);
        assert!(times.iter().all(|times| (150..400).contains(times)), "256 are expected: {times:?}");
    }
}
