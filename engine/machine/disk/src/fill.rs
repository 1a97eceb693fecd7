//! A file system filled to a level, by one file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use etude_clock::{monotonic_ns, seconds};
use serde_json::{Map, Value, json};

use crate::content::Content;
use crate::ending::ended;
use crate::grow::{allocate_most, is_full, is_unknown};
use crate::space::{Space, sync};
use crate::{Failed, machine};

/// The file, in the directory that is named.
pub const NAME: &str = "etude-fill";
/// The file's own bookkeeping takes space, too: so often what is missing is added, or what is too much given back.
const MOST_ROUNDS: u32 = 16;
const MIB: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// As `df` says: used of what everybody can use.
    Level(f64),
    /// Bytes that stay available.
    Leave(u64),
}

/// Fill; members of what was done. `complete` says whether the level was reached.
///
/// # Errors
/// It is above its level already, it was filled before, or the machine fails.
pub fn fill(directory: &Path, goal: Goal, written: bool) -> Result<Map<String, Value>, Failed> {
    let began_ns = monotonic_ns();
    let before = Space::of(directory)?;
    if missing(&before, goal) < -(before.block as i64) {
        return Err((
            format!(
                "{}: {:.2}% is used already, which is more; give another level",
                directory.display(),
                before.level() * 100.0
            ),
            5,
        ));
    }
    let path = directory.join(NAME);
    let wrong = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            (format!("{}: was filled already; remove that file first", path.display()), 5)
        }
        _ => machine(path.display(), &error),
    };
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(wrong)?;
    let how = approach(directory, &file, goal, written).map_err(wrong)?;
    let after = Space::of(directory)?;
    let filled = json!({
        "level": after.level(),
        "level_before": before.level(),
        "capacity_bytes": after.capacity(),
        "available_bytes": after.available,
        "filled_bytes": file.metadata().map_err(wrong)?.len(),
        "written": written,
        "missed_bytes": missing(&after, goal),
        "complete": how == "complete",
        "ended": how,
        "seconds": seconds(monotonic_ns() - began_ns),
    });
    Ok(filled.as_object().cloned().unwrap_or_default())
}

/// Remove the file.
///
/// # Errors
/// There is none, or it cannot be removed.
pub fn remove(directory: &Path) -> Result<(), Failed> {
    let path = directory.join(NAME);
    fs::remove_file(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => (format!("{}: there is nothing to remove", path.display()), 2),
        _ => machine(path.display(), &error),
    })
}

/// Bytes that are still to be used; below 0: too many are.
fn missing(space: &Space, goal: Goal) -> i64 {
    let wanted = match goal {
        Goal::Level(level) => (level * space.capacity() as f64) as i64 - space.used as i64,
        Goal::Leave(bytes) => space.available as i64 - bytes as i64,
    };
    wanted.min(space.mine() as i64)
}

/// How it ended: `complete`, `full`, `signal N`, or how far off it stayed.
fn approach(directory: &Path, file: &File, goal: Goal, written: bool) -> io::Result<String> {
    let mut bytes = 0u64;
    for _ in 0..MOST_ROUNDS {
        sync(file)?;
        let space = Space::of(directory).map_err(|(line, _)| io::Error::other(line))?;
        let missing = missing(&space, goal);
        if missing.unsigned_abs() < space.block {
            return Ok("complete".to_owned());
        }
        if missing < 0 {
            bytes = bytes.saturating_sub(missing.unsigned_abs().next_multiple_of(space.block));
            file.set_len(bytes)?;
            continue;
        }
        let most = (missing as u64 / space.block).max(1) * space.block;
        let taken = if written { write_most(file, bytes, most)? } else { take(file, bytes, most)? };
        bytes += taken;
        if let Some(signal) = ended() {
            return Ok(format!("signal {signal}"));
        }
        if taken == 0 {
            return Ok("full".to_owned());
        }
    }
    Ok("it does not settle: somebody else writes there, or space is counted late".to_owned())
}

fn take(file: &File, at: u64, most: u64) -> io::Result<u64> {
    match allocate_most(file, at, most) {
        Err(error) if is_unknown(&error) => write_most(file, at, most),
        done => done,
    }
}

fn write_most(file: &File, from: u64, most: u64) -> io::Result<u64> {
    let content = Content::new(from);
    let mut done = 0;
    while done < most && ended().is_none() {
        let piece = (most - done).min(16 * MIB);
        match content.write(file, 0, from + done, piece) {
            Ok(()) => done += piece,
            Err(error) if is_full(&error) => {
                done = file.metadata()?.len().saturating_sub(from);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    match file.sync_data() {
        Err(error) if !is_full(&error) => Err(error),
        _ => Ok(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_missing_makes_the_level(used in 0u64..1 << 40, available in 1u64..1 << 40, level in 0.01f64..1.0) {
            let before = Space { used, available, free: available, block: 4096 };
            let missing = missing(&before, Goal::Level(level));
            let after = (used as i64 + missing) as f64 / before.capacity() as f64;
            prop_assert!((after - level).abs() < 1e-6 || missing == available as i64);
        }

        #[test]
        fn what_is_left_is_what_was_asked_for(available in 0u64..1 << 40, leave in 0u64..1 << 40) {
            let before = Space { used: 1, available, free: available, block: 4096 };
            prop_assert_eq!(available as i64 - missing(&before, Goal::Leave(leave)), leave as i64);
        }
    }
}
