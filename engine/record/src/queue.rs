//! What the tracer and the drainer tell, handed to the thread that codes and writes it: to compress a chunk takes longer
//! than a ring lasts.

use std::fs;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use etude_trace::Meta;

use crate::rewrite::clock::Origin;
use crate::rewrite::found::Patched;
use crate::rewrite::remote::Pid;
use crate::rewrite::ring::Raw;
use crate::rewrite::rings::{Counters, Sink};
use crate::sink::{File, Summary};
use crate::urgent::above_the_program;

/// What may wait to be written: as a rule, the calls of one thread in a millisecond each. When it is full, whoever tells
/// more waits, the rings fill up, and the program waits or drops calls, as asked.
const WAITING: usize = 64;

type Task = Box<dyn FnOnce(&mut File) + Send>;

/// The near end of the queue.
pub struct Queue {
    tasks: SyncSender<Task>,
    writer: JoinHandle<File>,
    origin: Origin,
}

impl Queue {
    /// Starts the thread that writes.
    pub fn new(file: File, origin: Origin) -> Queue {
        let (tasks, waiting) = sync_channel(WAITING);
        let writer = std::thread::spawn(move || {
            above_the_program();
            write(file, &waiting)
        });
        Queue { tasks, writer, origin }
    }

    /// When nothing is to come any more: waits until all is written.
    pub fn finish(self, notes: Vec<String>) -> Summary {
        drop(self.tasks);
        self.writer.join().expect("the writer does not panic").finish(notes)
    }

    fn tell(&self, task: impl FnOnce(&mut File) + Send + 'static) {
        self.tasks.send(Box::new(task)).expect("the writer ends last");
    }

    fn meta(&self, meta: Meta) {
        self.tell(move |file| file.meta(meta));
    }
}

fn write(mut file: File, waiting: &Receiver<Task>) -> File {
    ordinary();
    while let Ok(task) = waiting.recv() {
        task(&mut file);
    }
    file
}

/// Real-time priority is inherited by all that is started, but not meant for coding: the drainer has to come before it.
fn ordinary() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: a valid parameter block; every thread may give up priority.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) };
}

impl Sink for Queue {
    fn calls(&mut self, thread: u32, calls: Vec<Raw>) {
        self.tell(move |file| file.calls(thread, calls));
    }

    fn interrupted(&mut self, thread: u32, call: &Raw) {
        let call = call.clone();
        self.tell(move |file| file.interrupted(thread, &call));
    }

    fn thread(&mut self, thread: u32, process: u32, tid: Pid) {
        self.tell(move |file| file.thread(thread, process, tid));
        self.meta(Meta::Thread { thread, process, tid: tid as u32, at_ns: self.origin.now_ns() });
    }

    fn process(&mut self, process: u32, parent: Option<u32>, pid: Pid) {
        let at_ns = self.origin.now_ns();
        let (executable, argv, cwd) = described(pid);
        self.tell(File::process);
        self.meta(Meta::Process { process, parent, pid: pid as u32, executable, argv, cwd, at_ns });
    }

    fn executed(&mut self, process: u32, pid: Pid) {
        let at_ns = self.origin.now_ns();
        let (executable, argv, _) = described(pid);
        self.meta(Meta::Exec { process, executable, argv, at_ns });
    }

    fn patched(&mut self, process: u32, found: Vec<Patched>) {
        self.tell(move |file| file.patched(process, found));
    }

    fn unrecorded(&mut self, process: u32, why: &str) {
        let why = why.to_owned();
        self.tell(move |file| file.unrecorded(process, why));
    }

    fn by_stops(&mut self, process: u32, why: &str) {
        let why = why.to_owned();
        self.tell(move |file| file.by_stops(process, why));
    }

    fn dropped(&mut self, thread: u32, count: u64) {
        self.tell(move |file| file.dropped(thread, count));
    }

    fn replaced(&mut self, thread: u32) {
        self.tell(move |file| file.replaced(thread));
    }

    fn counters(&mut self, thread: u32, since_exec: Option<Counters>) {
        self.tell(move |file| file.counters(thread, since_exec));
    }

    fn ended(&mut self, process: u32, status: i32) {
        let at_ns = self.origin.now_ns();
        let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        self.meta(Meta::Ended { process, status: exited, signal, at_ns });
    }

    fn noted(&mut self, meta: Meta) {
        self.meta(meta);
    }

    fn now_ns(&self) -> u64 {
        self.origin.now_ns()
    }
}

/// Its program, its arguments and its directory, as far as /proc tells.
pub fn described(pid: Pid) -> (String, Vec<String>, String) {
    let link = |name: &str| {
        fs::read_link(format!("/proc/{pid}/{name}"))
            .map_or(String::new(), |path| path.to_string_lossy().into_owned())
    };
    (link("exe"), words(pid), link("cwd"))
}

/// The arguments of a process, if it is still there.
pub fn words(pid: Pid) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words: Vec<String> =
        bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    words.pop(); // behind the last zero byte
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use etude_trace::{Header, Writer};

    use super::*;
    use crate::rewrite::clock::{Calibration, Clock};

    #[test]
    fn who_tells_more_than_may_wait_waits_and_nothing_is_lost() {
        let nowhere = fs::File::create("/dev/null").expect("it is there");
        let calibration = Calibration::new(Clock::Vdso);
        let origin = calibration.origin();
        let writer = Writer::create(nowhere, &Header::default()).expect("it takes all");
        let queue = Queue::new(File::new(writer, calibration, None), origin);
        queue.tell(|_| std::thread::sleep(Duration::from_millis(50)));
        let written = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 * WAITING {
            let written = written.clone();
            queue.tell(move |_| {
                written.fetch_add(1, Ordering::Relaxed);
            });
        }
        queue.finish(Vec::new());
        assert_eq!(written.load(Ordering::Relaxed), 3 * WAITING);
    }
}
