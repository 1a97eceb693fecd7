//! `io-static` and `io-dynamic`: the I/O benchmark alone, for measuring whole programs.
//!
//! It is entered from the C library, not by way of Rust's own start: that polls the standard descriptors, makes an
//! alternate stack and looks for the limits of the main one, a dozen system calls which a C program does not make.

#![no_main]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    let argument = |index: usize| -> OsString {
        // SAFETY: the C library passes `count` strings, which live as long as the process.
        let text = unsafe { CStr::from_ptr(*arguments.add(index)) };
        OsStr::from_bytes(text.to_bytes()).to_owned()
    };
    let mut arguments = (0..count as usize).map(argument);
    let path = arguments.next().unwrap_or_default();
    let name = path.as_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    etude_io::main(&String::from_utf8_lossy(name), arguments).into()
}
