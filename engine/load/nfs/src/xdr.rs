//! XDR (RFC 4506): words of four bytes, the highest first.
//!
//! Reading is ours: `nfs3_types` makes room for as many bytes as a length claims, up to 4 GiB, before it sees whether they are there.

use crate::failure::Failure;

const SHORT: Failure = Failure::Malformed("it is too short");

/// What is left of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    pub fn new(bytes: &'a [u8]) -> Words<'a> {
        Words(bytes)
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    pub fn u32(&mut self) -> Result<u32, Failure> {
        let (word, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*word))
    }

    pub fn u64(&mut self) -> Result<u64, Failure> {
        let (word, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u64::from_be_bytes(*word))
    }

    pub fn flag(&mut self) -> Result<bool, Failure> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Failure::Malformed("a flag is neither 0 nor 1")),
        }
    }

    pub fn skip(&mut self, bytes: usize) -> Result<(), Failure> {
        self.0 = self.0.get(bytes..).ok_or(SHORT)?;
        Ok(())
    }

    pub fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Failure> {
        let (found, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*found)
    }

    /// Bytes with their length before them, at most so many.
    pub fn opaque(&mut self, most: usize) -> Result<&'a [u8], Failure> {
        let bytes = self.u32()? as usize;
        if bytes > most {
            return Err(Failure::Malformed("a length is beyond its bound"));
        }
        let found = self.0.get(..bytes).ok_or(SHORT)?;
        self.skip(bytes.next_multiple_of(4))?;
        Ok(found)
    }

    /// Nothing may follow.
    pub fn end(self) -> Result<(), Failure> {
        match self.0 {
            [] => Ok(()),
            _ => Err(Failure::Malformed("it is too long")),
        }
    }
}

pub(crate) fn put_u32(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_be_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_be_bytes());
}

/// Never longer than 4 GiB: names, handles, and what one call writes.
pub(crate) fn put_opaque(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
    out.resize(out.len() + bytes.len().next_multiple_of(4) - bytes.len(), 0);
}
