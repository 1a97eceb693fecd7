//! Where x86-64 machine code makes system calls, and which of them a jump can replace.
//!
//! Read `forms.rs` first: it has the patterns, each with its rule. What is not certain is left as it is and named,
//! for a jump at a wrong place breaks the program that is only to be watched.

mod around;
mod cache;
mod elf;
mod entries;
mod flags;
mod forms;
mod moved;
mod number;
mod pack;
mod scan;

pub use cache::{Cache, Key, decode, encode};
pub use elf::{Elf, Layout, Part};
pub use moved::{Moved, Relative};
pub use scan::{scan, scan_within};

/// How many bytes a jump takes (`e9` and four bytes of distance).
pub const JUMP: u64 = 5;

/// What was found in a piece of code, in the order of addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Where a jump can stand.
    pub sites: Vec<Site>,
    /// System calls that have to stay as they are.
    pub left: Vec<Left>,
}

/// A system call that a jump can take the place of.
///
/// The jump is written at `at`. What it leads to runs `before`, makes the call, runs `after` and goes on at `back`;
/// it may change what a system call changes (rax, rcx, r11) and the flags, nothing else. Where `number` is None any
/// call can be made here, also one that returns twice or on another stack: what is not known to be harmless has to
/// be made by a `syscall` that stands between `before` and `after` with registers and stack as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Address of the first byte that is replaced.
    pub at: u64,
    /// Address of the `syscall` instruction.
    pub call: u64,
    /// By which pattern it was found.
    pub form: Form,
    /// The bytes from `at` on that are replaced, in whole instructions: at least `JUMP`. Whoever writes a jump over
    /// them checks first that they are still there.
    pub bytes: Vec<u8>,
    /// What is run before the call.
    pub before: Moved,
    /// What is run after the call.
    pub after: Moved,
    /// Where to go on; None where `after` ends with a return.
    pub back: Option<u64>,
    /// Which call it makes, where the code before says so.
    pub number: Option<u32>,
}

/// The patterns. Each is described where it is matched, in `forms.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Form {
    /// The number is moved into eax directly before; only that is replaced.
    Number = 1,
    /// The result is compared with the range of errors directly after.
    Check = 2,
    /// The result is used directly after.
    Result = 3,
    /// Instructions before, and perhaps the call itself.
    Before = 4,
    /// The call and instructions after it that do not use the result.
    After = 5,
}

/// A system call that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Address of the `syscall` instruction.
    pub call: u64,
    /// Which call it makes, where the code before says so.
    pub number: Option<u32>,
    /// Why it stays.
    pub why: Why,
    /// With `Why::Flags`: the site that it would be for one who keeps the flags.
    pub site: Option<Box<Site>>,
}

/// Why a system call stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Why {
    /// Its call returns twice, elsewhere or never.
    Never = 1,
    /// No pattern fits.
    Pattern = 2,
    /// Something jumps into the bytes that would be replaced.
    Entered = 3,
    /// The flags are still needed after the call.
    Flags = 4,
    /// Whether this is code, and where its instructions begin, is not certain.
    Unclear = 5,
}

impl Form {
    /// All of them.
    pub const ALL: [Form; 5] = [Form::Number, Form::Check, Form::Result, Form::Before, Form::After];
}

impl Why {
    /// All of them.
    pub const ALL: [Why; 5] = [Why::Never, Why::Pattern, Why::Entered, Why::Flags, Why::Unclear];
}

impl Site {
    /// The address behind the last byte that is replaced.
    pub fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::Never => "a call that returns twice, elsewhere or never",
            Why::Pattern => "no room for a jump",
            Why::Entered => "something jumps into the place of the jump",
            Why::Flags => "the flags are needed after it",
            Why::Unclear => "code or data, it is not certain",
        })
    }
}
