//! Names that must not tell: each component of a path is replaced by a keyed hash of it.

use std::collections::{HashMap, HashSet};

use crate::from_trace::tree::{Path, components};

const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Replaces components by hashes; the same ones by the same.
pub(crate) struct Hasher {
    key: [u64; 2],
    given: HashMap<Vec<u8>, Vec<u8>>,
    taken: HashSet<Vec<u8>>,
}

impl Hasher {
    pub fn new(key: [u8; 16]) -> Hasher {
        let half = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
        Hasher { key: [half(0), half(8)], given: HashMap::new(), taken: HashSet::new() }
    }

    pub fn path(&mut self, path: &[u8]) -> Path {
        let parts: Vec<Vec<u8>> = components(path).map(|part| self.component(part)).collect();
        if parts.is_empty() { b"."[..].into() } else { parts.join(&b'/').into() }
    }

    /// The name of an attribute: what stands before the first dot says whose it is, and decides what the kernel does.
    pub fn attribute(&mut self, name: &[u8]) -> Path {
        match name.strip_prefix(b"user.") {
            Some(rest) => [&b"user."[..], &self.component(rest)].concat().into(),
            None if [&b"security."[..], b"system.", b"trusted."].iter().any(|p| name.starts_with(p)) => {
                name.into()
            }
            None => self.component(name).into(),
        }
    }

    /// As long as the next power of two, since names of one length cost the same: 4 letters at least.
    fn component(&mut self, part: &[u8]) -> Vec<u8> {
        if part == b".." {
            return part.to_vec();
        }
        if let Some(given) = self.given.get(part) {
            return given.clone();
        }
        let length = part.len().next_power_of_two().clamp(4, 128);
        let hashed = (0_u64..).map(|salt| self.letters(part, length, salt));
        let free = hashed.into_iter().find(|name| !self.taken.contains(name)).expect("hashes do not end");
        self.taken.insert(free.clone());
        self.given.insert(part.to_vec(), free.clone());
        free
    }

    fn letters(&self, part: &[u8], length: usize, salt: u64) -> Vec<u8> {
        let mut letters = Vec::with_capacity(length);
        for block in 0_u64.. {
            let mut text = [salt.to_le_bytes(), block.to_le_bytes()].concat();
            text.extend_from_slice(part);
            let mut hash = siphash(self.key, &text);
            for _ in 0..12 {
                if letters.len() == length {
                    return letters;
                }
                letters.push(DIGITS[(hash % 32) as usize]);
                hash /= 32;
            }
        }
        letters
    }
}

/// A key that nobody knows.
pub fn random_key() -> std::io::Result<[u8; 16]> {
    use std::io::Read;
    let mut key = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012): without the key nobody can try names until one fits.
fn siphash(key: [u64; 2], text: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut blocks = text.chunks_exact(8);
    let mix = |state: &mut [u64; 4], word: u64| {
        state[3] ^= word;
        (0..2).for_each(|_| round(state));
        state[0] ^= word;
    };
    for block in &mut blocks {
        mix(&mut state, u64::from_le_bytes(block.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    last[..blocks.remainder().len()].copy_from_slice(blocks.remainder());
    last[7] = text.len() as u8;
    mix(&mut state, u64::from_le_bytes(last));
    state[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_authors() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let text: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(key, &text[..1]), 0x74f8_39c5_93dc_67fd);
        assert_eq!(siphash(key, &text), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn another_key_gives_other_names_of_the_same_length() {
        let (mut one, mut two) = (Hasher::new([1; 16]), Hasher::new([2; 16]));
        let (first, second) = (one.path(b"a/some.name/.."), two.path(b"a/some.name/.."));
        assert_ne!(first, second);
        assert_eq!((first.len(), second.len()), (4 + 1 + 16 + 3, 24));
        assert!(one.attribute(b"user.author").starts_with(b"user."));
    }

    #[test]
    fn many_short_names_stay_different() {
        let mut hasher = Hasher::new([3; 16]);
        let names: HashSet<Path> =
            (0..20_000).map(|n: u32| hasher.path(format!("{n:x}").as_bytes())).collect();
        assert_eq!(names.len(), 20_000);
    }
}
