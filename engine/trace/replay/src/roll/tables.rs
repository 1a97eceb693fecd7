//! What stands in a roll beside calls: names, files that have to be there, and marks, as columns of numbers.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use etude_script::{Needed, What};
use etude_trace::parts::{put, take, unzigzag, zigzag};

use super::{MOST, MOST_NAME, MOST_NAMES, Mark, Marked, said};

/// How many bytes each has in common with the one before, and what it has more, up to a 0: columns.
pub fn names_bytes(names: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, names.len() as u64);
    let before = || std::iter::once(&[][..]).chain(names.iter().map(Vec::as_slice));
    let common =
        |(before, name): (&[u8], &Vec<u8>)| before.iter().zip(name).take_while(|(a, b)| a == b).count();
    let commons: Vec<usize> = before().zip(names).map(common).collect();
    commons.iter().for_each(|common| put(&mut bytes, *common as u64));
    for (name, common) in names.iter().zip(&commons) {
        bytes.extend_from_slice(&name[*common..]);
        bytes.push(0);
    }
    bytes
}

/// In the order of their names, as columns: kinds, paths (as names, by the difference to the one before), two numbers.
pub fn needed_bytes(needed: &[Needed], names: &[Vec<u8>]) -> Vec<u8> {
    let places: HashMap<&[u8], u64> = names.iter().map(Vec::as_slice).zip(0..).collect();
    let place = |path: &[u8]| places.get(path).copied().expect("paths of needed files are names");
    let mut rows: Vec<(u64, u64, u64, u64)> = needed
        .iter()
        .map(|each| {
            let path = place(&each.path);
            match &each.what {
                What::File { bytes, allocated, seen } => (
                    u64::from(!seen),
                    path,
                    *bytes,
                    allocated.map_or(0, |allocated| allocated.saturating_add(1)),
                ),
                What::Directory => (2, path, 0, 0),
                What::Link(to) => (3, path, place(to), 0),
                What::HardLink(of) => (4, path, place(of), 0),
            }
        })
        .collect();
    rows.sort_by_key(|row| row.1);
    let mut bytes = Vec::new();
    put(&mut bytes, rows.len() as u64);
    rows.iter().for_each(|row| put(&mut bytes, row.0));
    let before = std::iter::once(0).chain(rows.iter().map(|row| row.1));
    before.zip(&rows).for_each(|(before, row)| put(&mut bytes, zigzag(before, row.1)));
    rows.iter().for_each(|row| put(&mut bytes, row.2));
    rows.iter().for_each(|row| put(&mut bytes, row.3));
    bytes
}

/// All marks of a thread.
pub fn marks_bytes(thread: u32, marks: &[Mark]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, thread.into());
    put(&mut bytes, marks.len() as u64);
    let mut before = 0;
    for mark in marks {
        put(&mut bytes, mark.at - before);
        put(&mut bytes, mark.gap_us);
        before = mark.at;
        let (kind, first, second) = match mark.what {
            Marked::After { thread, told } => (0, thread.into(), told),
            Marked::Tell => (1, 0, 0),
            Marked::Start(thread) => (2, thread.into(), 0),
            Marked::Fork(thread) => (3, thread.into(), 0),
            Marked::Wait(thread) => (4, thread.into(), 0),
            Marked::Exec => (5, 0, 0),
            Marked::End => (6, 0, 0),
        };
        for value in [kind, first, second] {
            put(&mut bytes, value);
        }
    }
    bytes
}

/// So many numbers.
fn column(bytes: &mut &[u8], many: usize) -> Option<Vec<u64>> {
    (0..many).map(|_| take(bytes)).collect()
}

/// How many rows follow: no more than there are bytes.
fn rows(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(take(bytes)?).ok().filter(|many| *many <= bytes.len())
}

pub fn names(mut bytes: &[u8]) -> Option<Vec<CString>> {
    let many = rows(&mut bytes).filter(|many| *many <= MOST_NAMES)?;
    let commons = column(&mut bytes, many)?;
    let (mut names, mut all): (Vec<CString>, usize) = (Vec::new(), 0);
    for common in commons {
        let before = names.last().map_or(&[][..], |name| name.as_bytes());
        let mut name = before.get(..usize::try_from(common).ok()?)?.to_vec();
        let more = bytes.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&bytes[..more]);
        bytes = &bytes[more + 1..];
        all += name.len();
        if name.len() > MOST_NAME || all > MOST {
            return None;
        }
        names.push(CString::new(name).ok()?);
    }
    bytes.is_empty().then_some(names)
}

pub fn needed(mut bytes: &[u8], names: &[CString]) -> Option<Vec<Needed>> {
    let many = rows(&mut bytes).filter(|many| *many <= MOST_NAMES)?;
    let [kinds, paths, first, second] = [(); 4].map(|()| column(&mut bytes, many));
    let (kinds, paths, first, second) = (kinds?, paths?, first?, second?);
    let name = |place: u64| Some(names.get(usize::try_from(place).ok()?)?.as_bytes().into());
    let (mut before, mut found, mut all) = (0, Vec::with_capacity(many), 0);
    for at in 0..many {
        before = unzigzag(before, paths[at]);
        let what = match kinds[at] {
            kind @ (0 | 1) => {
                What::File { bytes: first[at], allocated: second[at].checked_sub(1), seen: kind == 0 }
            }
            2 => What::Directory,
            3 => What::Link(name(first[at])?),
            4 => What::HardLink(name(first[at])?),
            _ => return None,
        };
        let path: Arc<[u8]> = name(before)?;
        all += path.len() + said(&what);
        if all > MOST {
            return None;
        }
        found.push(Needed { path, what });
    }
    bytes.is_empty().then_some(found)
}

pub fn marks(mut bytes: &[u8]) -> Option<(usize, Vec<Mark>)> {
    let thread = usize::try_from(take(&mut bytes)?).ok()?;
    let many = rows(&mut bytes)?;
    let (mut marks, mut at) = (Vec::new(), 0_u64);
    for _ in 0..many {
        at = at.checked_add(take(&mut bytes)?)?;
        let gap_us = take(&mut bytes)?;
        let (kind, first, second) = (take(&mut bytes)?, take(&mut bytes)?, take(&mut bytes)?);
        let thread = u32::try_from(first).ok()?;
        let what = match kind {
            0 => Marked::After { thread, told: second },
            1 => Marked::Tell,
            2 => Marked::Start(thread),
            3 => Marked::Fork(thread),
            4 => Marked::Wait(thread),
            5 => Marked::Exec,
            6 => Marked::End,
            _ => return None,
        };
        marks.push(Mark { at, gap_us, what });
    }
    bytes.is_empty().then_some((thread, marks))
}
