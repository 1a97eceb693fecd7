//! The code of one mapping: which file it is of, and where it makes system calls.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, OnceLock};

use etude_sites::{Cache, Elf, Key, Layout, Scan, scan, scan_within};

use crate::rewrite::hook::{Clock, Code, Entry};
use crate::rewrite::maps::Mapping;
use crate::rewrite::remote::{Memory, Pid};

/// A scan of code as if it were at address 0, and the image's build-id in hexadecimal digits.
pub struct Scanned {
    pub scan: Scan,
    pub build_id: Option<String>,
}

/// Scans of code that was seen before, by this recording and by others of this user, and the hook's own code.
#[derive(Clone, Default)]
pub struct Known {
    seen: Arc<Mutex<HashMap<Key, Arc<Scanned>>>>,
    stored: Option<Cache>,
    hook: Arc<OnceLock<Code>>,
}

impl Known {
    /// What others of this user have stored, too.
    pub fn of_user() -> Known {
        Known { stored: Cache::of_user(), ..Known::default() }
    }

    /// The hook's code for an image, which is made once: see `Code::new`.
    pub fn hook(&self, clock: Clock, entry: fn(u32) -> Entry, rings: u64, vdso: u64) -> Code {
        self.hook.get_or_init(|| Code::new(clock, entry, 0, 0)).placed(rings, vdso)
    }
}

/// Scans a mapping, or takes what is known of it. Whether its file is still the one that was scanned is looked at each
/// time.
///
/// # Errors
/// The memory cannot be read.
pub fn scanned(pid: Pid, mapping: &Mapping, memory: &Memory, known: &Known) -> io::Result<Arc<Scanned>> {
    let length = mapping.high - mapping.low;
    // By the root of the process, which may be another than ours.
    let path = format!("/proc/{pid}/root{}", mapping.name);
    let key = mapping.name.starts_with('/').then(|| std::fs::metadata(&path).ok()).flatten();
    let key = key.map(|about| Key::of_file(&about, mapping.offset, length));
    let seen = || known.seen.lock().expect("no thread panics");
    if let Some(found) = key.as_ref().and_then(|key| seen().get(key).cloned()) {
        return Ok(found);
    }
    let found = Arc::new(scanned_anew(&path, mapping, memory, known.stored.as_ref())?);
    if let Some(key) = key {
        seen().insert(key, found.clone());
    }
    Ok(found)
}

fn scanned_anew(
    path: &str,
    mapping: &Mapping,
    memory: &Memory,
    cache: Option<&Cache>,
) -> io::Result<Scanned> {
    let length = mapping.high - mapping.low;
    let image = File::open(path).and_then(|file| Ok((elf(&file)?, file)));
    let Ok((elf, file)) = image else {
        return Ok(Scanned { scan: scan(&memory.read(mapping.low, length as usize)?, 0), build_id: None });
    };
    let key = match &elf.build_id {
        Some(id) => Key::of_build(id, mapping.offset, length),
        None => Key::of_file(&file.metadata()?, mapping.offset, length),
    };
    let build_id = elf.build_id.as_ref().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
    if let Some(scan) = cache.and_then(|cache| cache.load(&key, 0)) {
        return Ok(Scanned { scan, build_id });
    }
    let bytes = memory.read(mapping.low, length as usize)?;
    let parts = parts(&elf, mapping);
    let scan = if parts.is_empty() { scan(&bytes, 0) } else { scan_within(&bytes, 0, &parts) };
    if let Some(cache) = cache {
        let _ = cache.store(&key, 0, &scan); // it is as good without
    }
    Ok(Scanned { scan, build_id })
}

fn elf(file: &File) -> io::Result<Elf> {
    Elf::read(Layout::File, |place, buffer| file.read_exact_at(buffer, place))
}

/// Where in the mapping the sections of instructions are that lie in it, from its beginning.
fn parts(elf: &Elf, mapping: &Mapping) -> Vec<Range<u64>> {
    let within = mapping.offset..mapping.offset + (mapping.high - mapping.low);
    elf.sections
        .iter()
        .map(|section| section.offsets())
        .map(|at| at.start.max(within.start)..at.end.min(within.end))
        .filter(|at| at.start < at.end)
        .map(|at| at.start - within.start..at.end - within.start)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    /// A page of code of a file, mapped here.
    fn mapped(file: &File, name: &str) -> Mapping {
        // SAFETY: a fresh mapping of a page that the file has.
        let low = unsafe {
            let code = libc::PROT_READ | libc::PROT_EXEC;
            libc::mmap(std::ptr::null_mut(), 4096, code, libc::MAP_PRIVATE, file.as_raw_fd(), 0) as u64
        };
        Mapping {
            low,
            high: low + 4096,
            executable: true,
            readable: true,
            name: name.to_owned(),
            ..Mapping::default()
        }
    }

    #[test]
    fn code_is_scanned_once_and_again_when_its_file_was_written_to() {
        // mov $39,%eax; syscall; ret, behind so many bytes.
        let page = |before: usize| {
            let mut bytes = vec![0xc3; before];
            bytes.extend(b"\xb8\x27\x00\x00\x00\x0f\x05\xc3");
            bytes.resize(4096, 0xc3);
            bytes
        };
        let path = std::env::temp_dir().join(format!("etude-code-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all(&page(0)).unwrap();
        let (own, known) = (std::process::id() as Pid, Known::default());
        let look = |file: &File| {
            let mapping = mapped(file, path.to_str().unwrap());
            let found = scanned(own, &mapping, &Memory::unopened(own), &known).unwrap();
            // SAFETY: the mapping from above.
            unsafe { libc::munmap(mapping.low as *mut libc::c_void, 4096) };
            found
        };
        let first = look(&file);
        assert!(Arc::ptr_eq(&first, &look(&file)));
        file.write_all_at(&page(64), 0).unwrap();
        let second = look(&file);
        std::fs::remove_file(&path).unwrap();
        let calls = |found: &Scanned| found.scan.sites.iter().map(|site| site.call).collect::<Vec<_>>();
        assert_eq!((calls(&first), calls(&second)), (vec![5], vec![69]));
    }
}
