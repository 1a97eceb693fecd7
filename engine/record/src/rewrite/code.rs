//! The code of one mapping: which file it is of, and where it makes system calls.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use etude_sites::{Cache, Elf, Key, Layout, Scan, decode, encode, scan, scan_within};

use crate::rewrite::borrow::Remote;
use crate::rewrite::maps::Mapping;
use crate::rewrite::remote::Pid;

/// A scan, and the image's build-id in hexadecimal digits.
pub struct Scanned {
    pub scan: Scan,
    pub build_id: Option<String>,
}

/// A scan as it is stored, and the build-id.
type Seen = (Vec<u8>, Option<String>);

/// What is known of code that was seen before: by this recording, and by others of this user.
#[derive(Clone, Default)]
pub struct Known {
    seen: Arc<Mutex<HashMap<Key, Seen>>>,
    stored: Option<Cache>,
}

impl Known {
    /// What others of this user have stored, too.
    pub fn of_user() -> Known {
        Known { stored: Cache::of_user(), ..Known::default() }
    }

    fn seen(&self, key: &Key, base: u64) -> Option<Scanned> {
        let seen = self.seen.lock().expect("no thread panics");
        let (bytes, build_id) = seen.get(key)?;
        Some(Scanned { scan: decode(bytes, key, base)?, build_id: build_id.clone() })
    }

    fn sees(&self, key: Key, base: u64, found: &Scanned) {
        let bytes = encode(&key, base, &found.scan);
        self.seen.lock().expect("no thread panics").insert(key, (bytes, found.build_id.clone()));
    }
}

/// Scans a mapping, or takes what is known of it.
///
/// # Errors
/// The memory cannot be read.
pub fn scanned(pid: Pid, mapping: &Mapping, remote: &Remote, known: &Known) -> io::Result<Scanned> {
    let length = mapping.high - mapping.low;
    // By the root of the process, which may be another than ours.
    let path = format!("/proc/{pid}/root{}", mapping.name);
    let key = mapping.name.starts_with('/').then(|| std::fs::metadata(&path).ok()).flatten();
    let key = key.map(|about| Key::of_file(&about, mapping.offset, length));
    if let Some(found) = key.as_ref().and_then(|key| known.seen(key, mapping.low)) {
        return Ok(found);
    }
    let found = scanned_anew(&path, mapping, remote, known.stored.as_ref())?;
    if let Some(key) = key {
        known.sees(key, mapping.low, &found);
    }
    Ok(found)
}

fn scanned_anew(
    path: &str,
    mapping: &Mapping,
    remote: &Remote,
    cache: Option<&Cache>,
) -> io::Result<Scanned> {
    let length = mapping.high - mapping.low;
    let image = File::open(path).and_then(|file| Ok((elf(&file)?, file)));
    let Ok((elf, file)) = image else {
        return Ok(Scanned {
            scan: scan(&remote.read(mapping.low, length as usize)?, mapping.low),
            build_id: None,
        });
    };
    let key = match &elf.build_id {
        Some(id) => Key::of_build(id, mapping.offset, length),
        None => Key::of_file(&file.metadata()?, mapping.offset, length),
    };
    let build_id = elf.build_id.as_ref().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
    if let Some(scan) = cache.and_then(|cache| cache.load(&key, mapping.low)) {
        return Ok(Scanned { scan, build_id });
    }
    let bytes = remote.read(mapping.low, length as usize)?;
    let parts = parts(&elf, mapping);
    let scan =
        if parts.is_empty() { scan(&bytes, mapping.low) } else { scan_within(&bytes, mapping.low, &parts) };
    if let Some(cache) = cache {
        let _ = cache.store(&key, mapping.low, &scan); // it is as good without
    }
    Ok(Scanned { scan, build_id })
}

fn elf(file: &File) -> io::Result<Elf> {
    Elf::read(Layout::File, |place, buffer| file.read_exact_at(buffer, place))
}

/// Where in memory the sections of instructions are that lie in the mapping.
fn parts(elf: &Elf, mapping: &Mapping) -> Vec<Range<u64>> {
    let within = mapping.offset..mapping.offset + (mapping.high - mapping.low);
    elf.sections
        .iter()
        .map(|section| section.offsets())
        .map(|at| at.start.max(within.start)..at.end.min(within.end))
        .filter(|at| at.start < at.end)
        .map(|at| mapping.low + (at.start - within.start)..mapping.low + (at.end - within.start))
        .collect()
}
