//! Everything that is to be made, checked before any of it is.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::model::{Needed, What};

/// What a file takes on disk at least, and a directory.
const BLOCK: u64 = 4096;
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4095;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// By path: directories stand before what is in them.
    pub entries_by_path: BTreeMap<Vec<u8>, Entry>,
    /// Bytes on disk.
    pub room: u64,
    pub entries: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory,
    File {
        bytes: u64,
        data: u64,
        seen: bool,
    },
    /// A file that another place has: one more name of that.
    Shared {
        bytes: u64,
        data: u64,
        seen: bool,
    },
    /// What is to stand in it: relative, and within the root.
    Link(Vec<u8>),
    HardLink(Vec<u8>),
}

/// A path at which what is needed cannot be made, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misplaced {
    path: Vec<u8>,
    what: String,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}: {}", self.path.escape_ascii(), self.what)
    }
}

/// Checks paths and what they are to be.
pub(crate) fn plan(needed: &[Needed]) -> Result<Plan, Misplaced> {
    let mut plan = Plan::default();
    for each in needed {
        let path = within(&each.path)?;
        let entry = match &each.what {
            What::Directory => Entry::Directory,
            What::File { bytes, allocated, seen } => {
                if i64::try_from(*bytes).is_err() {
                    return Err(wrong(&each.path, "a file cannot be so long"));
                }
                Entry::File { bytes: *bytes, data: allocated.unwrap_or(*bytes).min(*bytes), seen: *seen }
            }
            What::Link(target) => Entry::Link(relative(&path, target)?),
            What::HardLink(other) => Entry::HardLink(within(other)?),
        };
        match plan.entries_by_path.get(&path) {
            Some(before) if *before != entry => {
                return Err(wrong(&each.path, "it is needed twice, as different things"));
            }
            _ => plan.entries_by_path.insert(path, entry),
        };
    }
    directories(&mut plan)?;
    hard_links(&plan)?;
    links(&plan)?;
    plan.measure();
    Ok(plan)
}

impl Plan {
    /// Takes these files, by their paths from the root, from another place.
    pub fn share(&mut self, files: &HashSet<Vec<u8>>) {
        for (path, entry) in &mut self.entries_by_path {
            if let Entry::File { bytes, data, seen } = *entry
                && files.contains(path)
            {
                *entry = Entry::Shared { bytes, data, seen };
            }
        }
        self.measure();
    }

    fn measure(&mut self) {
        let entries = self.entries_by_path.values();
        self.entries = entries.clone().filter(|entry| !matches!(entry, Entry::Shared { .. })).count();
        self.room = entries.fold(0, |sum: u64, entry| {
            sum.saturating_add(match entry {
                Entry::File { data, .. } => data.div_ceil(BLOCK).saturating_mul(BLOCK),
                Entry::Directory => BLOCK,
                Entry::Shared { .. } | Entry::Link(_) | Entry::HardLink(_) => 0,
            })
        });
    }
}

/// All directories on the way: what is there but none cannot hold anything.
fn directories(plan: &mut Plan) -> Result<(), Misplaced> {
    let paths: Vec<Vec<u8>> = plan.entries_by_path.keys().cloned().collect();
    for path in paths {
        let mut at = &path[..];
        while let Some(slash) = at.iter().rposition(|byte| *byte == b'/') {
            at = &at[..slash];
            match plan.entries_by_path.get(at) {
                None => plan.entries_by_path.insert(at.to_vec(), Entry::Directory),
                Some(Entry::Directory) => break,
                Some(_) => return Err(wrong(&path, &format!("{} is no directory", at.escape_ascii()))),
            };
        }
    }
    Ok(())
}

fn hard_links(plan: &Plan) -> Result<(), Misplaced> {
    for (path, entry) in &plan.entries_by_path {
        if let Entry::HardLink(other) = entry
            && !matches!(plan.entries_by_path.get(other), Some(Entry::File { .. }))
        {
            return Err(wrong(
                path,
                &format!("it is to be another name of {}, which is no file here", other.escape_ascii()),
            ));
        }
    }
    Ok(())
}

/// Follows each link, through others too: `a -> b/..` leads elsewhere than it looks where `b` is a link itself.
fn links(plan: &Plan) -> Result<(), Misplaced> {
    const MOST: usize = 40;
    let parts = |path: &[u8]| -> Vec<Vec<u8>> {
        let parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
        parts.rev().map(<[u8]>::to_vec).collect()
    };
    for path in
        plan.entries_by_path.iter().filter(|(_, entry)| matches!(entry, Entry::Link(_))).map(|(path, _)| path)
    {
        let (mut rest, mut at, mut followed) = (parts(path), Vec::<Vec<u8>>::new(), 0);
        while let Some(part) = rest.pop().filter(|_| followed <= MOST) {
            if part == b".." {
                if at.pop().is_none() {
                    return Err(wrong(path, "it leads out of the directory, by way of other links"));
                }
                continue;
            }
            at.push(part);
            if let Some(Entry::Link(target)) = plan.entries_by_path.get(&at.join(&b'/')) {
                at.pop();
                rest.extend(parts(target));
                followed += 1;
            }
        }
    }
    Ok(())
}

/// A path in its shortest form; refused if it leads out of the root.
fn within(path: &[u8]) -> Result<Vec<u8>, Misplaced> {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|part| *part != b".").collect();
    let whole = !path.is_empty() && parts.iter().all(|part| !part.is_empty());
    if path.starts_with(b"/") || !whole || parts.is_empty() {
        return Err(wrong(
            path,
            "expected a path that begins in the directory of the replay, such as usr/include",
        ));
    }
    if parts.contains(&&b".."[..]) {
        return Err(wrong(path, "a path with .. may lead out of the directory: expected one without"));
    }
    if path.len() > LONGEST_PATH || parts.iter().any(|part| part.len() > LONGEST_NAME) || path.contains(&0) {
        return Err(wrong(path, "no file can be called so"));
    }
    Ok(parts.join(&b'/'))
}

/// What stands in a link: the root of an absolute path is that of the replay, and none leads out of it.
fn relative(link: &[u8], target: &[u8]) -> Result<Vec<u8>, Misplaced> {
    let depth = link.split(|byte| *byte == b'/').count() - 1;
    let parts = || target.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut below = if target.starts_with(b"/") { 0 } else { depth };
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in parts() {
        if part == b".." {
            below = below.checked_sub(1).ok_or_else(|| {
                let line = format!("its target {} is outside of the directory", target.escape_ascii());
                wrong(link, &line)
            })?;
        } else {
            below += 1;
        }
        kept.push(part);
    }
    if target.is_empty() || target.contains(&0) || target.len() > LONGEST_PATH {
        return Err(wrong(link, "its target is no path"));
    }
    if !target.starts_with(b"/") {
        return Ok(target.to_vec());
    }
    let up = std::iter::repeat_n(&b".."[..], depth);
    let parts: Vec<&[u8]> = up.chain(kept).collect();
    Ok(if parts.is_empty() { b".".to_vec() } else { parts.join(&b'/') })
}

fn wrong(path: &[u8], what: &str) -> Misplaced {
    Misplaced { path: path.into(), what: what.into() }
}

/// What is wrong with the files that a script needs: the index of one, and why it cannot be made.
pub(crate) fn misplaced(needed: &[Needed]) -> Result<(), (usize, String)> {
    plan(needed).map(drop).map_err(|wrong| {
        let is_it = |each: &Needed| {
            *each.path == *wrong.path || within(&each.path).ok().as_ref() == Some(&wrong.path)
        };
        (needed.iter().rposition(is_it).unwrap_or(0), wrong.to_string())
    })
}
