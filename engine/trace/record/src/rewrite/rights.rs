//! Rights that a program has from its file, and that the kernel does not give to one that is traced.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;

use crate::rewrite::remote::{Pid, Status};

/// Which rights a file gives to who executes it, beside those that this user and group have.
pub fn of_file(path: &Path, user: u32, group: u32) -> Option<&'static str> {
    let found = std::fs::metadata(path).ok()?;
    let is = |bit, other| found.mode() & bit != 0 && other;
    if is(libc::S_ISUID, found.uid() != user) || is(libc::S_ISGID, found.gid() != group) {
        return Some("has the rights of another user (setuid or setgid)");
    }
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: texts that end with a zero byte; nothing is written to a place of no length.
    let length =
        unsafe { libc::getxattr(name.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    (length > 0).then_some("has rights of its own (capabilities of the file)")
}

/// What is to be said of a program that has just been executed, where it would have had more rights by itself.
/// `filtered`: it has a filter of ours, which takes them also from what root traces.
pub fn lost(pid: Pid, filtered: bool) -> Option<String> {
    // SAFETY: no arguments.
    static ROOT: LazyLock<bool> = LazyLock::new(|| unsafe { libc::geteuid() } == 0);
    if *ROOT && !filtered {
        return None;
    }
    let status = Status::of(pid).ok()?;
    let own = |name| status.field(name)?.split_whitespace().nth(1)?.parse().ok();
    let place = format!("/proc/{pid}/exe");
    let why = of_file(Path::new(&place), own("Uid:")?, own("Gid:")?)?;
    let path = std::fs::read_link(place).unwrap_or_default();
    Some(format!("{} {why}: traced, it runs without them", path.display()))
}
