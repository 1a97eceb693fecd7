//! Where calls move data in files, and what that tells of how long they are.

use std::rc::Rc;

use etude_calls::Call;
use etude_fsmodel::{SizeChange, ends, size_change};
use etude_trace::{Event, Text};

use crate::from_trace::Walk;
use crate::from_trace::calls::called;
use crate::from_trace::tables::{Behind, Opening, done};
use crate::from_trace::tree::{File, Kind};
use crate::model::Called;

const SEEK_END: u64 = 2;

impl Walk<'_> {
    /// What a call tells that moves data, or asks for a place.
    pub(crate) fn data(&mut self, process: u32, event: &Event) {
        let descriptor = event.arguments[if event.call.name() == "mmap" { 4 } else { 0 }] as i32;
        if let Some(opening) = self.tables.get(process, descriptor).cloned() {
            self.data_of(&opening, event);
        }
    }

    /// The same of what its descriptor stood for when it was made.
    pub(crate) fn data_of(&mut self, opening: &Rc<Opening>, event: &Event) {
        let (name, words) = (event.call.name(), &event.arguments);
        if let Behind::Pipe(Some(end)) = opening.behind {
            self.pipes.call(end, self.thread, event);
        }
        if event.result == -21 {
            self.of(opening, |file| file.kind = Kind::Directory);
        }
        let Ok(result) = u64::try_from(event.result) else { return };
        let done = done(event);
        match size_change(&done) {
            SizeChange::Nothing | SizeChange::Allocates => {}
            SizeChange::Reaches(end) => self.of(opening, |file| {
                // A file that was shorter is longer now.
                file.writes(end, 0);
                file.changed = true;
            }),
            SizeChange::Sets(_) | SizeChange::Shrinks(_) | SizeChange::Grows(_) => {
                self.of(opening, File::cut)
            }
        }
        let vectored = matches!(name, "readv" | "preadv" | "preadv2");
        let asked = (!vectored).then_some(words[2]);
        if let [Some(end), None] = ends(&done) {
            let at = end.at.unwrap_or(opening.position.get());
            if end.writes {
                self.writes(opening, end.at, result, end.appends);
            } else {
                self.of(opening, |file| file.reads(at, asked, result));
                if end.at.is_none() {
                    opening.position.set(at.saturating_add(result));
                }
            }
        }
        match name {
            "lseek" => {
                if words[2] == SEEK_END {
                    let end = result.wrapping_sub(words[1]);
                    self.of(opening, |file| file.ends(end));
                }
                opening.position.set(result);
            }
            "mmap" => {
                let end = words[5].saturating_add(words[1]);
                self.of(opening, |file| file.mapped = file.mapped.max(end));
            }
            "getdents" | "getdents64" => self.of(opening, |file| {
                (file.kind, file.listed) = (Kind::Directory, true);
            }),
            _ => {}
        }
    }

    /// Bytes go to a place, to the position, or to the end.
    fn writes(&mut self, opening: &Rc<Opening>, at: Option<u64>, bytes: u64, to_end: bool) {
        let here = at.unwrap_or(opening.position.get());
        let mut end = here.saturating_add(bytes);
        self.of(opening, |file| {
            if bytes > 0 && (to_end || opening.appends.get()) {
                end = file.appends(bytes);
            } else {
                file.writes(here, bytes);
            }
        });
        if at.is_none() {
            opening.position.set(end);
        }
    }

    fn of(&mut self, opening: &Rc<Opening>, told: impl FnOnce(&mut File)) {
        if let Some(node) = opening.node {
            told(&mut self.tree.files[node]);
        }
    }

    /// A call between two descriptors. If one of them is not replayed, the other's half is.
    pub(crate) fn between(&mut self, process: u32, event: &Event) -> Result<Called, &'static str> {
        self.waited_for(process, event)?;
        let words = &event.arguments;
        // Source, its offset, destination, its offset, how many.
        let [source, from, destination, to, size] = match event.call.name() {
            "sendfile" => [1, 2, 0, usize::MAX, 3],
            _ => [0, 1, 2, 3, 4],
        };
        let [input, output] = [source, destination].map(|at| self.kept(process, words[at] as i32));
        // What failed may have failed for the side that is missing: the other's half alone would move data.
        if let (Err(why), Err(_)) | (Err(why), Ok(_)) | (Ok(_), Err(why)) = (&input, &output)
            && (event.result < 0 || input.is_err() && output.is_err())
        {
            return Err(why);
        }
        for opening in [&input, &output].into_iter().flatten() {
            if let Behind::Pipe(Some(end)) = opening.behind {
                self.pipes.call(end, self.thread, event);
            }
        }
        let offset = |at: usize| match event.text(at) {
            Some(text) if text.len() == 8 => {
                Some(u64::from_le_bytes(text[..].try_into().expect("eight bytes")))
            }
            _ => None,
        };
        let mut made = called(event, &[]);
        made.texts.clear();
        let mut place = |opening: &Rc<Opening>, at: usize| {
            if at > 5 || words[at] == 0 && event.text(at).is_none() {
                return None;
            }
            let known = offset(at);
            let place = known.unwrap_or_else(|| opening.spot.get());
            if known.is_none() {
                self.report.replaces("an offset that is not recorded, by the end of the transfer before");
            }
            made.arguments[at] = 0;
            made.texts.push(Text { argument: at as u8, bytes: place.to_le_bytes()[..].into() });
            Some(place)
        };
        let places = (
            input.as_ref().ok().and_then(|opening| place(opening, from)),
            output.as_ref().ok().and_then(|opening| place(opening, to)),
        );
        made.texts.sort_by_key(|text| text.argument);
        let bytes = u64::try_from(event.result).unwrap_or(0);
        if let Ok(opening) = &input {
            let at = places.0.unwrap_or_else(|| opening.position.get());
            if event.result >= 0 {
                let asked = (event.call.name() != "splice").then_some(words[size]);
                self.of(opening, |file| file.reads(at, asked, bytes));
            }
            match places.0 {
                Some(_) => opening.spot.set(at + bytes),
                None => opening.position.set(at + bytes),
            }
        }
        if let Ok(opening) = &output {
            match places.1 {
                Some(at) => {
                    self.of(opening, |file| file.writes(at, bytes));
                    opening.spot.set(at + bytes);
                }
                None => self.writes(opening, None, bytes, false),
            }
        }
        match (input, output) {
            (Ok(_), Ok(_)) => Ok(made),
            (Ok(_), _) => Ok(self.half(event, ["read", "pread64"], words[source], places.0, words[size])),
            _ => Ok(self.half(event, ["write", "pwrite64"], words[destination], places.1, words[size])),
        }
    }

    fn half(
        &mut self,
        event: &Event,
        names: [&str; 2],
        descriptor: u64,
        place: Option<u64>,
        size: u64,
    ) -> Called {
        self.report.replaces("a transfer from or to what is not replayed, by a read or write of the other");
        let call = Call::named(names[usize::from(place.is_some())]).expect("it is in the table");
        let size = if names[0] == "write" { u64::try_from(event.result).unwrap_or(size) } else { size };
        let arguments = [descriptor, 0, size, place.unwrap_or(0), 0, 0];
        let (texts, duration_ns) = (Default::default(), Some(event.duration_ns));
        Called { call, arguments, texts, result: event.result, duration_ns }
    }
}
