//! What is written: bytes that no file system can compress, the same for the same seed, file and place.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

const POOL: usize = 1 << 20;
/// At most so much is written by one call.
const MOST: usize = 1 << 20;

pub struct Content(Vec<u8>);

impl Content {
    pub fn new(seed: u64) -> Content {
        let mut pool = vec![0; POOL + MOST];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut pool);
        Content(pool)
    }

    /// Write the bytes of a file from `offset` on. Which they are depends on how it is cut into pieces.
    ///
    /// # Errors
    /// The file system is full, or fails.
    pub fn write(&self, to: &File, file: u64, offset: u64, bytes: u64) -> io::Result<()> {
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let length = (end - at).min(MOST as u64);
            let start = (mixed(file, at) % POOL as u64) as usize;
            to.write_all_at(&self.0[start..start + length as usize], at)?;
            at += length;
        }
        Ok(())
    }
}

/// Two numbers as one that looks random (the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
fn mixed(one: u64, other: u64) -> u64 {
    let mut z = one.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ other;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
