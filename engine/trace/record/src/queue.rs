//! From the rings, which a thread empties, to the thread that codes and writes: to compress a chunk takes longer than a ring
//! lasts. What the tracer tells goes the same way.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use etude_trace::Meta;

use crate::rewrite::clock::Origin;
use crate::rewrite::layout::{DATA, RINGS, SLOT};
use crate::rewrite::remote::{Pid, read_whole};
use crate::rewrite::ring::{Raw, Segment};
use crate::sink::{File, Summary};
use crate::urgent::Urgency;

/// How often the rings are emptied: each holds 4096 calls.
pub const DRAIN_INTERVAL: Duration = Duration::from_millis(1);

/// Bytes of calls that may wait to be written. When they do, the rings are not emptied (`Queue::room`), and the program
/// waits or drops calls, as asked.
const MOST: usize = 32 << 20;

/// From so many on the writer comes before a real-time program, until few wait.
const BACKLOG: usize = 4 << 20;
const FEW: usize = 1 << 20;

type Task = (usize, Box<dyn FnOnce(&mut File) + Send>);
/// Tasks are passed on when there are so many of them, or so many bytes, or at every tenth emptying of the rings.
const TOGETHER: usize = 4096;
const TOGETHER_BYTES: usize = 256 << 10;
const TURNS: usize = 10;

/// The near end of the queue. To tell never waits.
pub struct Queue {
    /// Tasks that the writer was not given yet.
    pending: Vec<Task>,
    pending_bytes: usize,
    turns: usize,
    tasks: Sender<Vec<Task>>,
    /// Bytes that wait.
    waiting: Arc<AtomicUsize>,
    writer: JoinHandle<File>,
    urgency: Urgency,
    origin: Origin,
}

impl Queue {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(file: File, origin: Origin) -> io::Result<Queue> {
        let (tasks, told) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (urgency, own) = (Urgency::of_this_thread(1), channel());
        let writer = std::thread::Builder::new().spawn({
            let waiting = waiting.clone();
            move || {
                // SAFETY: no arguments.
                own.0.send(unsafe { libc::gettid() }).expect("it is waited for");
                write(file, &told, &waiting)
            }
        })?;
        let mut urgency = urgency.over(own.1.recv().expect("the writer says who it is"));
        urgency.lower();
        let pending = Vec::new();
        Ok(Queue { pending, pending_bytes: 0, turns: 0, tasks, waiting, writer, urgency, origin })
    }

    /// When nothing is to come any more: waits until all is written.
    fn finish(mut self, notes: Vec<String>) -> Summary {
        self.hand_over();
        drop(self.tasks);
        self.writer.join().expect("the writer does not panic").finish(notes)
    }

    /// Has the writer do something with the file, after all that it was told before.
    pub fn tell(&mut self, task: impl FnOnce(&mut File) + Send + 'static) {
        self.send(0, task);
    }

    fn send(&mut self, bytes: usize, task: impl FnOnce(&mut File) + Send + 'static) {
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.pending.push((bytes, Box::new(task)));
        self.pending_bytes += bytes;
        if self.pending.len() >= TOGETHER || self.pending_bytes >= TOGETHER_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        (self.pending_bytes, self.turns) = (0, 0);
        if !self.pending.is_empty() {
            let tasks = std::mem::take(&mut self.pending);
            self.tasks.send(tasks).expect("the writer ends last");
        }
    }

    /// Notes something in the trace.
    pub fn meta(&mut self, meta: Meta) {
        self.tell(move |file| file.meta(meta));
    }

    /// True if there is room for more calls; if not, whoever has some waits, and holds no lock meanwhile.
    pub fn room(&mut self) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting > BACKLOG {
            self.urgency.raise();
        } else if waiting < FEW {
            self.urgency.lower();
        }
        waiting < MOST
    }

    /// Hands on what was told since the last time: to wake the writer at each word would cost more than the word.
    fn pass_on(&mut self) {
        self.turns += 1;
        if self.turns >= TURNS {
            self.hand_over();
        }
    }

    fn calls(&mut self, thread: u32, calls: Vec<Raw>) {
        let bytes = calls.iter().map(Raw::bytes).sum();
        self.send(bytes, move |file| file.calls(thread, calls));
    }

    pub fn thread(&mut self, thread: u32, process: u32, tid: Pid) {
        self.tell(move |file| file.thread(thread, process, tid));
        self.meta(Meta::Thread { thread, process, tid: tid as u32, at_ns: self.origin.now_ns() });
    }

    pub fn process(&mut self, process: u32, parent: Option<u32>, pid: Pid) {
        let at_ns = self.origin.now_ns();
        let (executable, argv, cwd) = described(pid);
        self.tell(File::process);
        self.meta(Meta::Process { process, parent, pid: pid as u32, executable, argv, cwd, at_ns });
    }

    pub fn executed(&mut self, process: u32, pid: Pid) {
        let at_ns = self.origin.now_ns();
        let (executable, argv) = (link(pid, "exe"), words(pid));
        self.meta(Meta::Exec { process, executable, argv, at_ns });
    }

    pub fn ended(&mut self, process: u32, status: i32) {
        let at_ns = self.origin.now_ns();
        let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        self.meta(Meta::Ended { process, status: exited, signal, at_ns });
    }

    /// Since the beginning of the trace.
    pub fn now_ns(&self) -> u64 {
        self.origin.now_ns()
    }
}

fn write(mut file: File, told: &Receiver<Vec<Task>>, waiting: &AtomicUsize) -> File {
    while let Ok(tasks) = told.recv() {
        for (bytes, task) in tasks {
            task(&mut file);
            waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
        file.pass_on();
    }
    file
}

/// Who writes to which ring, and what is done with it.
pub struct Rings {
    owners: Vec<Option<u32>>,
    /// The ring that is emptied next.
    turn: usize,
    pub queue: Queue,
}

impl Rings {
    pub fn new(queue: Queue) -> Rings {
        Rings { owners: vec![None; RINGS], turn: 0, queue }
    }

    /// Starts the thread that empties all rings again and again, until that is `over`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn drainer(
        rings: Arc<Mutex<Rings>>,
        segment: Arc<Segment>,
        over: Arc<AtomicBool>,
    ) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().spawn(move || {
            Urgency::of_this_thread(2).raise(); // before the writer
            while !over.load(Ordering::Relaxed) {
                rings.lock().expect("no thread panics").drain(&segment);
                std::thread::sleep(DRAIN_INTERVAL);
            }
        })
    }

    /// At the end, when nothing is to come any more: waits until all is written.
    pub fn finish(self, notes: Vec<String>) -> Summary {
        self.queue.finish(notes)
    }

    /// A ring for a thread; None where all are in use. `filtered`: its program has a filter of system calls.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // nobody writes to rings there
    pub fn take(
        &mut self,
        segment: &Segment,
        thread: u32,
        drop_when_full: bool,
        filtered: bool,
    ) -> Option<usize> {
        let free = self.owners.iter().position(Option::is_none)?;
        self.owners[free] = Some(thread);
        segment.ring(free).begin(drop_when_full, filtered);
        Some(free)
    }

    /// Its thread writes no more.
    pub fn give_back(&mut self, segment: &Segment, index: usize) {
        self.drain_one(segment, index, true);
        let ring = segment.ring(index);
        ring.forget();
        if let Some(thread) = self.owners[index].take()
            && ring.dropped() > 0
        {
            let dropped = ring.dropped();
            self.queue.tell(move |file| file.dropped(thread, dropped));
        }
    }

    /// A record comes from a thread that stands still, and that has reserved it and will not write it.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // nobody writes to rings there
    pub fn take_over(&mut self, segment: &Segment, index: usize, raw: Raw) {
        self.drain_one(segment, index, false);
        segment.ring(index).take_back();
        if let Some(thread) = self.owners[index] {
            self.queue.calls(thread, vec![raw]);
        }
    }

    /// Calls of a thread that stands still which did not come through its ring: those that did come before them.
    pub fn tell(&mut self, segment: &Segment, index: Option<usize>, thread: u32, calls: Vec<Raw>) {
        if calls.is_empty() {
            return;
        }
        if let Some(index) = index {
            self.drain_one(segment, index, false);
        }
        self.queue.calls(thread, calls);
    }

    /// Empties all rings, as far as there is room for what is in them; each has its turn.
    fn drain(&mut self, segment: &Segment) {
        for _ in 0..RINGS {
            if self.owners[self.turn].is_some() {
                if !self.queue.room() {
                    break;
                }
                self.drain_one(segment, self.turn, false);
            }
            self.turn = (self.turn + 1) % RINGS;
        }
        self.queue.room();
        self.queue.pass_on();
    }

    fn drain_one(&mut self, segment: &Segment, index: usize, last: bool) {
        let Some(thread) = self.owners[index] else { return };
        let ring = segment.ring(index);
        let mut calls = Vec::with_capacity(ring.slots().min(DATA / SLOT));
        ring.drain(last, |raw| calls.push(raw));
        if !calls.is_empty() {
            self.queue.calls(thread, calls);
        }
    }
}

/// Its program, its arguments and its directory, as far as /proc tells.
pub fn described(pid: Pid) -> (String, Vec<String>, String) {
    (link(pid, "exe"), words(pid), link(pid, "cwd"))
}

fn link(pid: Pid, name: &str) -> String {
    fs::read_link(format!("/proc/{pid}/{name}"))
        .map_or(String::new(), |path| path.to_string_lossy().into_owned())
}

/// The arguments of a process, if it is still there.
pub fn words(pid: Pid) -> Vec<String> {
    let bytes = read_whole(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words: Vec<String> =
        bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    words.pop(); // behind the last zero byte
    words
}

#[cfg(test)]
mod tests {
    use etude_trace::{Header, Writer};

    use super::*;
    use crate::rewrite::clock::{Calibration, Clock};

    fn queue() -> Queue {
        let nowhere = fs::File::create("/dev/null").expect("it is there");
        let calibration = Calibration::new(Clock::Vdso);
        let origin = calibration.origin();
        let writer = Writer::create(nowhere, &Header::default()).expect("it takes all");
        Queue::new(File::new(writer, calibration, None), origin).unwrap()
    }

    #[test]
    fn there_is_no_room_while_too_many_bytes_wait_and_nothing_is_lost() {
        let mut queue = queue();
        let (held, written) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
        let hold = held.lock().expect("nobody panics");
        let of = |written: &Arc<AtomicUsize>| {
            let (held, written) = (held.clone(), written.clone());
            move |_: &mut File| {
                drop(held.lock());
                written.fetch_add(1, Ordering::Relaxed);
            }
        };
        queue.send(MOST - 1, of(&written));
        assert!(queue.room());
        queue.send(1, of(&written));
        assert!(!queue.room());
        queue.tell(of(&written));
        queue.hand_over();
        drop(hold);
        while !queue.room() {
            std::thread::sleep(Duration::from_millis(1));
        }
        queue.finish(Vec::new());
        assert_eq!(written.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_was_told_is_handed_over_at_every_tenth_turn_or_when_it_is_much() {
        let mut queue = queue();
        queue.tell(|_| {});
        let turns = (1..=TURNS).map(|_| {
            queue.pass_on();
            queue.pending.len()
        });
        assert_eq!(turns.collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
        queue.send(TOGETHER_BYTES - 1, |_| {});
        assert_eq!(queue.pending.len(), 1);
        queue.send(1, |_| {});
        assert_eq!(queue.pending.len(), 0);
        queue.finish(Vec::new());
    }

    #[test]
    fn the_writer_comes_before_a_real_time_program_while_much_waits() {
        std::thread::spawn(|| {
            let parameters = libc::sched_param { sched_priority: 7 };
            // SAFETY: this thread's own scheduling.
            if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0 {
                eprintln!("real-time priority is not allowed here: nothing was tested");
                return;
            }
            let mut queue = queue();
            let priority = |queue: &Queue| {
                let mut parameters = libc::sched_param { sched_priority: -1 };
                // SAFETY: room for the answer.
                unsafe { libc::sched_getparam(queue.urgency.thread(), &mut parameters) };
                parameters.sched_priority
            };
            assert_eq!((queue.room(), priority(&queue)), (true, 0));
            queue.send(BACKLOG + 1, |_| std::thread::sleep(Duration::from_millis(20)));
            queue.hand_over();
            assert_eq!((queue.room(), priority(&queue)), (true, 8));
            while queue.waiting.load(Ordering::Relaxed) > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!((queue.room(), priority(&queue)), (true, 0));
            queue.finish(Vec::new());
        })
        .join()
        .expect("no assertion failed");
    }
}
