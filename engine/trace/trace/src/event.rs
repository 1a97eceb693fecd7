//! One call that a program made.

use std::sync::Arc;

use etude_calls::{Call, Kind, Processor, Range};
use smallvec::SmallVec;

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it began, since the beginning of the trace, ns.
    pub start_ns: u64,
    /// ns.
    pub duration_ns: u64,
    pub call: Call,
    /// What the kernel returned; -errno for an error.
    pub result: i64,
    /// Normalised ([`Event::normalise`]); those that the call does not use are 0.
    pub arguments: [u64; 6],
    /// What stood where arguments pointed: paths, names, a pair of descriptors, a range. In order of arguments.
    pub texts: SmallVec<[Text; 1]>,
}

/// What stood where an argument pointed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Which argument, from 0.
    pub argument: u8,
    /// A path without the zero byte at its end.
    pub bytes: Arc<[u8]>,
}

impl Event {
    /// When it ended, since the beginning of the trace, ns.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.wrapping_add(self.duration_ns)
    }

    /// Makes of registers the arguments as a trace holds them ([`Call::normalise`]). Where a path or a name stood in
    /// memory is 0 if its text is known: nobody asks for it, and it would cost more than the rest.
    pub fn normalise(&mut self, processor: Processor) {
        self.call.normalise(processor, &mut self.arguments);
        for text in &mut self.texts {
            let index = usize::from(text.argument);
            let kind = self.call.kind(&self.arguments, index);
            if let Kind::Path | Kind::Name | Kind::Pair | Kind::OffsetAt | Kind::Range = kind {
                self.arguments[index] = 0;
            }
            // Between its members stands whatever was there before.
            if kind == Kind::Range && text.bytes.len() == Range::BYTES && text.bytes[4..8] != [0; 4] {
                let mut bytes = text.bytes.to_vec();
                bytes[4..8].fill(0);
                text.bytes = bytes.into();
            }
        }
    }

    /// The text of an argument.
    pub fn text(&self, argument: usize) -> Option<&Arc<[u8]>> {
        self.texts.iter().find(|text| usize::from(text.argument) == argument).map(|text| &text.bytes)
    }
}
