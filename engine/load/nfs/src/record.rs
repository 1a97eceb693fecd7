//! Records in a stream (RFC 5531, section 11): each in fragments, with the length of each before it.

use crate::failure::Failure;

/// The longest record that is taken. A longer one is garbage, or an answer to what nobody asks.
pub const MOST_BYTES: usize = 2 << 20;
/// Empty fragments mean nothing; a stream of them never ends.
const MOST_FRAGMENTS: usize = 4096;
const HEAD: usize = 4;
const LAST: u32 = 1 << 31;

/// A stream of bytes, however it is cut, made into records.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Where what has not been taken begins, and ends.
    begin: usize,
    end: usize,
    /// Fragments of a record whose last is not there yet.
    parts: Vec<u8>,
    fragments: usize,
    /// The last record that came in fragments: it is lent to whoever reads it.
    whole: Vec<u8>,
}

impl Records {
    /// Room for the next bytes, at least so many; say with [`Records::came`] how many were put there.
    pub fn room(&mut self, least: usize) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if self.bytes.len() - self.end < least {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            let wanted = (self.end + least).max(self.bytes.len());
            self.bytes.resize(wanted, 0);
        }
        &mut self.bytes[self.end..]
    }

    pub fn came(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.bytes.len());
    }

    /// Copies what came.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.came(bytes.len());
    }

    /// The next whole record; None: more has to come.
    ///
    /// # Errors
    /// What is there cannot become one.
    pub fn next_record(&mut self) -> Result<Option<&[u8]>, Failure> {
        loop {
            let Some(head) = self.bytes[self.begin..self.end].first_chunk::<HEAD>() else { return Ok(None) };
            let word = u32::from_be_bytes(*head);
            let (last, length) = (word & LAST != 0, (word & !LAST) as usize);
            if self.parts.len() + length > MOST_BYTES || self.fragments > MOST_FRAGMENTS {
                return Err(Failure::Malformed("a record is longer than 2 MiB"));
            }
            let (from, to) = (self.begin + HEAD, self.begin + HEAD + length);
            if to > self.end {
                return Ok(None);
            }
            if self.fragments == 0 && last {
                self.begin = to;
                return Ok(Some(&self.bytes[from..to]));
            }
            self.parts.extend_from_slice(&self.bytes[from..to]);
            self.begin = to;
            self.fragments += 1;
            if last {
                self.fragments = 0;
                self.whole.clear();
                std::mem::swap(&mut self.whole, &mut self.parts);
                return Ok(Some(&self.whole));
            }
        }
    }
}

/// The head of a record in one fragment, of so many bytes.
pub(crate) fn head(bytes: usize) -> [u8; HEAD] {
    (LAST | bytes as u32).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(records: &mut Records) -> Result<Vec<Vec<u8>>, Failure> {
        let mut found = Vec::new();
        while let Some(record) = records.next_record()? {
            found.push(record.to_vec());
        }
        Ok(found)
    }

    #[test]
    fn a_record_beyond_the_bound_is_refused_before_it_comes() {
        for heads in [vec![(MOST_BYTES + 1) as u32], vec![LAST | 0x7fff_ffff], vec![0; MOST_FRAGMENTS + 2]] {
            let mut records = Records::default();
            heads.iter().for_each(|head| records.feed(&head.to_be_bytes()));
            assert!(all(&mut records).is_err(), "{heads:?}");
        }
    }

    proptest! {
        #[test]
        fn records_come_out_as_they_went_in_however_the_stream_is_cut(
            wanted in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..4), 0..8),
            cuts in prop::collection::vec(1..60_usize, 1..10),
        ) {
            let mut stream = Vec::new();
            for record in &wanted {
                for (at, part) in record.iter().enumerate() {
                    let last = if at + 1 == record.len() { LAST } else { 0 };
                    stream.extend_from_slice(&(last | part.len() as u32).to_be_bytes());
                    stream.extend_from_slice(part);
                }
            }
            let (mut records, mut found) = (Records::default(), Vec::new());
            let mut cuts = cuts.iter().cycle();
            while !stream.is_empty() {
                let rest = stream.split_off((*cuts.next().unwrap()).min(stream.len()));
                records.feed(&stream);
                found.extend(all(&mut records).unwrap());
                stream = rest;
            }
            let wanted: Vec<Vec<u8>> = wanted.iter().map(|record| record.concat()).collect();
            prop_assert_eq!(found, wanted);
        }

        #[test]
        fn arbitrary_bytes_are_records_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut records = Records::default();
            records.feed(&bytes);
            if let Ok(found) = all(&mut records) {
                prop_assert!(found.iter().map(Vec::len).sum::<usize>() <= bytes.len());
            }
        }
    }
}
