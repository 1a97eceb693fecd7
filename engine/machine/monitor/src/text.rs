//! Texts of `/proc` and `/sys`: lines, words and numbers, as bytes and without a copy.

/// The lines of a text; `/proc/stat` has some of many kilobytes, hence the C library's quick search.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = find(rest, b'\n').unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

/// Where a byte first stands.
pub fn find(text: &[u8], byte: u8) -> Option<usize> {
    // SAFETY: memchr reads at most the bytes of the slice.
    let found = unsafe { libc::memchr(text.as_ptr().cast(), i32::from(byte), text.len()) };
    (!found.is_null()).then(|| found as usize - text.as_ptr() as usize)
}

/// The words of a line.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A word that is a number from 0 to 2^63 - 1; anything else is none.
pub fn number(word: &[u8]) -> Option<i64> {
    if word.is_empty() || word.len() > 19 {
        return None;
    }
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let value = word.iter().try_fold(0u64, |sum, byte| Some(sum * 10 + digit(byte)?));
    value.and_then(|value| i64::try_from(value).ok())
}

/// A whole text that is one number, perhaps negative, as most files of `/sys` are.
pub fn lone_number(text: &[u8]) -> Option<i64> {
    let word = text.trim_ascii();
    word.strip_prefix(b"-").map_or_else(|| number(word), |digits| number(digits).map(|value| -value))
}

/// A name for a person and for JSON: bytes that are no UTF-8 are replaced.
pub fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_those_of_the_text_with_or_without_a_last_end() {
        let cut = |text: &[u8]| lines(text).map(name).collect::<Vec<_>>();
        assert_eq!(cut(b"a b\n\nc\n"), ["a b", "", "c"]);
        assert_eq!(cut(b"a\nb"), ["a", "b"]);
        assert!(cut(b"").is_empty());
    }

    #[test]
    fn only_digits_are_a_number() {
        assert_eq!(number(b"007"), Some(7));
        assert_eq!(number(b"9223372036854775807"), Some(i64::MAX));
        for wrong in [&b""[..], b"-1", b"1.5", b"1k", b"9223372036854775808", b"99999999999999999999999"] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
        assert_eq!(lone_number(b"-12500\n"), Some(-12_500));
        assert_eq!(lone_number(b"--1"), None);
    }

    proptest! {
        #[test]
        fn a_text_is_its_lines(text: Vec<u8>) {
            let again: Vec<&[u8]> = text.strip_suffix(b"\n").unwrap_or(&text).split(|byte| *byte == b'\n').collect();
            let found: Vec<&[u8]> = lines(&text).collect();
            prop_assert_eq!(&found[..], if text.is_empty() { &[][..] } else { &again[..] });
        }

        #[test]
        fn numbers_are_read_as_they_were_written(value in 0..i64::MAX) {
            prop_assert_eq!(number(value.to_string().as_bytes()), Some(value));
            prop_assert_eq!(lone_number(format!("{}\n", -value).as_bytes()), Some(-value));
        }
    }
}
