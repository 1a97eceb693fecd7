//! Patterns of paths.

/// `*` is any part of a name, `**` any part of a path, `?` one byte, `[a-c]` one of those, `[!a-c]` none of them.
#[derive(Clone, Debug)]
pub struct Glob {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Byte(u8),
    Any,
    Set { ranges: Vec<(u8, u8)>, not: bool },
    Star,
    Stars,
}

impl Glob {
    /// The error is one line.
    pub fn new(pattern: &[u8]) -> Result<Glob, String> {
        let shown = || String::from_utf8_lossy(pattern).into_owned();
        let mut rest = pattern.strip_prefix(b"/").unwrap_or(pattern);
        if rest.is_empty() {
            return Err(format!(
                "{}: an empty pattern fits nothing: expected one such as 'src/*.c'",
                shown()
            ));
        }
        let mut parts = Vec::new();
        while let Some((&byte, next)) = rest.split_first() {
            rest = next;
            parts.push(match byte {
                b'*' if rest.starts_with(b"*") => {
                    rest = &rest[1..];
                    // `a/**/b` fits `a/b` as well.
                    if rest.starts_with(b"/") && matches!(parts.last(), None | Some(Part::Byte(b'/'))) {
                        rest = &rest[1..];
                    }
                    Part::Stars
                }
                b'*' => Part::Star,
                b'?' => Part::Any,
                b'\\' if !rest.is_empty() => {
                    let escaped = rest[0];
                    rest = &rest[1..];
                    Part::Byte(escaped)
                }
                b'[' => {
                    let (set, behind) = set(rest).ok_or_else(|| format!("{}: [ without ]", shown()))?;
                    rest = behind;
                    set
                }
                other => Part::Byte(other),
            });
        }
        Ok(Glob { parts })
    }

    /// Whether the whole of a path from the root fits.
    pub fn fits(&self, path: &[u8]) -> bool {
        // Which parts can come next: each byte of the path is looked at once.
        let mut at = vec![false; self.parts.len() + 1];
        at[0] = true;
        self.pass_stars(&mut at);
        for &byte in path {
            let mut next = vec![false; at.len()];
            for (index, part) in self.parts.iter().enumerate().filter(|(index, _)| at[*index]) {
                match part {
                    Part::Byte(wanted) => next[index + 1] |= *wanted == byte,
                    Part::Any => next[index + 1] |= byte != b'/',
                    Part::Set { ranges, not } => {
                        let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&byte));
                        next[index + 1] |= byte != b'/' && inside != *not;
                    }
                    Part::Star => next[index] |= byte != b'/',
                    Part::Stars => next[index] = true,
                }
            }
            self.pass_stars(&mut next);
            at = next;
        }
        at[self.parts.len()]
    }

    /// Stars can be nothing.
    fn pass_stars(&self, at: &mut [bool]) {
        for (index, part) in self.parts.iter().enumerate() {
            at[index + 1] |= at[index] && matches!(part, Part::Star | Part::Stars);
        }
    }
}

/// What stands behind `[`, and behind its `]`.
fn set(text: &[u8]) -> Option<(Part, &[u8])> {
    let (not, inside) = match text.first()? {
        b'!' | b'^' => (true, &text[1..]),
        _ => (false, text),
    };
    // A `]` that comes first is one of them.
    let end = 1 + inside.get(1..)?.iter().position(|byte| *byte == b']')?;
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < end {
        if at + 2 < end && inside[at + 1] == b'-' {
            ranges.push((inside[at], inside[at + 2]));
            at += 3;
        } else {
            ranges.push((inside[at], inside[at]));
            at += 1;
        }
    }
    Some((Part::Set { ranges, not }, &inside[end + 1..]))
}
