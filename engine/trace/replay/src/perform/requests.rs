//! Requests that are handed over now and done later (`crate::requests`).

use std::sync::Arc;

use etude_calls::{Interface, Kind, Role};
use etude_trace::Event;

use super::{Made, Performer};
use crate::clock::now_ns;
use crate::requests::{Asked, Deed, Flags, Queue, Ready};

impl Performer {
    pub(super) fn asynchronous(&mut self, event: &Event, role: Role) -> Made {
        match role {
            Role::Request { interface, tag } => {
                self.request(event, interface, tag).map_or(Made::Skipped, |()| Made::Queued)
            }
            Role::Handover { interface } => self.hand_over(event, interface),
            Role::Completion { interface } => self.completion(event, interface),
        }
    }

    fn request(&mut self, event: &Event, interface: Interface, tag: usize) -> Option<()> {
        let words = &event.arguments;
        let deed = match event.call.name() {
            "sqe_read" | "iocb_read" => Deed::Read,
            "sqe_write" | "iocb_write" => Deed::Write,
            "sqe_fsync" | "iocb_fsync" => Deed::Fsync,
            _ => Deed::Fdatasync,
        };
        // What is none may keep the kernel waiting for ever.
        let fd = self.process.table.file(words[0] as i64)?;
        let moves = event.call.row().arguments.get(2) == Some(&Kind::Size);
        let (length, offset) = if moves { (words[2], words[3] as i64) } else { (0, 0) };
        let length = u32::try_from(length).ok().filter(|length| *length <= i32::MAX as u32)?;
        let queue = self.queue(interface, words[1])?;
        let at = match deed {
            Deed::Read => queue.room(length as usize)?,
            Deed::Write => self.piece(length as usize)?,
            Deed::Fsync | Deed::Fdatasync => 0,
        };
        if deed == Deed::Write && self.wishes.fsync {
            self.process.table.wrote(words[0] as i64);
        }
        let asked = Asked { call: event.call, place: self.place, expected: event.result, number: words[tag] };
        let (id, flags) = (0, Flags(words[tag + 1]));
        queue.ask(asked, Ready { id, deed, fd, at, length, offset: offset.max(-1), flags });
        Some(())
    }

    /// The queue of a process, made when it is first used.
    fn queue(&self, interface: Interface, number: u64) -> Option<Arc<Queue>> {
        self.process.queues.get(interface, number, self.into.length, &self.data)
    }

    fn hand_over(&mut self, event: &Event, interface: Interface) -> Made {
        let words = &event.arguments;
        let Some(queue) = self.process.queues.known(interface, words[0]) else { return Made::Skipped };
        const GETEVENTS: u64 = 1;
        // With a time after which it waits no longer, which is not recorded.
        const LIMITED: u64 = 8;
        let many = match event.call.name() {
            "io_uring_enter" if words[3] & (GETEVENTS | LIMITED) == GETEVENTS => words[2],
            "io_getevents" | "io_pgetevents" => (words[1] as i64).clamp(0, event.result.max(0)) as u64,
            _ => 0,
        };
        let begun = now_ns();
        queue.hand_over(many as usize);
        Made::Done { result: event.result, begun, ended: now_ns(), same: true }
    }

    fn completion(&mut self, event: &Event, interface: Interface) -> Made {
        let [number, tag, ..] = event.arguments;
        let Some(queue) = self.process.queues.known(interface, number) else { return Made::Skipped };
        let begun = now_ns();
        match queue.take(tag) {
            Some(request) => Made::Taken { begun, ended: now_ns(), request },
            None => Made::Skipped,
        }
    }
}
