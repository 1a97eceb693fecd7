//! Paths of calls, and where they lead.

use std::sync::Arc;

use etude_calls::Kind;

use crate::changes::is_link_target;
use crate::flags::AT_FDCWD;
use crate::rows::Done;

/// The kernel's limit: more links than this count as a circle.
const MOST_LINKS: usize = 40;

/// How the root is written: `/usr` is below the one, `usr` below the other.
pub const SLASH: &[u8] = b"/";
pub const EMPTY: &[u8] = b"";

/// The path that begins at `base` and goes on by `path`: through links, and through one that is its last component if
/// `follow`. Both results and `base` begin with `root`. `link` is what a link at a path holds; it is told whether the path
/// ends there.
pub fn resolve(
    root: &[u8],
    base: &[u8],
    path: &[u8],
    follow: bool,
    mut link: impl FnMut(&[u8], bool) -> Option<Arc<[u8]>>,
) -> Vec<u8> {
    let mut at = if path.starts_with(b"/") { root.to_vec() } else { base.to_vec() };
    // Texts of which a part is still to be gone: the last one comes next.
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
        append(root, &mut at, &rest[..end]);
        let last = texts.iter().all(|(text, from)| text[*from..].is_empty());
        if (follow || !last || more)
            && links < MOST_LINKS
            && at.len() > above
            && let Some(to) = link(&at, last)
        {
            links += 1;
            at.truncate(if to.starts_with(b"/") { root.len() } else { above });
            texts.push((to, 0));
        }
    }
    at
}

/// A path as it is written, from a directory whose own path may be relative: links are not followed, and a `..` above
/// the beginning of a relative path stays.
pub fn written(base: &[u8], path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") || base.starts_with(b"/") {
        return resolve(SLASH, base, path, false, |_, _| None);
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for component in base.split(|byte| *byte == b'/').chain(path.split(|byte| *byte == b'/')) {
        match component {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    if parts.is_empty() { b".".to_vec() } else { parts.join(&b'/') }
}

/// Goes on from a path by one component of another.
pub fn append(root: &[u8], path: &mut Vec<u8>, component: &[u8]) {
    match component {
        b"" | b"." => {}
        b".." => {
            let above = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            path.truncate(above.max(root.len()).min(path.len()));
        }
        name => {
            if path.len() > root.len() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
    }
}

/// A path from the root, which is written empty, without `.`, `..` and slashes that mean nothing.
pub fn key(path: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(path.len());
    path.split(|byte| *byte == b'/').for_each(|component| append(EMPTY, &mut key, component));
    key
}

/// The same path where what is called `from`, a file or a directory with all that is in it, is called `to`; None where the
/// path is not in it.
pub fn moved(path: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let rest = path.strip_prefix(from)?;
    (rest.is_empty() || rest[0] == b'/').then(|| [to, rest].concat())
}

/// The paths that a call names, by their arguments: no empty ones, and not what a link shall hold.
pub fn named<'a>(done: &Done<'a>) -> impl Iterator<Item = (usize, &'a [u8])> {
    done.texts().filter(|(index, text)| {
        done.kind(*index) == Kind::Path && !is_link_target(done.call, *index) && !text.is_empty()
    })
}

/// The descriptor that the path in an argument begins at; None where it begins in the directory of the process.
pub fn directory_of(done: &Done, index: usize) -> Option<i32> {
    let before = index.checked_sub(1).filter(|before| done.kind(*before) == Kind::DirFd)?;
    Some(done.descriptor(before)).filter(|descriptor| *descriptor != AT_FDCWD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_through_links_in_both_ways_of_writing() {
        let link = |path: &[u8], _| {
            let to: &[u8] = match path {
                b"/lib" => b"usr/lib",
                b"/a/b" => b"/x",
                b"/loop" => b"loop",
                b"/to" => b"lib/",
                _ => return None,
            };
            Some(to.into())
        };
        for (base, path, follow, to) in [
            ("/home/u", "x/./y//z/", true, "/home/u/x/y/z"),
            ("/home/u", "../../../..", true, "/"),
            ("/", "lib/c.so", true, "/usr/lib/c.so"),
            ("/q", "/lib", false, "/lib"),
            ("/q", "/lib", true, "/usr/lib"),
            ("/q", "/lib/", false, "/usr/lib"),
            ("/q", "/lib/.", false, "/usr/lib"),
            ("/q", "/to/x", false, "/usr/lib/x"),
            ("/a", "b/../c", true, "/c"),
            ("/a", "b/c", true, "/x/c"),
            ("/a", "/loop/c", true, "/loop/c"),
        ] {
            let found = resolve(SLASH, base.as_bytes(), path.as_bytes(), follow, link);
            assert_eq!(String::from_utf8_lossy(&found), to, "{base} {path}");
            let link = |path: &[u8], last| link(&[b"/", path].concat(), last);
            let found = resolve(EMPTY, &base.as_bytes()[1..], path.as_bytes(), follow, link);
            assert_eq!(String::from_utf8_lossy(&found), to[1..], "{base} {path}");
        }
    }

    #[test]
    fn a_path_as_it_is_written_begins_where_its_directory_does() {
        for (base, path, expected) in [
            ("/a", "b/./../c//d/", "/a/c/d"),
            ("/a", "//b", "/b"),
            ("/", "../..", "/"),
            (".", "./x", "x"),
            (".", "../../x/../y", "../../y"),
            ("x", "..", "."),
            ("", "x", "x"),
        ] {
            let found = written(base.as_bytes(), path.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected, "{base} {path}");
        }
    }

    #[test]
    fn what_is_in_a_directory_moves_with_it() {
        assert_eq!(moved(b"/d/f", b"/d", b"/e"), Some(b"/e/f".to_vec()));
        assert_eq!(moved(b"/d", b"/d", b"/e"), Some(b"/e".to_vec()));
        assert_eq!(moved(b"/dd", b"/d", b"/e"), None);
    }
}
