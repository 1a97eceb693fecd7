//! Descriptors of files that are kept open, so that a read is one system call: the latest used, up to a bound.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

const NONE: u32 = u32::MAX;

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    pub fd: OwnedFd,
    pub writable: bool,
}

struct Slot {
    file: u32,
    older: u32,
    newer: u32,
    handle: Option<Arc<Handle>>,
}

/// Files by their number. A descriptor that falls out is closed when its last user is done.
pub(crate) struct Handles {
    kept: Mutex<Kept>,
}

struct Kept {
    /// Of each file; `NONE` where it is not kept.
    slot_of: Vec<u32>,
    slots: Vec<Slot>,
    newest: u32,
    oldest: u32,
    most: usize,
}

impl Handles {
    /// For so many files, of which `most` (1 or more) are kept open.
    pub fn new(files: usize, most: usize) -> Handles {
        let most = most.clamp(1, NONE as usize);
        let kept = Kept { slot_of: vec![NONE; files], slots: Vec::new(), newest: NONE, oldest: NONE, most };
        Handles { kept: Mutex::new(kept) }
    }

    pub fn get(&self, file: usize) -> Option<Arc<Handle>> {
        let mut kept = self.lock();
        let slot = kept.slot_of[file];
        if slot == NONE {
            return None;
        }
        kept.touch(slot);
        kept.slots[slot as usize].handle.clone()
    }

    /// Keeps it in place of the one that was not used for the longest.
    pub fn put(&self, file: usize, handle: &Arc<Handle>) {
        // What falls out is closed after the lock: that may take long.
        let _out = self.lock().put(file, handle.clone());
    }

    /// The file is gone, or another has its name now.
    pub fn forget(&self, file: usize) {
        let mut kept = self.lock();
        let slot = kept.slot_of[file];
        let out = (slot != NONE).then(|| kept.slots[slot as usize].handle.take());
        drop(kept);
        drop(out);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn put(&mut self, file: usize, handle: Arc<Handle>) -> Option<Arc<Handle>> {
        let mut slot = self.slot_of[file];
        if slot == NONE {
            slot = if self.slots.len() < self.most {
                self.slots.push(Slot { file: 0, older: NONE, newer: NONE, handle: None });
                let slot = (self.slots.len() - 1) as u32;
                self.link(slot);
                slot
            } else {
                self.slot_of[self.slots[self.oldest as usize].file as usize] = NONE;
                self.oldest
            };
            self.slot_of[file] = slot;
            self.slots[slot as usize].file = file as u32;
        }
        self.touch(slot);
        self.slots[slot as usize].handle.replace(handle)
    }

    fn touch(&mut self, slot: u32) {
        if slot != self.newest {
            self.unlink(slot);
            self.link(slot);
        }
    }

    fn link(&mut self, slot: u32) {
        let before = std::mem::replace(&mut self.newest, slot);
        let at = &mut self.slots[slot as usize];
        (at.older, at.newer) = (before, NONE);
        match self.slots.get_mut(before as usize) {
            Some(before) => before.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { older, newer, .. } = self.slots[slot as usize];
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use proptest::prelude::*;

    use super::*;

    fn handle() -> Arc<Handle> {
        Arc::new(Handle { fd: File::open("/dev/null").unwrap().into(), writable: false })
    }

    proptest! {
        #[test]
        fn the_latest_used_are_kept_and_no_more_than_the_bound(
            most in 1_usize..6,
            steps in prop::collection::vec((0_usize..12, 0_u8..8), 1..200),
        ) {
            let handles = Handles::new(12, most);
            // The last is the latest; what is forgotten keeps its place until it falls out.
            let mut model: Vec<(usize, Option<i32>)> = Vec::new();
            for (file, what) in steps {
                let known = model.iter().position(|(kept, _)| *kept == file);
                if what == 0 {
                    handles.forget(file);
                    if let Some(at) = known { model[at].1 = None; }
                    continue;
                }
                let found = handles.get(file);
                prop_assert_eq!(found.as_ref().map(|found| found.fd.as_raw_fd()), known.and_then(|at| model[at].1));
                if let Some(at) = known {
                    let entry = model.remove(at);
                    model.push(entry);
                }
                if found.is_none() {
                    let new = handle();
                    handles.put(file, &new);
                    model.retain(|(kept, _)| *kept != file);
                    if model.len() == most { model.remove(0); }
                    model.push((file, Some(new.fd.as_raw_fd())));
                }
            }
        }
    }

    #[test]
    fn a_descriptor_in_use_outlives_its_place() {
        let handles = Handles::new(2, 1);
        let used = handle();
        handles.put(0, &used);
        handles.put(1, &handle());
        assert!(handles.get(0).is_none());
        // SAFETY: only asks of a descriptor.
        assert!(unsafe { libc::fcntl(used.fd.as_raw_fd(), libc::F_GETFD) } >= 0);
    }
}
