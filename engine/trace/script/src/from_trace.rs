//! From a trace to a script (docs/howto/scripts-from-traces.md).
//!
//! `stream.rs` gives what the trace holds in the order in which it took effect; `tables.rs` follows descriptors and
//! directories, `tree.rs` names and lengths of files. `calls.rs` decides of each call whether it is replayed, `requests.rs`
//! of requests that are done later, `pipes.rs` of pipes, `sockets.rs` of sockets with names, `futexes.rs` and `events.rs` of waits for other threads, and `threads.rs` how long each thread did something else between. `needed.rs` says which files must be there before, and
//! [`crate::names`] what all are called.

mod calls;
mod events;
mod futexes;
mod moves;
mod needed;
mod pipes;
mod report;
mod requests;
mod rules;
mod run_delay;
mod sockets;
mod stream;
pub(crate) mod tables;
mod threads;
pub(crate) mod tree;

use std::collections::{HashMap, HashSet};
use std::io::Error;
use std::path::Path as FilePath;

use etude_calls::{Futex, Kind};
use etude_trace::{Ending, Event, Failed, Found, Header};

use crate::from_trace::events::Events;
use crate::from_trace::futexes::Futexes;
use crate::from_trace::pipes::{Pipes, Unfit};
use crate::from_trace::requests::Requests;
use crate::from_trace::sockets::{Pairs, Sockets};
use crate::from_trace::stream::{Life, Next, Survey, in_effect};
use crate::from_trace::tables::{Tables, start};
use crate::from_trace::threads::Threads;
use crate::from_trace::tree::{Origin, Path, Tree};
use crate::hash::Hasher;
use crate::model::{Action, Called, Script, Step};
use crate::names::Names;

pub use pipes::Kept;
pub use report::Report;

/// How a script is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the program makes is called as it was.
    pub keep_names: bool,
    /// Every component of every path is replaced by a hash with this key ([`crate::random_key`]).
    pub hash_names: Option<[u8; 16]>,
    /// Directories (absolute), and where they are to be in the replay (relative to its root).
    pub maps: Vec<(Vec<u8>, Vec<u8>)>,
    /// A process that does nothing while one that it started ends is taken to have waited for that.
    pub waits: bool,
    pub pipes: Kept,
    /// Gaps are shorter by what a thread waited for a CPU.
    pub without_run_delay: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            keep_names: false,
            hash_names: None,
            maps: Vec::new(),
            waits: true,
            pipes: Kept::Whole,
            without_run_delay: false,
        }
    }
}

/// Makes a script of a trace. A trace that is cut short gives what is there; the report says so.
///
/// # Errors
/// It is damaged, or none: one line.
pub fn from_trace(path: &FilePath, options: &Options) -> Result<(Script, Report), Failed> {
    let mut survey = Survey::of(path)?;
    survey.found.extend(own_executable(&survey.executable));
    let found = std::mem::take(&mut survey.found);
    let (mut walk, mut ending) = walked(path, options, &survey, found, None)?;
    let (mut unfit, pairs) = walk.sockets.judged(&walk.pipes, &survey, options.pipes);
    unfit.extend(walk.pipes.unfit(&survey));
    if !unfit.is_empty() || !pairs.is_empty() {
        let found = walk.tree.found.into_values().collect();
        (walk, ending) = walked(path, options, &survey, found, Some((unfit, pairs)))?;
    }
    walk.report.warning = ending.warning();
    walk.report.add_survey(&survey);
    walk.report.run_delay = walk.threads.run_delay(&survey.run_delays, options.without_run_delay);
    walk.report.without_run_delay = options.without_run_delay;
    Ok(walk.finish(&survey))
}

/// All of a trace. `judged`: pipes that are not replayed, and who is connected to whom, as a walk before has found.
fn walked<'a>(
    path: &FilePath,
    options: &'a Options,
    survey: &Survey,
    found: Vec<Found>,
    judged: Option<(Unfit, Pairs)>,
) -> Result<(Walk<'a>, Ending), Failed> {
    let mut walk = Walk::new(options, Tree::new(found), &survey.header);
    if let Some((unfit, pairs)) = judged {
        walk.pipes = Pipes::without(unfit);
        walk.sockets.pairs = pairs;
    }
    walk.threads.held(survey.held.clone());
    let ending = in_effect(path, &survey.lives, |next| {
        match next {
            Next::Life { at_ns, life, busy } => walk.live(at_ns, life, busy),
            Next::Call { at_ns, thread, event } => walk.call(at_ns, thread, event),
        }
        Ok(())
    })?;
    walk.read_counters(u64::MAX, None);
    walk.threads.finish(survey.end_ns);
    Ok((walk, ending))
}

/// The link by which a program finds its own file: the recorder cannot look at it when the program has ended.
fn own_executable(executable: &str) -> Option<Found> {
    let (path, kind) = ("/proc/self/exe".into(), "link".into());
    executable.starts_with('/').then(|| Found {
        path,
        kind,
        target: Some(executable.into()),
        ..Found::default()
    })
}

/// The paths that a trace names, links not followed, and whether what was in them was read. Stops where `go_on` does not
/// want to.
pub(crate) fn paths_of(
    path: &FilePath,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<(Vec<(Path, bool)>, bool), Failed> {
    let survey = Survey::of(path)?;
    let options = Options { waits: false, ..Options::default() };
    let mut walk = Walk::new(&options, Tree::default(), &survey.header);
    walk.threads.forget();
    let mut many = 0;
    let ending = in_effect(path, &survey.lives, |next| {
        match next {
            Next::Life { at_ns, life, busy } => walk.live(at_ns, life, busy),
            Next::Call { at_ns, thread, event } => walk.call(at_ns, thread, event),
        }
        many += 1;
        if many % 4096 != 0 || go_on(walk.tree.paths().len() as u64) {
            Ok(())
        } else {
            Err(Error::other("enough"))
        }
    });
    let whole = match ending {
        Err(Failed::Visit(_)) => false,
        Err(error) => return Err(error),
        Ok(_) => true,
    };
    let tree = &walk.tree;
    let listed = |path: &Path| tree.at(path).is_some_and(|node| tree.files[node].listed);
    Ok((tree.paths().map(|path| (path.clone(), listed(path))).collect(), whole))
}

/// Goes through a trace.
pub(crate) struct Walk<'a> {
    options: &'a Options,
    header_cwd: String,
    /// So many bytes of a path, or more, were not all of it.
    cut_at: usize,
    tables: Tables,
    tree: Tree,
    threads: Threads,
    requests: Requests,
    futexes: Futexes,
    events: Events,
    pipes: Pipes,
    sockets: Sockets,
    /// Whose call is looked at.
    thread: u32,
    /// Mappings of what is not replayed: process and address.
    unmapped: HashSet<(u32, u64)>,
    /// Sockets that were bound, perhaps to a name, which is not recorded.
    bound: u64,
    /// Steps in front of the call that is looked at.
    placeholders: Vec<Called>,
    report: Report,
}

impl<'a> Walk<'a> {
    fn new(options: &'a Options, tree: Tree, header: &Header) -> Walk<'a> {
        let costs = header.own_cost_ns.clone();
        Walk {
            options,
            header_cwd: header.cwd.clone(),
            cut_at: rules::cut_at(&header.technique),
            tables: Tables::default(),
            tree,
            threads: Threads::new(costs, options.waits),
            requests: Requests::default(),
            futexes: Futexes::default(),
            events: Events::default(),
            pipes: Pipes::default(),
            sockets: Sockets::default(),
            thread: 0,
            unmapped: HashSet::new(),
            bound: 0,
            placeholders: Vec::new(),
            report: Report::default(),
        }
    }

    fn live(&mut self, at_ns: u64, life: &Life, busy: &[u32]) {
        self.read_counters(at_ns, None);
        let busy: &[u32] = &busy.iter().copied().chain(self.events.busy(at_ns)).collect::<Vec<_>>();
        match life {
            Life::Process { process, parent, cwd } => {
                let cwd = if cwd.is_empty() { &self.header_cwd } else { cwd };
                self.tables.begin(*process, *parent, cwd);
                self.threads.process(*process, *parent, at_ns, busy);
            }
            Life::Thread { thread, process, tid } => {
                self.tables.threads.insert(*thread, *process);
                self.futexes.thread(*process, *thread, *tid);
                self.threads.thread(*thread, *process, at_ns, busy);
            }
            Life::Exec { process, thread, until_ns } => {
                self.tables.exec(*process);
                self.requests.end(*process);
                if let Some(thread) = thread {
                    self.tables.threads.insert(*thread, *process);
                }
                self.threads.exec(*process, *thread, at_ns, *until_ns);
            }
            Life::Ended { process } => {
                self.tables.end(*process);
                self.requests.end(*process);
                self.threads.ended(*process, at_ns);
            }
        }
    }

    fn call(&mut self, at_ns: u64, thread: u32, event: &Event) {
        self.read_counters(at_ns, Some(thread));
        let process = *self.tables.threads.entry(thread).or_insert(0);
        self.threads.meets(thread, process, event);
        self.thread = thread;
        if let Some(role) = event.call.role() {
            return self.asynchronous((thread, process), event, role);
        }
        self.threads.pays(thread, event);
        if let Some(futex) = Futex::of(event.call, &event.arguments) {
            return self.waits_or_wakes((thread, process), event, futex);
        }
        if let Some(counter) = self.counter(process, event) {
            return self.counts(thread, event, counter);
        }
        let taken = self.take(process, event);
        for placeholder in std::mem::take(&mut self.placeholders) {
            self.threads.call(thread, &Event { duration_ns: 0, ..event.clone() }, placeholder);
        }
        match taken {
            Ok(called) => drop(self.threads.call(thread, event, called)),
            Err(why) => self.report.drops(event, why),
        }
    }

    /// Gives all their names.
    fn finish(mut self, survey: &Survey) -> (Script, Report) {
        let header = &survey.header;
        let cwd = start(&header.cwd);
        let used: HashSet<Path> = self.tree.paths().cloned().collect();
        let mut names = Names::new(cwd, &self.options.maps, used);
        names.keep = self.options.keep_names;
        names.created = self.created();
        names.renamed = self.tree.renamed.iter().cloned().collect();
        names.hasher = self.options.hash_names.map(Hasher::new);
        let (mut steps, mut away) = (self.threads.take_steps(), Away::default());
        for step in &mut steps {
            if let Action::Call(called) = &mut step.action {
                rename(called, &mut names);
            }
            away.follow(step);
        }
        let needed = needed::needed(&self.tree, &mut names, &mut self.report);
        let mut notes = Vec::new();
        if self.options.hash_names.is_none() && !header.argv.is_empty() {
            let words: Vec<String> =
                header.argv.iter().map(|word| word.replace(char::is_control, " ")).collect();
            notes.push(format!("recorded: {}", words.join(" ")));
        }
        notes.extend(self.report.run_delay_left_out());
        self.report.substitutions = names.substitutions;
        self.report.steps = steps.len() as u64;
        let dropped = self.report.left_out();
        let scheduling = survey.scheduling.filter(|class| !class.is_default());
        (Script { notes, scheduling, needed, dropped, steps }, self.report)
    }

    /// Paths at which the trace makes something and nothing was before.
    fn created(&self) -> HashSet<Path> {
        let before = self.tree.files.iter().filter(|file| file.origin == Origin::Before);
        let before: HashSet<&Path> = before.map(|file| &file.first).collect();
        self.tree.made.iter().filter(|path| !before.contains(path)).cloned().collect()
    }
}

/// Gives the paths of a call their names in the script.
fn rename(called: &mut Called, names: &mut Names) {
    let link =
        called.call.name().starts_with("symlink").then(|| called.texts.last().map(|text| text.bytes.clone()));
    for text in &mut called.texts {
        let index = usize::from(text.argument);
        match called.call.kind(&called.arguments, index) {
            Kind::Path => {
                text.bytes = match link.clone().flatten().filter(|_| index == 0) {
                    Some(link) => names.target(&link, &text.bytes),
                    None => names.name(&text.bytes),
                };
            }
            Kind::Name => {
                if let Some(hasher) = &mut names.hasher {
                    text.bytes = hasher.attribute(&text.bytes);
                }
            }
            _ => {}
        }
    }
}

/// Processes that have gone to another directory, step by step: a replay makes their `chdir` too, so that names have to
/// begin at its root.
#[derive(Default)]
struct Away {
    /// Threads that others have started.
    process_of: HashMap<u32, u32>,
    processes: HashSet<u32>,
}

impl Away {
    /// Roots the names of a step where it has to be.
    fn follow(&mut self, step: &mut Step) {
        let process = *self.process_of.get(&step.thread).unwrap_or(&step.thread);
        match &mut step.action {
            Action::Start(other) => {
                self.process_of.insert(*other, process);
            }
            Action::Fork(other) if self.processes.contains(&process) => {
                self.processes.insert(*other);
            }
            Action::Call(called) => {
                if self.processes.contains(&process) {
                    root(called);
                }
                if matches!(called.call.name(), "chdir" | "fchdir") && called.result >= 0 {
                    let home = called.texts.iter().any(|text| matches!(&*text.bytes, b"." | b"/"));
                    if home {
                        self.processes.remove(&process)
                    } else {
                        self.processes.insert(process)
                    };
                }
            }
            _ => {}
        }
    }
}

/// The text in a link is no name of the call's.
fn root(called: &mut Called) {
    let link = called.call.name().starts_with("symlink");
    for text in &mut called.texts {
        let index = usize::from(text.argument);
        if called.call.kind(&called.arguments, index) == Kind::Path
            && !(link && index == 0)
            && !text.bytes.starts_with(b"/")
        {
            let name = if &*text.bytes == b"." { &b""[..] } else { &text.bytes };
            text.bytes = [b"/", name].concat().into();
        }
    }
}

#[cfg(test)]
mod tests;
