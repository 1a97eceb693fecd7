//! The code of one mapping: which file it is of, and where it makes system calls.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use etude_sites::{Cache, Elf, Key, Layout, Scan, scan, scan_within};

use crate::rewrite::borrow::Remote;
use crate::rewrite::maps::Mapping;
use crate::rewrite::remote::Pid;

/// A scan, and the image's build-id in hexadecimal digits.
pub struct Scanned {
    pub scan: Scan,
    pub build_id: Option<String>,
}

/// Scans a mapping, or takes what the cache knows of it.
///
/// # Errors
/// The memory cannot be read.
pub fn scanned(pid: Pid, mapping: &Mapping, remote: &Remote, cache: Option<&Cache>) -> io::Result<Scanned> {
    let length = mapping.high - mapping.low;
    // By the root of the process, which may be another than ours.
    let image =
        File::open(format!("/proc/{pid}/root{}", mapping.name)).and_then(|file| Ok((elf(&file)?, file)));
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
