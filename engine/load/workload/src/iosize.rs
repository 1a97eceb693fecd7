//! How many bytes one read or write is of.

use std::fmt;
use std::str::FromStr;

use crate::law::Law;
use crate::parse::number;
use crate::random::Random;

/// No request is larger: 64 MiB.
pub(crate) const MOST: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum IoSize {
    /// All that is left of the file, at most so many bytes.
    Whole(u64),
    Law(Law),
}

impl IoSize {
    /// Bytes of a request, of which `left` are left to the end of what it is in; at least 1.
    pub fn draw(&self, random: &mut Random, left: u64) -> u64 {
        match self {
            IoSize::Whole(most) => left.min(*most),
            IoSize::Law(Law::Fixed(bytes)) => left.min(*bytes),
            IoSize::Law(law) => law.draw(random, MOST).min(left),
        }
        .max(1)
    }
}

impl FromStr for IoSize {
    type Err = String;

    fn from_str(text: &str) -> Result<IoSize, String> {
        let size = match text.split_once(':') {
            Some(("whole", most)) => IoSize::Whole(number(most)?),
            _ => {
                IoSize::Law(text.parse().map_err(|why: String| why.replace("fixed:", "whole:MOST, fixed:"))?)
            }
        };
        let fits = match &size {
            IoSize::Whole(most) => (1..=MOST).contains(most),
            IoSize::Law(law) => law.share_up_to(MOST) >= 0.01,
        };
        if fits { Ok(size) } else { Err("expected requests of 1 byte to 64 MiB".to_owned()) }
    }
}

impl fmt::Display for IoSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoSize::Whole(most) => write!(out, "whole:{most}"),
            IoSize::Law(law) => law.fmt(out),
        }
    }
}
