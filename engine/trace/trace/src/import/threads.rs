//! What the lines of all threads become.

use std::collections::{BTreeMap, HashMap};
use std::io;

use etude_calls::{Call, Processor};

use super::line::{CallText, Line, What};
use super::{Imported, values};
use crate::event::Event;
use crate::meta::{Footer, Meta};
use crate::writer::{MOST_EVENTS, Writer};

/// Above this many events of all threads together those that wait are written.
const MOST_WAITING: usize = 1 << 20;

/// All threads that were met, and the trace that is written.
pub struct Threads {
    writer: Writer,
    /// When the trace begins, since 1970, ns.
    begin_ns: u64,
    /// Those that live, by their tid.
    live: HashMap<u32, Thread>,
    /// Events that wait.
    waiting: usize,
    threads: u32,
    processes: u32,
    /// Latest time, since the beginning, ns.
    end_ns: u64,
    /// Of each process what the trace does not say yet.
    untold: Vec<Option<Meta>>,
    told_processes: u32,
    counted: Imported,
}

struct Thread {
    number: u32,
    process: u32,
    tid: u32,
    begin_ns: u64,
    told: bool,
    events: Vec<Event>,
    /// A call whose end was not seen: when it began, and its text so far.
    unfinished: Option<(u64, Vec<u8>)>,
}

impl Threads {
    pub fn new(writer: Writer, begin_ns: u64) -> Threads {
        Threads {
            writer,
            begin_ns,
            live: HashMap::new(),
            waiting: 0,
            threads: 0,
            processes: 0,
            end_ns: 0,
            untold: Vec::new(),
            told_processes: 0,
            counted: Imported::default(),
        }
    }

    /// Takes a line; whether it was understood.
    pub fn line(&mut self, line: &Line) -> io::Result<bool> {
        let at_ns = line.at_ns.saturating_sub(self.begin_ns);
        self.end_ns = self.end_ns.max(at_ns);
        let tid = line.tid.unwrap_or(0);
        if !self.live.contains_key(&tid) {
            self.begin(tid, None, at_ns);
        }
        match &line.what {
            What::Call(call) => self.call(tid, at_ns, call)?,
            What::Unfinished(text) => {
                let thread = self.live.get_mut(&tid).expect("it was begun");
                if thread.unfinished.replace((at_ns, text.to_vec())).is_some() {
                    self.counted.unfinished += 1;
                }
            }
            What::Resumed(name, rest) => {
                let thread = self.live.get_mut(&tid).expect("it was begun");
                let Some((began_ns, mut text)) = thread.unfinished.take() else { return Ok(false) };
                text.extend_from_slice(rest);
                match CallText::parse(&text) {
                    Some(call) if call.name == *name => self.call(tid, began_ns, &call)?,
                    _ => return Ok(false),
                }
            }
            What::Exited(status) => self.end(tid, Some(*status), None, at_ns)?,
            What::Killed(name) => self.end(tid, None, signal(name), at_ns)?,
            What::Other => {}
        }
        if self.waiting > MOST_WAITING {
            self.flush_all()?;
        }
        Ok(true)
    }

    fn call(&mut self, tid: u32, at_ns: u64, text: &CallText) -> io::Result<()> {
        match text.name {
            b"clone" | b"clone3" | b"fork" | b"vfork" => {
                self.clone(tid, at_ns, text);
                return Ok(());
            }
            b"execve" | b"execveat" => return self.exec(tid, at_ns, text),
            _ => {}
        }
        let name = String::from_utf8_lossy(text.name);
        let Some(call) = Call::named(&name) else {
            *self.counted.others.entry(name.into_owned()).or_default() += 1;
            return Ok(());
        };
        let Some(result) = values::result(call, text.result) else {
            self.counted.unfinished += 1;
            return Ok(());
        };
        let mut values = values::arguments(call, text);
        // As of recorded programs: what was not connected to tells nothing.
        if call.address().is_some() && result != 0 {
            values.texts.clear();
        }
        self.counted.strange_arguments += values.strange;
        let (start_ns, duration_ns) = (at_ns, text.duration_ns.unwrap_or(0));
        let (arguments, texts) = (values.arguments, values.texts);
        let mut event = Event { start_ns, duration_ns, call, result, arguments, texts };
        event.normalise(Processor::X86_64);
        self.end_ns = self.end_ns.max(start_ns.saturating_add(duration_ns));
        let thread = self.live.get_mut(&tid).expect("it was begun");
        thread.events.push(event);
        self.waiting += 1;
        self.counted.events += 1;
        if thread.events.len() == MOST_EVENTS { self.flush(tid) } else { Ok(()) }
    }

    /// A thread is met for the first time; `parent` made it, if that is known, and whether in its own process.
    fn begin(&mut self, tid: u32, parent: Option<(u32, bool)>, at_ns: u64) {
        let process = match parent {
            Some((process, true)) => process,
            _ => {
                self.untold.push(Some(Meta::Process {
                    process: self.processes,
                    parent: parent.map(|(process, _)| process),
                    pid: tid,
                    executable: String::new(),
                    argv: Vec::new(),
                    cwd: String::new(),
                    at_ns,
                }));
                self.processes += 1;
                self.processes - 1
            }
        };
        let thread = Thread {
            number: self.threads,
            process,
            tid,
            begin_ns: at_ns,
            told: false,
            events: Vec::new(),
            unfinished: None,
        };
        self.threads += 1;
        self.live.insert(tid, thread);
    }

    fn clone(&mut self, tid: u32, at_ns: u64, text: &CallText) {
        let child = values::number(text.result.split(|byte| *byte == b' ').next().unwrap_or_default());
        let Some(child) = child.and_then(|child| u32::try_from(child).ok()).filter(|child| *child > 0) else {
            return;
        };
        let shares = |word: &&[u8]| word.windows(12).any(|part| part == b"CLONE_THREAD");
        let thread = text.arguments.iter().any(shares);
        let process = self.live[&tid].process;
        let Some(known) = self.live.get_mut(&child) else {
            return self.begin(child, Some((process, thread)), at_ns);
        };
        // Its first lines came before the end of the call that made it.
        if known.told {
            return;
        }
        if thread {
            known.process = process;
        } else if let Some(Meta::Process { parent, .. }) = &mut self.untold[known.process as usize] {
            *parent = Some(process);
        }
    }

    fn exec(&mut self, tid: u32, at_ns: u64, text: &CallText) -> io::Result<()> {
        if text.result != b"0" {
            return Ok(());
        }
        let path = text.arguments.iter().find(|word| word.starts_with(b"\""));
        let path = path.and_then(|word| values::string(word)).unwrap_or_default();
        let path = String::from_utf8_lossy(&path).into_owned();
        let words = values::strings(text.arguments.iter().find(|word| word.starts_with(b"[")).copied());
        let process = self.live[&tid].process;
        if let Some(Meta::Process { executable, argv, parent: None, .. }) = &mut self.untold[process as usize]
            && executable.is_empty()
            && process == 0
        {
            (*executable, *argv) = (path, words);
            return Ok(());
        }
        self.tell(tid)?;
        self.writer.meta(&Meta::Exec { process, executable: path, argv: words, at_ns })
    }

    fn end(&mut self, tid: u32, status: Option<i32>, signal: Option<i32>, at_ns: u64) -> io::Result<()> {
        self.flush(tid)?;
        self.tell(tid)?;
        let thread = self.live.remove(&tid).expect("it was begun");
        self.counted.unfinished += u64::from(thread.unfinished.is_some());
        let process = thread.process;
        if self.live.values().any(|other| other.process == process) {
            return Ok(());
        }
        self.writer.meta(&Meta::Ended { process, status, signal, at_ns })
    }

    /// Says what a thread and its process are, unless that has been said.
    fn tell(&mut self, tid: u32) -> io::Result<()> {
        let thread = self.live.get_mut(&tid).expect("it was begun");
        if std::mem::replace(&mut thread.told, true) {
            return Ok(());
        }
        if let Some(meta) = self.untold[thread.process as usize].take() {
            self.writer.meta(&meta)?;
            self.told_processes += 1;
        }
        let (number, process) = (thread.number, thread.process);
        self.writer.meta(&Meta::Thread { thread: number, process, tid: thread.tid, at_ns: thread.begin_ns })
    }

    fn flush(&mut self, tid: u32) -> io::Result<()> {
        let thread = self.live.get_mut(&tid).expect("it was begun");
        let events = std::mem::take(&mut thread.events);
        if events.is_empty() {
            return Ok(());
        }
        let number = thread.number;
        self.waiting -= events.len();
        self.tell(tid)?;
        self.writer.events(number, &events)
    }

    fn flush_all(&mut self) -> io::Result<()> {
        let mut live: Vec<_> = self.live.values().map(|thread| (thread.number, thread.tid)).collect();
        live.sort_unstable();
        live.into_iter().try_for_each(|(_, tid)| {
            self.flush(tid)?;
            self.tell(tid)
        })
    }

    pub fn finish(mut self, imported: &mut Imported) -> io::Result<()> {
        self.flush_all()?;
        let unfinished = self.live.values().filter(|thread| thread.unfinished.is_some()).count() as u64;
        let (strange, first_strange) = (imported.strange, imported.first_strange);
        *imported = Imported { strange, first_strange, ..self.counted };
        imported.unfinished += unfinished;
        let footer = Footer {
            processes: self.told_processes,
            threads: self.threads,
            end_ns: self.end_ns,
            notes: notes(imported),
            ..Footer::default()
        };
        self.writer.finish(&footer)
    }
}

fn notes(imported: &Imported) -> Vec<String> {
    let mut notes = Vec::new();
    if imported.strange > 0 {
        notes.push(format!(
            "{} lines were not understood, the first is line {}",
            imported.strange, imported.first_strange
        ));
    }
    if imported.strange_arguments > 0 {
        notes.push(format!("{} arguments were not understood and are 0", imported.strange_arguments));
    }
    if imported.unfinished > 0 {
        notes.push(format!("{} calls have no end and are left out", imported.unfinished));
    }
    let other: BTreeMap<_, _> = imported.others.iter().collect();
    let names: Vec<_> = other.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if !names.is_empty() {
        notes.push(format!("calls that a trace does not hold: {}", names.join(", ")));
    }
    notes
}

/// The number of a signal's name, the same on x86-64 and aarch64.
fn signal(name: &[u8]) -> Option<i32> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = name.strip_prefix(b"SIG")?;
    NAMES.iter().position(|known| known.as_bytes() == name).map(|at| at as i32 + 1)
}
