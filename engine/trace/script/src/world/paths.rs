//! Paths of calls as paths from the root.

use std::sync::Arc;

use etude_calls::{Call, Kind};

use super::World;
use super::names::{Names, append_component};
use crate::model::Called;

/// As the kernel: more links than this are a circle.
const MOST_LINKS: usize = 40;

/// Where a path leads from a directory: through links, and through one that is its last part if `follow`.
pub fn resolve(names: &Names, base: &[u8], path: &[u8], follow: bool) -> Vec<u8> {
    let mut at = if path.starts_with(b"/") { Vec::new() } else { base.to_vec() };
    // What is still to be gone: the last is the next.
    let mut texts: Vec<(Arc<[u8]>, usize)> = vec![(path.into(), 0)];
    let mut links = 0;
    while let Some((text, from)) = texts.pop() {
        let rest = &text[from..];
        let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let more = end < rest.len();
        if more {
            texts.push((text.clone(), from + end + 1));
        }
        let above = at.len();
        append_component(&mut at, &rest[..end]);
        let last = texts.iter().all(|(text, from)| text[*from..].is_empty());
        if (follow || !last || more)
            && links < MOST_LINKS
            && at.len() > above
            && let Some(to) = names.link(&at)
        {
            links += 1;
            at.truncate(if to.starts_with(b"/") { 0 } else { above });
            texts.push((to.clone(), 0));
        }
    }
    at
}

/// Whether argument `index` is a text that a link shall say, and no path to go.
pub fn is_target(call: Call, index: usize) -> bool {
    index == 0 && matches!(call.name(), "symlink" | "symlinkat")
}

/// Whether a call goes through a link that is the last part of its path.
fn follows(called: &Called, index: usize) -> bool {
    let arguments = &called.arguments;
    match called.call.name() {
        "lstat" | "lchown" | "readlink" | "readlinkat" | "unlink" | "unlinkat" | "rename" | "renameat"
        | "renameat2" | "link" | "symlink" | "symlinkat" | "mkdir" | "mkdirat" | "rmdir" | "mknod"
        | "mknodat" | "lsetxattr" | "lgetxattr" | "llistxattr" | "lremovexattr" | "name_to_handle_at" => {
            false
        }
        // AT_SYMLINK_FOLLOW
        "linkat" => index == 1 && arguments[4] & 0x400 != 0,
        // AT_SYMLINK_NOFOLLOW
        "newfstatat" | "utimensat" | "faccessat2" => arguments[3] & 0x100 == 0,
        "statx" => arguments[2] & 0x100 == 0,
        "fchownat" => arguments[4] & 0x100 == 0,
        "open" => open_follows(arguments[1]),
        "openat" => open_follows(arguments[2]),
        _ => true,
    }
}

/// Neither O_NOFOLLOW nor O_CREAT with O_EXCL.
fn open_follows(flags: u64) -> bool {
    flags & 0o400000 == 0 && flags & 0o300 != 0o300
}

impl World {
    /// The paths of a call from the root, with the arguments in which they stand. A path without a text, or below a
    /// directory of which nothing is known, is left out.
    pub fn paths(&self, process: u32, called: &Called) -> Vec<(usize, Vec<u8>)> {
        let mut found = Vec::new();
        for text in &called.texts {
            let index = usize::from(text.argument);
            if called.call.kind(&called.arguments, index) != Kind::Path
                || is_target(called.call, index)
                || text.bytes.is_empty()
            {
                continue;
            }
            let base = match self.directory_of(called, index) {
                Some(descriptor) => self
                    .description(process, descriptor)
                    .and_then(|description| self.opened[description as usize].node)
                    .and_then(|node| self.names.name(node)),
                None => self.place(process),
            };
            if let Some(base) = base.or(text.bytes.starts_with(b"/").then_some(b"")) {
                found.push((index, resolve(&self.names, base, &text.bytes, follows(called, index))));
            }
        }
        found
    }

    /// The descriptor that a path of a call begins at; None where it begins where the process stands.
    pub fn directory_of(&self, called: &Called, index: usize) -> Option<i32> {
        if index == 0 || called.call.kind(&called.arguments, index - 1) != Kind::DirFd {
            return None;
        }
        let descriptor = called.arguments[index - 1] as i32;
        // AT_FDCWD
        (descriptor != -100).then_some(descriptor)
    }
}
