//! Whether a call is replayed, as what, and what follows from it for descriptors and files.

use std::rc::Rc;
use std::sync::Arc;

use etude_calls::{Kind as Argument, Outcome};
use etude_fsmodel::flags::{AT_FDCWD, O_ACCMODE, O_CREAT, O_DIRECTORY, O_EXCL, O_TRUNC, is_nameless};
use etude_fsmodel::{NameChange, appends, follows, is_link_target, name_change, open_flags};
use etude_trace::{Event, Text};
use smallvec::SmallVec;

use crate::from_trace::Walk;
use crate::from_trace::rules::{self, Itself};
use crate::from_trace::tables::{Behind, Opening, done};
use crate::from_trace::tree::{Kind, Origin, Path, parent};
use crate::model::Called;

const ANONYMOUS: u64 = 0x20;
const BEFORE: &str = "descriptor that is not known, or was there before";

/// The most bytes of a path. One that begins elsewhere than at the root can be longer, but not in a script.
pub(crate) const LONGEST: usize = 4095;
const TOO_LONG: &str = "path of more than 4095 bytes";
const REMOVED: &str = "path in a directory that was removed";

/// A path of a call.
pub(crate) struct Named {
    argument: usize,
    /// As it is called, links in its directories followed.
    shown: Path,
    /// With the last link followed as well, where the call does.
    meant: Path,
}

type Names = SmallVec<[Named; 2]>;

impl Walk<'_> {
    /// The call as it is to be made, or why it is not.
    pub(crate) fn take(&mut self, process: u32, event: &Event) -> Result<Called, &'static str> {
        let by_fcntl = rules::by_fcntl(event);
        if by_fcntl.is_some() {
            self.report.replaces("a flag of a descriptor that ioctl sets, by fcntl");
        }
        let event = by_fcntl.as_ref().unwrap_or(event);
        let why = match self.decide(process, event) {
            Ok(called) => return self.in_parts(called),
            Err(why) => why,
        };
        self.passes_by(process, event);
        let over = self.covers(process, event);
        let gives = event.call.row().outcome == Outcome::Descriptor || is_pair(event);
        let behind = match event.call.name() {
            "eventfd2" => self.events.begin(),
            _ => Behind::Dropped(why),
        };
        let opened = gives.then(|| Rc::new(Opening::new(behind, None, None)));
        self.tables.apply(process, event, &opened.map_or(Vec::new(), |opened| vec![opened.clone(), opened]));
        match over {
            Some(descriptor) => {
                self.report
                    .replaces("a copy of a descriptor that is not replayed, by the close of what was there");
                let call = etude_calls::Call::named("close").expect("it is in the table");
                let arguments = [descriptor as i64 as u64, 0, 0, 0, 0, 0];
                let (texts, result, duration_ns) = (SmallVec::new(), 0, Some(event.duration_ns));
                Ok(Called { call, arguments, texts, result, duration_ns })
            }
            None => Err(why),
        }
    }

    /// What is more than a replay moves at once becomes two calls.
    fn in_parts(&mut self, called: Called) -> Result<Called, &'static str> {
        let (first, rest) = called.in_parts().ok_or("transfer of more than 1 GiB")?;
        if first.is_some() {
            self.report.replaces("a transfer of more than 1 GiB, by two");
        }
        self.placeholders.extend(first);
        Ok(rest)
    }

    /// A descriptor that is replayed, and that this call, which is not, closes.
    fn covers(&mut self, process: u32, event: &Event) -> Option<i32> {
        let (old, new) = (event.arguments[0] as i32, event.result as i32);
        let copies = matches!(event.call.name(), "dup2" | "dup3") && new >= 0 && old != new;
        let kept = |opening: &Rc<Opening>| opening.behind.dropped().is_none();
        (copies && self.tables.get(process, new).is_some_and(kept)).then_some(new)
    }

    fn decide(&mut self, process: u32, event: &Event) -> Result<Called, &'static str> {
        let by_descriptor = self.names_nameless(process, event);
        let event = by_descriptor.as_ref().unwrap_or(event);
        let name = event.call.name();
        if rules::impossible(event).is_none()
            && let Some(made) = self.socket(process, event)
        {
            return made;
        }
        if let Some(why) =
            rules::never(name).or_else(|| rules::refused(event)).or_else(|| rules::impossible(event))
        {
            return Err(why);
        }
        if is_pair(event) {
            return self.pair(process, event);
        }
        if name == "mmap"
            && event.arguments[3] & ANONYMOUS == 0
            && let Err(why) = self.kept(process, event.arguments[4] as i32)
        {
            self.unmapped.insert((process, event.result as u64));
            return Err(why);
        }
        if name == "munmap" && self.unmapped.remove(&(process, event.arguments[0])) {
            return Err("mapping of what is not replayed");
        }
        if name == "close_range"
            && !self.tables.any_kept(process, event.arguments[0] as u32, event.arguments[1] as u32)
        {
            return Err("no descriptor that is replayed");
        }
        if matches!(name, "sendfile" | "copy_file_range" | "splice") {
            return self.between(process, event);
        }
        let names = self.paths(process, event)?;
        if names.iter().any(|named| named.shown.len() > LONGEST) {
            if name == "chdir" && event.result >= 0 {
                self.tables.change_directory(process, names[0].meant.clone());
            }
            return Err(TOO_LONG);
        }
        self.check_descriptors(process, event, &names)?;
        self.waited_for(process, event)?;
        let opened = self.effects(process, event, &names)?;
        self.data(process, event);
        if is_stored_through(event) {
            self.report.maps(event);
        }
        self.tables.apply(process, event, opened.as_slice());
        if matches!(name, "chdir") && event.result >= 0 {
            self.tables.change_directory(process, names[0].meant.clone());
        }
        Ok(self.as_much_as_was(process, called(event, &names)))
    }

    /// The kernel gives what it makes up in pieces of its own choice: a replay, which reads a file there, asks for these.
    fn as_much_as_was(&self, process: u32, mut made: Called) -> Called {
        let [descriptor, _, size, ..] = &mut made.arguments;
        let found = u64::try_from(made.result).unwrap_or(0);
        if matches!(made.call.name(), "read" | "pread64") && (1..*size).contains(&found) {
            let opening = self.tables.get(process, *descriptor as i32);
            if opening.is_some_and(|opening| opening.path.borrow().as_deref().is_some_and(rules::is_made_up))
            {
                *size = found;
            }
        }
        made
    }

    /// A file without a name (O_TMPFILE) gets one by way of its descriptor in `/proc`, which a replay does not have: the
    /// same call on the descriptor itself.
    fn names_nameless(&self, process: u32, event: &Event) -> Option<Event> {
        const SYMLINK_FOLLOW: u64 = 0x400;
        const EMPTY_PATH: u64 = 0x1000;
        if event.call.name() != "linkat" || event.arguments[4] & SYMLINK_FOLLOW == 0 {
            return None;
        }
        let (Itself::Descriptor(number), b"") = rules::through_itself(event.text(1)?)? else { return None };
        let node = self.kept(process, number).ok()?.node?;
        if !self.tree.files[node].first.is_empty() {
            return None;
        }
        let mut event = event.clone();
        (event.arguments[0], event.arguments[4]) = (number as u64, EMPTY_PATH);
        event.texts.retain(|text| text.argument != 1);
        Some(event)
    }

    fn pair(&mut self, process: u32, event: &Event) -> Result<Called, &'static str> {
        let ends = self.begins_pipe(event)?;
        if event.result >= 0 && done(event).pair().is_none() {
            return Err("pipe whose descriptors are not recorded");
        }
        self.tables.apply(process, event, &ends.map(|behind| Rc::new(Opening::new(behind, None, None))));
        Ok(called(event, &[]))
    }

    /// What stands behind a descriptor, if it is replayed.
    pub(crate) fn kept(&self, process: u32, descriptor: i32) -> Result<Rc<Opening>, &'static str> {
        match self.tables.get(process, descriptor) {
            None => Err(BEFORE),
            Some(opening) => opening.behind.dropped().map_or_else(|| Ok(opening.clone()), Err),
        }
    }

    fn check_descriptors(&self, process: u32, event: &Event, names: &[Named]) -> Result<(), &'static str> {
        let (name, words) = (event.call.name(), &event.arguments);
        for (index, kind) in event.call.row().arguments.iter().enumerate() {
            let asked = match kind {
                Argument::Fd => match (name, index) {
                    ("dup2" | "dup3", 1) => false,
                    ("mmap", _) => words[3] & ANONYMOUS == 0,
                    _ => true,
                },
                // A path that begins at a directory is written in full.
                Argument::DirFd => {
                    names.iter().all(|named| named.argument != index + 1) && words[index] as i32 != AT_FDCWD
                }
                _ => false,
            };
            if asked {
                self.kept(process, words[index] as i32)?;
            }
        }
        Ok(())
    }

    fn paths(&mut self, process: u32, event: &Event) -> Result<Names, &'static str> {
        let (name, mut names) = (event.call.name(), Names::new());
        let is_path =
            |text: &&Text| event.call.kind(&event.arguments, text.argument.into()) == Argument::Path;
        let most = event.texts.iter().filter(is_path).map(|text| text.bytes.len()).max().unwrap_or(0);
        if most >= self.cut_at {
            return Err("path of which only the beginning is recorded");
        }
        if most > LONGEST {
            return Err(TOO_LONG);
        }
        let mut directory = AT_FDCWD;
        for (index, kind) in event.call.row().arguments.iter().enumerate() {
            match kind {
                Argument::DirFd => directory = event.arguments[index] as i32,
                // What stands in a link is looked at when it is known where that is.
                Argument::Path if is_link_target(event.call, index) => {}
                Argument::Path => match event.text(index).filter(|text| !text.is_empty()) {
                    Some(text) => {
                        let follows = follows(&done(event), index);
                        let (base, text) = self.begins(process, directory, text, follows)?;
                        let shown = self.tree.resolve(&base, &text, false);
                        let relative = !text.starts_with(b"/") && is_within(&shown, &base);
                        if relative && self.tree.is_removed(&base) {
                            return Err(REMOVED);
                        }
                        let meant = match follows {
                            true => self.tree.resolve(&base, &text, true),
                            false => shown.clone(),
                        };
                        if rules::is_device(&meant) {
                            return Err("device");
                        }
                        names.push(Named { argument: index, shown, meant });
                    }
                    None if rules::is_about_its_descriptor(event) => {
                        if directory == AT_FDCWD {
                            let cwd = self.tables.cwd(process);
                            names.push(Named { argument: index, shown: cwd.clone(), meant: cwd });
                        }
                    }
                    None => return Err("path that is not recorded, or empty"),
                },
                _ => {}
            }
        }
        if name.starts_with("symlink") {
            let text = event.text(0).ok_or("path that is not recorded, or empty")?;
            let link = &names[0].shown;
            let base: Path = parent(link).unwrap_or(b"/").into();
            let target = self.tree.resolve(&base, text, false);
            names.insert(0, Named { argument: 0, shown: target.clone(), meant: target });
        }
        Ok(names)
    }

    /// Where a path begins, and what of it follows. One that goes through the program itself in `/proc` begins at what its
    /// descriptor stands for, or at its directory: a replay is another process.
    pub(crate) fn begins(
        &mut self,
        process: u32,
        directory: i32,
        text: &Path,
        follows: bool,
    ) -> Result<(Path, Path), &'static str> {
        const UNKNOWN: &str = "path in a directory that is not known";
        let through = rules::through_itself(text).filter(|(_, rest)| follows || !rest.is_empty());
        let Some((part, rest)) = through else {
            return Ok((self.tables.base(process, directory).ok_or(UNKNOWN)?, text.clone()));
        };
        let base = match part {
            Itself::Root => b"/"[..].into(),
            Itself::Directory => self.tables.cwd(process),
            Itself::Descriptor(number) => {
                let opening = self.kept(process, number)?;
                if opening.node.is_some_and(|node| self.tree.files[node].first.is_empty()) {
                    return Err("name of a file that has none");
                }
                opening.path.borrow().clone().ok_or(UNKNOWN)?
            }
        };
        Ok((base, if rest.is_empty() { b"."[..].into() } else { rest.into() }))
    }

    /// What a call tells of the files that it names, or does to them; what it opens.
    fn effects(
        &mut self,
        process: u32,
        event: &Event,
        names: &[Named],
    ) -> Result<Option<Rc<Opening>>, &'static str> {
        let Some(named) = names.last() else { return Ok(None) };
        let (name, first, done) = (event.call.name(), &names[0], done(event));
        for each in names.iter().filter(|each| each.shown != each.meant) {
            self.tree.exists(&each.shown, Kind::Unknown);
        }
        if event.result < 0 {
            if event.result == -2 && open_flags(&done).is_none_or(|flags| flags & O_CREAT == 0) {
                let at = if name.starts_with("symlink") { named } else { first };
                self.tree.missing(&at.meant);
            } else if rules::tells_of_a_file(name, event.result.saturating_neg()) {
                let at = if event.result == -18 { first } else { named };
                self.tree.exists(&at.meant, Kind::Unknown);
            }
            return Ok(None);
        }
        let (change, opens) = (name_change(&done), open_flags(&done));
        let makes = opens.is_some()
            || matches!(
                change,
                NameChange::MakesDirectory
                    | NameChange::MakesNode { .. }
                    | NameChange::MakesLink
                    | NameChange::LinksDescriptor(_)
            );
        if !makes && self.bound > 0 && self.tree.is_free(&first.meant) {
            self.bound -= 1;
            self.places_socket(&first.meant);
        }
        if let Some(flags) = opens {
            return self.opens(flags, named).map(Some);
        }
        match change {
            NameChange::MakesDirectory => {
                self.tree.creates(&named.meant, Kind::Directory);
            }
            NameChange::MakesNode { mode } => {
                let regular = matches!(mode & 0o170000, 0 | 0o100000);
                self.tree.creates(&named.meant, if regular { Kind::File } else { Kind::Special });
                return if regular { Ok(None) } else { Err("device or named pipe") };
            }
            NameChange::MakesLink => {
                self.tree.creates(&named.meant, Kind::Link(event.text(0).cloned().unwrap_or_default()));
            }
            NameChange::Removes { directory } => {
                self.tree.exists(&named.meant, if directory { Kind::Directory } else { Kind::Unknown });
                self.tree.removes(&named.meant);
            }
            NameChange::Renames { swaps } => {
                if swaps {
                    self.tree.exists(&named.meant, Kind::Unknown);
                }
                // Two names of one file: nothing happens.
                if swaps || !self.tree.is_same(&first.meant, &named.meant) {
                    self.tree.renames(&first.meant, &named.meant, swaps);
                    self.tables.renames(&first.meant, &named.meant, swaps);
                }
            }
            NameChange::LinksDescriptor(descriptor) => {
                let opening = self.kept(process, descriptor)?;
                if let Some(node) = opening.node {
                    self.tree.names_too(node, &named.meant);
                    opening.path.replace(Some(named.meant.clone()));
                }
            }
            NameChange::Links => self.tree.links(&first.meant, &named.meant),
            NameChange::Nothing => {
                let kind = match name {
                    "chdir" => Kind::Directory,
                    // Where it leads is known by the recorder's list alone.
                    "readlink" | "readlinkat" => self.tree.found_link(&named.meant),
                    _ => Kind::Unknown,
                };
                let node = self.tree.exists(&named.meant, kind);
                if name == "truncate" {
                    self.tree.files[node].cut();
                }
            }
        }
        Ok(None)
    }

    /// A socket was bound to this name: calls on it find one that nobody serves.
    pub(crate) fn places_socket(&mut self, path: &Path) {
        const S_IFSOCK: u64 = 0o140000;
        self.tree.creates(path, Kind::Special);
        self.report.replaces("the name of a bound socket, by a socket that nobody serves");
        let call = etude_calls::Call::named("mknodat").expect("it is in the table");
        let arguments = [i64::from(AT_FDCWD) as u64, 0, S_IFSOCK | 0o755, 0, 0, 0];
        let texts = SmallVec::from_iter([Text { argument: 1, bytes: path.clone() }]);
        self.placeholders.push(Called { call, arguments, texts, result: 0, duration_ns: Some(0) });
    }

    fn opens(&mut self, flags: u64, named: &Named) -> Result<Rc<Opening>, &'static str> {
        let node = if is_nameless(flags) {
            self.tree.exists(&named.meant, Kind::Directory);
            self.tree.nameless()
        } else if flags & O_CREAT == 0 {
            let written = flags & O_ACCMODE != 0;
            let kind = match flags & O_DIRECTORY != 0 {
                true => Kind::Directory,
                false if written => Kind::File,
                false => Kind::Unknown,
            };
            self.tree.exists(&named.meant, kind)
        } else if flags & O_EXCL != 0 {
            self.tree.creates(&named.meant, Kind::File)
        } else {
            self.tree.opens(&named.meant, flags & O_TRUNC != 0)
        };
        let file = &mut self.tree.files[node];
        if file.kind == Kind::Special {
            return Err("device or named pipe");
        }
        if flags & O_TRUNC != 0 && file.origin != Origin::Created {
            file.cut();
        }
        let opening = Opening::new(Behind::File, Some(named.meant.clone()), Some(node));
        opening.appends.set(appends(flags));
        Ok(Rc::new(opening))
    }
}

/// The call with what is to be kept of its arguments. Paths are still those of the trace: they get their names when all
/// are known.
pub(crate) fn called(event: &Event, names: &[Named]) -> Called {
    let mut arguments = event.arguments;
    let mut texts: SmallVec<[Text; 1]> = SmallVec::new();
    for index in 0..event.call.row().arguments.len() {
        match event.call.kind(&event.arguments, index) {
            Argument::Path => arguments[index] = 0,
            Argument::DirFd if names.iter().any(|named| named.argument == index + 1) => {
                arguments[index] = i64::from(AT_FDCWD) as u64;
            }
            Argument::Name | Argument::Pair | Argument::Range => {
                arguments[index] = 0;
                let text =
                    event.text(index).map(|bytes| Text { argument: index as u8, bytes: bytes.clone() });
                texts.extend(text);
            }
            Argument::Buffer | Argument::Iovec | Argument::Pointer | Argument::Socket => arguments[index] = 0,
            _ => {}
        }
    }
    texts.extend(
        names.iter().map(|named| Text { argument: named.argument as u8, bytes: Arc::clone(&named.shown) }),
    );
    texts.sort_by_key(|text| text.argument);
    let (call, result, duration_ns) = (event.call, event.result, Some(event.duration_ns));
    Called { call, arguments, texts, result, duration_ns }
}

/// Whether a path is that of a directory, or below it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Whether it maps a file so that stores change it.
fn is_stored_through(event: &Event) -> bool {
    const PROT_WRITE: u64 = 2;
    const MAP_SHARED: u64 = 1;
    let [_, _, protection, flags, ..] = event.arguments;
    event.call.name() == "mmap"
        && event.result >= 0
        && flags & ANONYMOUS == 0
        && flags & MAP_SHARED != 0
        && protection & PROT_WRITE != 0
}

fn is_pair(event: &Event) -> bool {
    event.call.row().arguments.contains(&Argument::Pair)
}
