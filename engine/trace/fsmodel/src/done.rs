//! A call that was made, as the model reads it.

use etude_calls::{Call, Kind};
use smallvec::SmallVec;

/// A call, its arguments as a trace or a script holds them, its texts and its result.
pub struct Done<'a> {
    pub call: Call,
    pub arguments: &'a [u64; 6],
    /// -errno for an error.
    pub result: i64,
    /// Texts with the arguments in which they stand.
    texts: SmallVec<[(u8, &'a [u8]); 2]>,
}

impl<'a> Done<'a> {
    pub fn new(
        call: Call,
        arguments: &'a [u64; 6],
        result: i64,
        texts: impl Iterator<Item = (u8, &'a [u8])>,
    ) -> Done<'a> {
        Done { call, arguments, result, texts: texts.collect() }
    }

    /// The first text of an argument.
    pub fn text(&self, index: usize) -> Option<&'a [u8]> {
        self.texts().find(|(at, _)| *at == index).map(|(_, text)| text)
    }

    /// All texts, with their arguments.
    pub fn texts(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.texts.iter().map(|(at, text)| (usize::from(*at), *text))
    }

    /// True if the result is an error.
    pub fn failed(&self) -> bool {
        (-4095..0).contains(&self.result)
    }

    pub fn kind(&self, index: usize) -> Kind {
        self.call.kind(self.arguments, index)
    }

    /// An argument as a descriptor.
    pub fn descriptor(&self, index: usize) -> i32 {
        self.arguments[index] as i32
    }

    /// The descriptors of a pipe or of a pair of sockets; None where they are not recorded.
    pub fn pair(&self) -> Option<[i32; 2]> {
        let (_, text) = self.texts().find(|(_, text)| text.len() == 8)?;
        Some([0, 4].map(|at| i32::from_le_bytes(text[at..at + 4].try_into().expect("four bytes"))))
    }
}
