//! What comes and goes: files, links and directories that are made, removed and renamed.

use super::{DIRTY, MOST_FILLS, Stream, operation, ordered};
use crate::kind::{Kind, Object, Operation};
use crate::random::Random;
use crate::runs::Run;
use crate::slots::Slots;

impl Stream {
    /// A file or a link is made or removed, whichever keeps the population what it is.
    pub(super) fn come_or_go(&mut self) -> Operation {
        if self.links_share > 0.0 && !self.spare_links.is_empty() && self.slots.happens(self.links_share) {
            return match half(&mut self.spare_links, &mut self.slots) {
                (true, link) => ordered(Kind::Symlink, Object::Link(link)),
                (false, link) => ordered(Kind::Remove, Object::Link(link)),
            };
        }
        if self.churn.is_empty() {
            // So few files that their share of those that come and go is none.
            return operation(Kind::Getattr, Object::File(self.file()));
        }
        if self.churn.comes(self.knobs.present, &mut self.slots) { self.create() } else { self.remove() }
    }

    fn create(&mut self) -> Operation {
        let file = self.churn.take(&mut self.slots).unwrap_or_default();
        self.state.come(file, 0);
        if self.knobs.fill && self.fills.len() < MOST_FILLS {
            self.fills.push_back(Run::over(file, self.set.sizes()[file]));
        }
        ordered(Kind::Create, Object::File(file))
    }

    /// A file goes; rather one that no run is on.
    fn remove(&mut self) -> Operation {
        let busy = |file: usize| {
            self.reads.holds(file)
                || self.writes.holds(file)
                || self.fills.iter().take(DIRTY).any(|run| run.file == file)
        };
        let file = self.churn.leave(&mut self.slots, |file| !busy(file)).unwrap_or_default();
        self.gone(file);
        ordered(Kind::Remove, Object::File(file))
    }

    fn gone(&mut self, file: usize) {
        self.state.leave(file);
        self.reads.abandon(file);
        self.writes.abandon(file);
        self.fills.retain(|run| run.file != file);
    }

    pub(super) fn make_or_unmake(&mut self) -> Operation {
        if self.spare_directories.is_empty() {
            return operation(Kind::Getattr, Object::File(self.file()));
        }
        match half(&mut self.spare_directories, &mut self.slots) {
            (true, directory) => ordered(Kind::Mkdir, Object::Directory(directory)),
            (false, directory) => ordered(Kind::Rmdir, Object::Directory(directory)),
        }
    }

    /// A file that comes and goes gets the name of one that is not there.
    pub(super) fn rename(&mut self) -> Operation {
        let Some((from, to)) = self.churn.exchange(&mut self.slots) else {
            return operation(Kind::Getattr, Object::File(self.file()));
        };
        let length = self.state.lengths[from];
        self.gone(from);
        self.state.come(to, length);
        Operation { offset: to as u64, ..ordered(Kind::Rename, Object::File(from)) }
    }
}

/// Of things of which half is there on average: whether one comes, and which it is that comes or goes.
fn half(slots: &mut Slots, random: &mut Random) -> (bool, usize) {
    if slots.comes(0.5, random) {
        (true, slots.take(random).unwrap_or_default())
    } else {
        (false, slots.leave(random, |_| true).unwrap_or_default())
    }
}
