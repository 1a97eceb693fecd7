//! When the calls of a roll are due, found beforehand: what a load has to offer, whatever becomes of it.

use etude_calls::{Kind, Moves, Set};
use etude_script::UNKNOWN;
use etude_trace::Event;

use crate::perform::{is_between, is_memory, is_never_played};
use crate::roll::{Mark, Marked, Reading, Roll};

/// Calls of a roll that is offered as a load: eight bytes each are kept.
const MOST_CALLS: u64 = 1 << 27;
/// A longer gap is a mistake: a century.
const LONGEST_NS: u64 = 1 << 61;

/// What a roll asks for at some multiple of its speed.
#[derive(Debug, Default)]
pub struct Score {
    /// By thread, ascending: when its requests are due, ns from the beginning.
    due: Vec<Vec<u64>>,
    /// Of all its calls.
    pub length_ns: u64,
    pub requests: u64,
    /// What they are called, in the order of their codes.
    pub names: Vec<&'static str>,
    pub changes: Changes,
}

/// Whether a roll leaves its files other than it found them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Changes {
    #[default]
    Nothing,
    Files,
}

/// Whether a call is asked of files: what only takes memory is none, nor is what a replay never makes. Of asynchronous I/O
/// the requests are, and not the calls that hand them over and wait, nor are waits for threads.
pub fn is_request(event: &Event) -> bool {
    !is_never_played(event) && !is_memory(event) && !is_between(event)
}

impl Score {
    /// At `speed` times the original's. Instants are those of a replay with absolute timing, to the nanosecond.
    ///
    /// # Errors
    /// The roll is damaged, or has too many calls; to stand behind its name.
    pub fn of(roll: &Roll, speed: f64) -> Result<Score, String> {
        if roll.head.calls > MOST_CALLS {
            let many = roll.head.calls;
            return Err(format!(
                "has {many} calls, and at most {MOST_CALLS} are offered as a load: cut its script"
            ));
        }
        let mut score = Score { due: vec![Vec::new(); roll.head.threads.len()], ..Score::default() };
        let mut used = vec![false; etude_calls::Call::MANY as usize + 1];
        let mut started = vec![(0, 0)];
        while let Some((thread, from_ns)) = started.pop() {
            let mut walk =
                Walk { clock: from_ns, recorded: 0, speed, score: &mut score, used: &mut used, thread };
            started.extend(walk.thread(roll)?);
        }
        score.requests = score.due.iter().map(|due| due.len() as u64).sum();
        score.names = etude_calls::Call::all()
            .filter(|call| used[usize::from(call.code())])
            .map(|call| call.name())
            .collect();
        Ok(score)
    }

    /// Requests that are due before then, ns from the beginning.
    pub fn due_before(&self, ns: u64) -> u64 {
        self.due.iter().map(|due| due.partition_point(|at| *at < ns) as u64).sum()
    }

    /// The same where it is played again and again without a gap.
    pub fn due_before_again(&self, ns: u64) -> u64 {
        let length = self.length_ns.max(1);
        let (whole, rest) = (ns / length, ns % length);
        match whole {
            0 => self.due_before(rest),
            // The last call of a pass may be due at its very end, when the next begins.
            _ => (whole - 1) * self.requests + self.due_before(rest + length) + self.due_before(rest),
        }
    }
}

/// One thread, as `Player` plays it, without its calls.
struct Walk<'a> {
    /// Signed, as a player's is: both come to the same instants.
    clock: u64,
    recorded: u64,
    speed: f64,
    score: &'a mut Score,
    used: &'a mut [bool],
    thread: usize,
}

impl Walk<'_> {
    /// The threads that it starts, and when.
    fn thread(&mut self, roll: &Roll) -> Result<Vec<(usize, u64)>, String> {
        let mut reading = Reading::new(self.thread);
        let (mut marks, mut events, mut done) = (roll.marks[self.thread].iter().peekable(), Vec::new(), 0);
        let mut started = Vec::new();
        while reading.more(roll) {
            reading.read(roll, &mut events)?;
            for event in &events {
                while let Some(mark) = marks.next_if(|mark| mark.at <= done) {
                    started.extend(self.mark(mark));
                }
                self.call(event);
                done += 1;
            }
        }
        marks.for_each(|mark| started.extend(self.mark(mark)));
        self.score.length_ns = self.score.length_ns.max(self.clock);
        Ok(started)
    }

    fn call(&mut self, event: &Event) {
        self.pass(event.start_ns.saturating_sub(self.recorded));
        self.recorded = event.end_ns();
        if is_request(event) {
            self.score.due[self.thread].push(self.clock);
            self.used[usize::from(event.call.code())] = true;
        }
        if changes(event) {
            self.score.changes = Changes::Files;
        }
        self.pass(event.duration_ns);
    }

    fn mark(&mut self, mark: &Mark) -> Option<(usize, u64)> {
        self.pass(mark.gap_us.saturating_mul(1000));
        match mark.what {
            Marked::Start(thread) | Marked::Fork(thread) => Some((thread as usize, self.clock)),
            _ => None,
        }
    }

    fn pass(&mut self, ns: u64) {
        self.clock = self.clock.saturating_add((ns.min(LONGEST_NS) as f64 / self.speed) as u64);
    }
}

/// Whether any call of a roll may leave files other than they were.
///
/// # Errors
/// The roll is damaged.
pub fn changes_files(roll: &Roll) -> Result<bool, String> {
    for thread in 0..roll.head.threads.len() {
        let mut reading = Reading::new(thread);
        let mut events = Vec::new();
        while reading.more(roll) {
            reading.read(roll, &mut events)?;
            if events.iter().any(changes) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Calls that leave all as it was, but for what open flags say.
const HARMLESS: &[&str] = &[
    "close",
    "close_range",
    "lseek",
    "fsync",
    "fdatasync",
    "sqe_fsync",
    "sqe_fdatasync",
    "iocb_fsync",
    "iocb_fdatasync",
    "sync_file_range",
    "syncfs",
    "fadvise64",
    "readahead",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents",
    "getdents64",
    "chdir",
    "fchdir",
    "getcwd",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "flock",
    "pipe",
    "pipe2",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "msync",
    "brk",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "umask",
];

/// Whether a call may leave files other than they were.
fn changes(event: &Event) -> bool {
    (event.result >= 0 || event.result == UNKNOWN) && may_change(event)
}

/// The same whatever comes of it; what is not known to be harmless may.
pub fn may_change(event: &Event) -> bool {
    const WRITES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64 | TEMPORARY;
    const TEMPORARY: u64 = 0o20_000_000;
    if is_never_played(event) || is_between(event) {
        return false;
    }
    let (name, row) = (event.call.name(), event.call.row());
    if let Some(flags) = row.arguments.iter().position(|kind| *kind == Kind::Flags(Set::Open)) {
        return event.arguments[flags] & WRITES != 0;
    }
    let asks = name.contains("stat") || name.ends_with("getxattr") || name.ends_with("listxattr");
    !(asks || row.moves == Moves::Reads || HARMLESS.contains(&name))
}
