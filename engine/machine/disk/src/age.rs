//! A file system aged: the steps of a history, done.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use etude_clock::{monotonic_ns, seconds};
use serde_json::{Map, Value, json};

use crate::content::Content;
use crate::ending::ended;
use crate::grow::{Taken, allocate, allocate_most, is_full, is_unknown};
use crate::history::{History, Plan, Step};
use crate::manifest::{FORMAT, Manifest, is_ours};
use crate::space::{Space, sync};
use crate::{Failed, extents, fragments, free, machine};

/// Where the files are, below the directory that is named.
pub const PLACE: &str = "etude-aged";
const BALLAST: &str = "ballast";
const PER_DIRECTORY: u64 = 100;
const MOST_MENDED: u32 = 8;
/// At least, and at most; in between an eighth of what is free.
const PROBES: (u64, u64) = (8, 256);
const PROBE_BYTES: u64 = 1 << 20;
/// The level is mended by this part of the capacity at a time, so that a few blocks more or less do not decide who lives.
const STEPS: u64 = 100;
/// The last ebb goes this part of the capacity (one of so many) below the level. The ballast then takes that, and with it the
/// largest holes, which neighbours that were deleted together have left: XFS gives them to new files first.
const BELOW: u64 = 16;
/// So often in a row nothing could be written: somebody else has filled the file system.
const MOST_REFUSED: u32 = 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wish {
    pub seed: u64,
    pub to: f64,
    pub peak: f64,
    /// How often the capacity is written.
    pub times: f64,
    pub piece: u64,
    pub streams: u64,
    /// Only take the space.
    pub allocated: bool,
    /// What was made before is removed first.
    pub again: bool,
    pub time_ns: u64,
    /// Ends early at so many fragments a MiB of new files.
    pub fragments: Option<f64>,
}

/// What can be told of what is under way: written so far, and in all.
pub type Tell<'a> = &'a mut dyn FnMut(u64, u64);

/// What was done; the members of the manifest. `complete` says whether it came to its end.
///
/// # Errors
/// It cannot be done here, or the machine fails; the manifest then says that it is not complete.
pub fn age(directory: &Path, wish: &Wish, tell: Tell) -> Result<Map<String, Value>, Failed> {
    if wish.again && directory.join(PLACE).exists() {
        remove(directory)?;
    }
    let space = Space::of(directory)?;
    let plan = plan(wish, &space)?;
    let place = directory.join(PLACE);
    fs::create_dir(&place).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => (
            format!(
                "{}: was aged already; etude-engine age --remove {} first",
                place.display(),
                directory.display()
            ),
            5,
        ),
        _ => machine(place.display(), &error),
    })?;
    let manifest = Manifest::begin(&place, asked(wish, &plan, &space))?;
    let file = File::open(&place).map_err(|error| machine(place.display(), &error))?;
    let aging = Aging {
        content: Content::new(wish.seed),
        history: History::new(plan),
        taken: Taken::Fallocate,
        refused: 0,
        in_a_row: 0,
        ballast: 0,
        mended: 0,
        began_ns: monotonic_ns(),
        place,
        file,
        wish: *wish,
        plan,
        capacity: space.capacity(),
    };
    aging.run(manifest, tell)
}

/// Remove what `age` left in a directory.
///
/// # Errors
/// There is none, or not all of it could be removed.
pub fn remove(directory: &Path) -> Result<(), Failed> {
    let place = directory.join(PLACE);
    if !place.exists() {
        return Err((format!("{}: there is nothing to remove", place.display()), 2));
    }
    if !is_ours(&place) {
        return Err((format!("{}: has no manifest of age; remove it by hand", place.display()), 5));
    }
    fs::remove_dir_all(&place).map_err(|error| machine(place.display(), &error))
}

fn plan(wish: &Wish, space: &Space) -> Result<Plan, Failed> {
    let part = |share: f64| ((share * space.capacity() as f64) as u64).saturating_sub(space.used);
    let high = part(wish.peak);
    let ballast = space.mine().saturating_sub(high);
    let low = part(wish.to).saturating_sub(ballast);
    let least = (space.used + ballast) as f64 / space.capacity() as f64;
    if low == 0 || high <= low {
        let most = wish.peak * 100.0;
        let found = wish.to * 100.0;
        return Err((
            format!(
                "--to {found:.0}%: expected more than {:.1}% here, and less than --peak {most:.0}%; {:.1}% is in use",
                least * 100.0,
                space.level() * 100.0
            ),
            2,
        ));
    }
    let total = (wish.times * space.capacity() as f64) as u64;
    Ok(Plan { seed: wish.seed, high, low, total, piece: wish.piece, streams: wish.streams })
}

fn asked(wish: &Wish, plan: &Plan, space: &Space) -> Map<String, Value> {
    let members = json!({
        "format": FORMAT,
        "version": 1,
        "seed": wish.seed,
        "to": wish.to,
        "peak": wish.peak,
        "times": wish.times,
        "piece_bytes": wish.piece,
        "streams": wish.streams,
        "allocated": wish.allocated,
        "until_fragments": wish.fragments,
        "capacity_bytes": space.capacity(),
        "level_before": space.level(),
        "planned_bytes": plan.total,
    });
    members.as_object().cloned().unwrap_or_default()
}

struct Aging {
    place: PathBuf,
    /// The directory, open.
    file: File,
    wish: Wish,
    plan: Plan,
    /// Of the file system, before.
    capacity: u64,
    content: Content,
    history: History,
    taken: Taken,
    refused: u64,
    in_a_row: u32,
    ballast: u64,
    /// How often the level was looked at in the end.
    mended: u32,
    began_ns: u64,
}

impl Aging {
    fn run(mut self, mut manifest: Manifest, tell: Tell) -> Result<Map<String, Value>, Failed> {
        let outcome = self.steps(tell);
        let how = outcome.as_ref().map_or_else(|(line, _)| line.clone(), Clone::clone);
        manifest.set("complete", json!(how == "complete" || how == "fragments"));
        manifest.set("ended", json!(how));
        let described = self.describe(&mut manifest);
        let written = manifest.write();
        outcome?;
        described.and(written)?;
        Ok(manifest.members().clone())
    }

    /// How it ended: `complete`, `fragments`, `time`, `signal N`.
    fn steps(&mut self, tell: Tell) -> Result<String, Failed> {
        let (mut count, mut enough, mut ebbed) = (0u64, false, false);
        loop {
            let Some(step) = self.history.step() else {
                if self.mended < MOST_MENDED && self.mend()? {
                    continue;
                }
                break;
            };
            if let Some(signal) = ended() {
                return Ok(format!("signal {signal}"));
            }
            if monotonic_ns() - self.began_ns > self.wish.time_ns {
                return Ok("time".to_owned());
            }
            let ebbs = self.history.is_ebbing();
            if ebbed && !ebbs && self.is_enough()? {
                self.history.enough();
                enough = true;
            }
            ebbed = ebbs;
            self.perform(step)?;
            count += 1;
            if count.is_multiple_of(64) {
                tell(self.history.written(), self.plan.total);
            }
        }
        Ok(if enough { "fragments" } else { "complete" }.to_owned())
    }

    fn perform(&mut self, step: Step) -> Result<(), Failed> {
        match step {
            Step::Append { file, offset, bytes } => {
                let path = self.path(file);
                match self.append(&path, file, offset, bytes) {
                    Ok(()) => self.in_a_row = 0,
                    Err(error) if is_full(&error) => return self.turn(&path, file, offset, bytes),
                    Err(error) if ended().is_some() && error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(machine(path.display(), &error)),
                }
                Ok(())
            }
            Step::Delete { file } => {
                let path = self.path(file);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        Err(machine(path.display(), &error))
                    }
                    _ => Ok(()),
                }
            }
            Step::Brim => self.brim(),
        }
    }

    fn append(&mut self, path: &Path, file: u64, offset: u64, bytes: u64) -> io::Result<()> {
        if offset == 0 && file.is_multiple_of(PER_DIRECTORY) {
            fs::create_dir_all(path.parent().expect("it has one"))?;
        }
        let to = OpenOptions::new().write(true).create(offset == 0).truncate(false).open(path)?;
        if self.taken == Taken::Fallocate {
            match allocate(&to, offset, bytes) {
                Err(error) if is_unknown(&error) => self.taken = Taken::Sync,
                done => done?,
            }
        }
        if self.taken == Taken::Fallocate && self.wish.allocated {
            return Ok(());
        }
        self.content.write(&to, file, offset, bytes)?;
        if self.taken == Taken::Sync { to.sync_data() } else { Ok(()) }
    }

    /// The file system is full: the piece is taken back, and the flood turns.
    fn turn(&mut self, path: &Path, file: u64, offset: u64, bytes: u64) -> Result<(), Failed> {
        if let Ok(to) = OpenOptions::new().write(true).open(path) {
            to.set_len(offset).map_err(|error| machine(path.display(), &error))?;
        }
        self.history.full(file, bytes);
        self.refused += 1;
        self.in_a_row += 1;
        if self.in_a_row > MOST_REFUSED {
            return Err((
                format!(
                    "{}: stays full, whatever is deleted: does somebody else write there?",
                    self.place.display()
                ),
                5,
            ));
        }
        sync(&self.file).map_err(|error| machine(self.place.display(), &error)) // what is deleted becomes free
    }

    /// Take what is still free.
    fn brim(&mut self) -> Result<(), Failed> {
        let path = self.place.join(BALLAST);
        let wrong = |error: io::Error| machine(path.display(), &error);
        let to = File::create(&path).map_err(wrong)?;
        let most = Space::of(&self.place)?.mine();
        let taken = match self.taken {
            Taken::Fallocate => allocate_most(&to, 0, most).map_err(wrong)?,
            Taken::Sync => self.write_most(&to, most).map_err(wrong)?,
        };
        self.ballast = taken;
        self.settle()
    }

    /// How much could be taken decides how much has to live: file systems keep space for themselves, Btrfs much.
    fn settle(&mut self) -> Result<(), Failed> {
        let space = Space::settled(&self.place, &self.file)?;
        let too_much = space.used.saturating_sub((self.wish.to * self.capacity as f64) as u64);
        let low = self.history.lives().saturating_sub(too_much + self.capacity / BELOW);
        let step = (self.capacity / STEPS).max(1) as f64;
        let steps = ((low as f64 - self.plan.low as f64) / step).round();
        self.history.settle((self.plan.low as f64 + steps * step).max(0.0) as u64);
        Ok(())
    }

    /// What deleting has freed is not what was counted (metadata, space that is freed late): go further down, or take some
    /// space again. Whether it has to be looked at again.
    fn mend(&mut self) -> Result<bool, Failed> {
        self.mended += 1;
        let space = Space::settled(&self.place, &self.file)?;
        let step = (self.capacity / STEPS).max(1);
        let off = (self.wish.to * self.capacity as f64 - space.used as f64) / step as f64;
        let steps = off.abs().round() as u64 * step;
        if steps == 0 {
            return Ok(false);
        }
        if off < 0.0 {
            self.history.settle(self.history.lives().saturating_sub(steps));
            return Ok(true);
        }
        if self.taken == Taken::Fallocate {
            let path = self.place.join(BALLAST);
            let to = OpenOptions::new()
                .write(true)
                .open(&path)
                .map_err(|error| machine(path.display(), &error))?;
            let taken =
                allocate_most(&to, self.ballast, steps).map_err(|error| machine(path.display(), &error))?;
            self.ballast += taken;
        }
        Ok(true)
    }

    fn write_most(&self, to: &File, most: u64) -> io::Result<u64> {
        let mut at = 0;
        while at < most && ended().is_none() {
            match self.content.write(to, u64::MAX, at, 1 << 20) {
                Ok(()) => at += 1 << 20,
                Err(error) if is_full(&error) => break,
                Err(error) => return Err(error),
            }
        }
        to.sync_data().or_else(|error| if is_full(&error) { Ok(()) } else { Err(error) })?;
        Ok(at)
    }

    fn is_enough(&self) -> Result<bool, Failed> {
        match self.wish.fragments {
            Some(wanted) => Ok(self.probe()?.is_some_and(|found| found >= wanted)),
            None => Ok(false),
        }
    }

    /// Mean fragments of files of 1 MiB that were made now; they are removed again. None where it cannot be told.
    fn probe(&self) -> Result<Option<f64>, Failed> {
        let path = self.place.join("probe");
        let wrong = |error: io::Error| machine(path.display(), &error);
        let count = (Space::of(&self.place)?.available / 8 / PROBE_BYTES).clamp(PROBES.0, PROBES.1);
        let (mut made, mut fragments) = (0u64, 0);
        let mut held = Vec::new();
        for _ in 0..count {
            let file = File::create_new(&path).map_err(wrong)?;
            fs::remove_file(&path).map_err(wrong)?; // it has no name: whatever ends us, nothing is left
            match allocate(&file, 0, PROBE_BYTES).and_then(|()| extents::of(&file)) {
                Ok(lies) => fragments += lies.fragments,
                Err(error) if is_full(&error) || is_unknown(&error) => break,
                Err(error) => return Err(wrong(error)),
            }
            made += 1;
            held.push(file); // what is free already is not given twice
        }
        Ok((made > 0).then(|| fragments as f64 / made as f64))
    }

    fn describe(&self, manifest: &mut Manifest) -> Result<(), Failed> {
        sync(&self.file).map_err(|error| machine(self.place.display(), &error))?;
        let new_file_fragments = self.probe()?;
        let space = Space::settled(&self.place, &self.file)?; // the probe is gone again
        let (born, died) = self.history.counts();
        let mut fragments = fragments::Summary::default();
        for (number, _) in self.history.living() {
            fragments.look(&self.path(number))?;
        }
        let (mut files, mut bytes) = (0u64, 0);
        for (_, size) in self.history.living() {
            (files, bytes) = (files + 1, bytes + size);
        }
        let found = json!({
            "level": space.level(),
            "written_bytes": self.history.written(),
            "files": files,
            "bytes": bytes,
            "born": born,
            "died": died,
            "ballast_bytes": self.ballast,
            "refused": self.refused,
            "by": self.taken,
            "fragments": fragments.members(),
            "free": free::of(&self.file).ok(),
            "new_file_fragments_per_mib": new_file_fragments,
            "digest": format!("{:016x}", self.history.digest()),
            "seconds": seconds(monotonic_ns() - self.began_ns),
        });
        for (name, value) in found.as_object().cloned().unwrap_or_default() {
            manifest.set(&name, value);
        }
        Ok(())
    }

    fn path(&self, file: u64) -> PathBuf {
        self.place.join(format!("{:05}", file / PER_DIRECTORY)).join(format!("{file:07}"))
    }
}
