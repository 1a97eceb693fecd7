//! Calls that make, copy and close descriptors.

use std::sync::LazyLock;

use etude_calls::{Kind, Set};
use etude_trace::Event;

use super::{Made, Performer, answer, same, timed};
use crate::clock::now_ns;

/// What stands behind a number until it gets its meaning: no file, whose closing would give back the locks of a process.
static NO_FILE: LazyLock<i32> = LazyLock::new(|| {
    // SAFETY: a plain call.
    unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }
});

impl Performer {
    pub(super) fn descriptor(&mut self, event: &Event, number: u16, arguments: [u64; 6]) -> Made {
        let mut made = timed(number, arguments, |result| same(event, result));
        if let Made::Done { result, .. } = made
            && self.wishes.direct
            && result == -i64::from(libc::EINVAL)
            && let Some(flags) =
                event.call.row().arguments.iter().position(|kind| *kind == Kind::Flags(Set::Open))
        {
            let mut arguments = arguments;
            arguments[flags] &= !(libc::O_DIRECT as u64);
            self.undirect += 1;
            made = timed(number, arguments, |result| same(event, result));
        }
        if let Made::Done { result, .. } = made
            && result >= 0
        {
            self.opened(event.result, result as i32);
            if event.call.row().arguments.first() == Some(&Kind::Fd) {
                self.process.table.copies(event.result, event.arguments[0] as i64);
            }
        }
        made
    }

    /// A live descriptor stands for a recorded one; one that did before is closed, as are those that nobody recorded.
    pub(super) fn opened(&self, recorded: i64, live: i32) {
        self.process.table.keep(recorded);
        let before = if recorded >= 0 { self.process.table.set(recorded, live) } else { Some(live) };
        let kept = recorded < 0 || self.process.table.get(recorded) == Some(live);
        for unused in before.into_iter().chain((!kept).then_some(live)) {
            // SAFETY: one that this replay has opened.
            unsafe { libc::close(unused) };
        }
    }

    pub(super) fn close(&mut self, event: &Event) -> Made {
        let recorded = event.arguments[0] as i64;
        let durable_since = self.keep(recorded);
        let Some(live) = self.process.table.take(recorded) else { return Made::Skipped };
        let begun = now_ns();
        // SAFETY: one that this replay has opened.
        let result = unsafe { libc::close(live) };
        let ended = now_ns();
        let result = answer(result.into());
        Made::Done { result, begun: durable_since.unwrap_or(begun), ended, same: same(event, result) }
    }

    /// Makes durable what was written; when that began, if there was something.
    fn keep(&self, recorded: i64) -> Option<i64> {
        if !self.wishes.fsync {
            return None;
        }
        let begun = now_ns();
        self.process.table.keep(recorded).then_some(begun)
    }

    /// Only those that the original had.
    pub(super) fn close_range(&mut self, event: &Event) -> Made {
        const CLOSE_ON_EXEC: u64 = 4;
        if event.arguments[2] & CLOSE_ON_EXEC != 0 || event.result != 0 {
            return Made::Skipped;
        }
        let range = event.arguments[0] as i64..=event.arguments[1] as i64;
        let open: Vec<i64> =
            self.process.table.all().map(|(recorded, _)| recorded).filter(|fd| range.contains(fd)).collect();
        let begun = now_ns();
        open.into_iter().for_each(|recorded| self.process.table.close(recorded));
        Made::Done { result: 0, begun, ended: now_ns(), same: true }
    }

    /// The second descriptor gets its recorded number where that is free, else any.
    pub(super) fn duplicate(&mut self, event: &Event, number: u16) -> Made {
        let [from, to, flags, ..] = event.arguments;
        let Some(live) = self.process.table.get(from as i64) else { return Made::Skipped };
        if from == to {
            return timed(number, [live as u64, live as u64, flags, 0, 0, 0], |result| same(event, result));
        }
        let target = match self.process.table.get(to as i64) {
            Some(target) => target,
            None => {
                // SAFETY: a new descriptor, which the call replaces at once.
                let target = unsafe { libc::fcntl(*NO_FILE, libc::F_DUPFD, (to as i32).max(3)) };
                if target < 0 {
                    return Made::Skipped;
                }
                self.process.table.set(to as i64, target);
                target
            }
        };
        let durable_since = self.keep(to as i64);
        self.process.table.copies(to as i64, from as i64);
        let made = timed(number, [live as u64, target as u64, flags, 0, 0, 0], |result| same(event, result));
        match (made, durable_since) {
            (Made::Done { result, ended, same, .. }, Some(begun)) => {
                Made::Done { result, begun, ended, same }
            }
            (made, _) => made,
        }
    }

    /// `fcntl` that makes another descriptor.
    pub(super) fn copy(&mut self, event: &Event, number: u16) -> Made {
        let Some(live) = self.process.table.get(event.arguments[0] as i64) else { return Made::Skipped };
        self.descriptor(event, number, [live as u64, event.arguments[1], 3, 0, 0, 0])
    }

    /// `creat` with O_DIRECT: by the call that it stands for.
    pub(super) fn create(&mut self, event: &Event) -> Made {
        const CREATE: u64 = (libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) as u64;
        let (Some(path), Some(mode)) = (self.argument(event, 0), self.argument(event, 1)) else {
            return Made::Skipped;
        };
        let here = i64::from(libc::AT_FDCWD) as u64;
        let made = |flags: u64| {
            timed(libc::SYS_openat as u16, [here, path, flags, mode, 0, 0], |result| same(event, result))
        };
        let mut first = made(CREATE | libc::O_DIRECT as u64);
        if matches!(first, Made::Done { result, .. } if result == -i64::from(libc::EINVAL)) {
            self.undirect += 1;
            first = made(CREATE);
        }
        if let Made::Done { result, .. } = first
            && result >= 0
        {
            self.opened(event.result, result as i32);
        }
        first
    }

    /// Both ends of a pipe, or of a pair of sockets.
    pub(super) fn pair(&mut self, event: &Event, number: u16) -> Made {
        let mut pair = [0_i32; 2];
        let place = event.call.row().arguments.iter().position(|kind| *kind == Kind::Pair);
        let Some(place) = place else { return Made::Skipped };
        let mut arguments = event.arguments;
        arguments[place] = pair.as_mut_ptr() as u64;
        let made = timed(number, arguments, |result| same(event, result));
        if let Made::Done { result: 0, .. } = made {
            let recorded = event.arguments[place];
            for (recorded, live) in [recorded as i32, (recorded >> 32) as i32].into_iter().zip(pair) {
                self.opened(recorded.into(), live);
                self.process.table.pipes(recorded.into());
            }
        }
        made
    }

    /// Closes what is to be closed when a program becomes another one.
    pub fn exec(&self) {
        let table = &self.process.table;
        let closing: Vec<i64> = table
            .all()
            // SAFETY: flags of a descriptor of this replay.
            .filter(|(_, live)| unsafe { libc::fcntl(*live, libc::F_GETFD) } & libc::FD_CLOEXEC != 0)
            .map(|(recorded, _)| recorded)
            .collect();
        closing.into_iter().for_each(|recorded| table.close(recorded));
        self.process.maps.lock().expect("no thread panics").clear();
    }
}
