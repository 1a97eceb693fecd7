//! Whole numbers in as few bytes as they need: seven bits a byte, the lowest first.

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front; None where it is cut short or needs more than 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A difference, so that small ones of either sign are small numbers.
#[inline]
pub fn zigzag(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// What `zigzag` was made of, from the same start.
#[inline]
pub fn unzigzag(from: u64, difference: u64) -> u64 {
    from.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_read_as_it_was_written(value: u64, shift in 0..64) {
            let (value, mut bytes) = (value >> shift, Vec::new());
            put(&mut bytes, value);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
            for cut in 0..bytes.len() {
                prop_assert_eq!(take(&mut &bytes[..cut]), None);
            }
        }

        #[test]
        fn a_difference_leads_back(from: u64, to: u64) {
            prop_assert_eq!(unzigzag(from, zigzag(from, to)), to);
        }
    }

    #[test]
    fn more_than_64_bits_are_no_number() {
        assert_eq!(take(&mut &[0xff; 9][..]), None);
        assert_eq!(take(&mut &[[0xff; 9].as_slice(), &[1]].concat()[..]), Some(u64::MAX));
        assert_eq!(take(&mut &[[0xff; 9].as_slice(), &[2]].concat()[..]), None);
        assert_eq!(take(&mut &[0xff; 11][..]), None);
    }
}
