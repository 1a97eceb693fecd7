//! Arguments as words, much as strace prints them.

use std::fmt::{self, Write};

use crate::Kind;

/// Writes an argument that is no text: `AT_FDCWD`, `O_RDONLY|O_CLOEXEC`, `0644`, `0x7f0012345678`, `4096`.
pub fn write_argument(out: &mut impl Write, kind: Kind, value: u64) -> fmt::Result {
    match kind {
        Kind::DirFd if value as i32 == -100 => out.write_str("AT_FDCWD"),
        Kind::Fd | Kind::DirFd | Kind::Int | Kind::Id => write!(out, "{}", value as i32),
        Kind::Offset => write!(out, "{}", value as i64),
        Kind::Size | Kind::Count | Kind::Unused => write!(out, "{value}"),
        Kind::Flags(set) => set.write_flags(out, value),
        Kind::Choice(set) => set.write_choice(out, value),
        Kind::Mode => write!(out, "0{value:o}"),
        Kind::Device => write!(out, "makedev({:#x}, {:#x})", major(value), minor(value)),
        _ if value == 0 => out.write_str("NULL"),
        _ => write!(out, "{value:#x}"),
    }
}

/// As the kernel packs them into 32 bits (`new_decode_dev`).
fn major(device: u64) -> u64 {
    (device >> 8) & 0xfff
}

fn minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & 0xfff00)
}
