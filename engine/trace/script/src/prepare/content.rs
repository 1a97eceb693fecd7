//! What stands in the files: cheap to make, and of no use to whoever compresses.

/// A stream of bytes, another one for each file.
pub(crate) struct Content(u64);

impl Content {
    pub fn of(path: &[u8]) -> Content {
        // FNV-1a: names that are alike have streams that are not.
        let seed = path.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        Content(seed | 1)
    }

    /// The next bytes (xorshift64*, Vigna 2016).
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }
}
