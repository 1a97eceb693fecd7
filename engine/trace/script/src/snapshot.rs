//! What stands at the paths that a program named, looked at when it has ended.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use etude_trace::{Failed, Found};

use crate::from_trace::paths_of;
use crate::from_trace::tree::{components, parent};

/// How much is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub paths: u64,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { paths: 100_000, time: Duration::from_secs(20) }
    }
}

/// Looks at the paths that the events of a trace name (which need not have its end yet). What stands below `/proc`, `/sys`
/// and `/dev` tells nothing, and is left out. Says also why not all was looked at.
///
/// # Errors
/// The trace cannot be read.
pub fn snapshot(trace: &Path, limits: Limits) -> Result<(Vec<Found>, Option<String>), Failed> {
    let end = Instant::now() + limits.time;
    let (paths, whole) = paths_of(trace, |paths| paths < limits.paths && Instant::now() < end)?;
    let mut finder = Finder { found: BTreeMap::new(), seen: HashMap::new(), files: HashMap::new() };
    let mut left = paths.len();
    for (path, listed) in paths {
        if finder.found.len() as u64 >= limits.paths || Instant::now() >= end {
            break;
        }
        left -= 1;
        finder.look(&path, listed, limits.paths);
    }
    let why = (left > 0 || !whole).then(|| {
        format!(
            "not all files that the program named were looked at: more than {} or {:?}",
            limits.paths, limits.time
        )
    });
    Ok((finder.found.into_values().collect(), why))
}

struct Finder {
    found: BTreeMap<Vec<u8>, Found>,
    /// Whether there is a link, and where it leads; None where there is nothing.
    seen: HashMap<Vec<u8>, Option<Option<Vec<u8>>>>,
    /// The first path of each file that has several.
    files: HashMap<(u64, u64), String>,
}

impl Finder {
    /// Notes what stands at a path, and all links on the way.
    fn look(&mut self, path: &[u8], listed: bool, most: u64) {
        let mut rest: Vec<Vec<u8>> = components(path).rev().map(<[u8]>::to_vec).collect();
        let (mut at, mut links) = (b"/".to_vec(), 0);
        while let Some(part) = rest.pop() {
            if part == b".." {
                at.truncate(parent(&at).map_or(1, <[u8]>::len));
                continue;
            }
            if at != b"/" {
                at.push(b'/');
            }
            at.extend_from_slice(&part);
            if [&b"/proc"[..], b"/sys", b"/dev"].contains(&&at[..]) {
                return;
            }
            match self.see(&at) {
                None => return,
                Some(None) => {}
                Some(Some(target)) => {
                    self.note(&at);
                    links += 1;
                    if links > 40 {
                        return;
                    }
                    let directory = parent(&at).map_or(1, <[u8]>::len);
                    at.truncate(if target.first() == Some(&b'/') { 1 } else { directory });
                    rest.extend(components(&target).rev().map(<[u8]>::to_vec));
                }
            }
        }
        self.note(&at);
        if listed {
            let entries =
                fs::read_dir(Path::new(std::ffi::OsStr::from_bytes(&at))).into_iter().flatten().flatten();
            for entry in entries.take_while(|_| (self.found.len() as u64) < most).collect::<Vec<_>>() {
                self.note(entry.path().as_os_str().as_bytes());
            }
        }
    }

    fn see(&mut self, path: &[u8]) -> Option<Option<Vec<u8>>> {
        if let Some(seen) = self.seen.get(path) {
            return seen.clone();
        }
        let place = Path::new(std::ffi::OsStr::from_bytes(path));
        let seen = fs::symlink_metadata(place).ok().map(|found| {
            let target = if found.is_symlink() { fs::read_link(place).ok() } else { None };
            target.map(|target| target.into_os_string().into_vec())
        });
        self.seen.insert(path.to_vec(), seen.clone());
        seen
    }

    fn note(&mut self, path: &[u8]) {
        if self.found.contains_key(path) {
            return;
        }
        let Ok(text) = String::from_utf8(path.to_vec()) else { return };
        let Ok(found) = fs::symlink_metadata(&text) else { return };
        let mut noted = Found { path: text.clone(), kind: "other".into(), ..Found::default() };
        if found.is_symlink() {
            let Some(Ok(target)) =
                fs::read_link(&text).ok().map(|target| target.into_os_string().into_string())
            else {
                return;
            };
            (noted.kind, noted.target) = ("link".into(), Some(target));
        } else if found.is_dir() {
            noted.kind = "directory".into();
        } else if found.is_file() {
            noted.kind = "file".into();
            (noted.bytes, noted.allocated) = (found.size(), found.blocks() * 512);
            if found.nlink() > 1 {
                let first = self.files.entry((found.dev(), found.ino())).or_insert(text.clone());
                noted.same_as = (*first != text).then(|| first.clone());
            }
        }
        self.found.insert(path.to_vec(), noted);
    }
}
