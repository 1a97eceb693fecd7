//! Threads that do what an interface of the kernel is not there for.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};

use super::{Deed, Done, LONGEST_WAIT, Ready, Taker};

/// Requests that are done at once.
const MOST_THREADS: usize = 64;

/// Requests of which each begins when the one before is done, with copies of their descriptors: they are made also where
/// the file is closed meanwhile. One that cannot be copied is none.
type Chain = Vec<(Ready, Option<OwnedFd>)>;

#[derive(Default)]
struct State {
    waiting: VecDeque<Chain>,
    done: Vec<Done>,
    threads: usize,
    /// Threads that have nothing to do.
    idle: usize,
    busy: usize,
    over: bool,
}

#[derive(Default)]
struct Common {
    state: Mutex<State>,
    /// There is something to do.
    work: Condvar,
    /// Something is done.
    ended: Condvar,
}

#[derive(Default)]
pub struct Pool(Arc<Common>);

impl Pool {
    fn add(&self, chain: Chain) {
        let mut state = self.0.state.lock().expect("no thread panics");
        state.waiting.push_back(chain);
        if state.idle < state.waiting.len() && state.threads < MOST_THREADS {
            let common = self.0.clone();
            let started = std::thread::Builder::new().stack_size(1 << 16).spawn(move || common.work_off());
            state.threads += usize::from(started.is_ok());
        }
        if state.threads == 0 {
            // There can be none: it is done here.
            let chain = state.waiting.pop_back().expect("it was pushed");
            state.done.extend(make(&chain));
        }
        self.0.work.notify_one();
    }

    /// Waits until nothing is under way.
    fn settle(&self) {
        let mut state = self.0.state.lock().expect("no thread panics");
        while state.busy > 0 || !state.waiting.is_empty() {
            state = self.0.ended.wait(state).expect("no thread panics");
        }
    }
}

impl Common {
    fn work_off(&self) {
        let mut state = self.state.lock().expect("no thread panics");
        loop {
            if let Some(chain) = state.waiting.pop_front() {
                state.busy += 1;
                drop(state);
                let done = make(&chain);
                state = self.state.lock().expect("no thread panics");
                state.busy -= 1;
                state.done.extend(done);
                self.ended.notify_all();
            } else if state.over {
                return;
            } else {
                state.idle += 1;
                state = self.work.wait(state).expect("no thread panics");
                state.idle -= 1;
            }
        }
    }
}

impl Taker for Pool {
    fn submit(&self, those: &[Ready], _done: &mut Vec<Done>, _waits: bool) {
        let mut chain = Chain::new();
        for ready in those {
            let first = chain.is_empty();
            chain.push((*ready, copy(ready)));
            if ready.flags.drains() && first {
                self.settle();
            }
            if !ready.flags.links() {
                let drains = chain[0].0.flags.drains();
                self.add(std::mem::take(&mut chain));
                if drains {
                    self.settle();
                }
            }
        }
        if !chain.is_empty() {
            self.add(chain);
        }
    }

    fn take(&self, done: &mut Vec<Done>) {
        done.append(&mut self.0.state.lock().expect("no thread panics").done);
    }

    fn wait(&self, many: usize, done: &mut Vec<Done>) {
        let state = self.0.state.lock().expect("no thread panics");
        let waiting = |state: &mut State| state.done.len() < many.max(1);
        let waited = self.0.ended.wait_timeout_while(state, LONGEST_WAIT, waiting);
        done.append(&mut waited.expect("no thread panics").0.done);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.state.lock().expect("no thread panics").over = true;
        self.0.work.notify_all();
    }
}

/// Does one after the other. What stands behind one that failed or moved less than it was to is not done.
fn make(chain: &[(Ready, Option<OwnedFd>)]) -> Vec<Done> {
    let mut broken = false;
    let each = |(ready, file): &(Ready, Option<OwnedFd>)| {
        let fd = file.as_ref().map_or(-1, OwnedFd::as_raw_fd);
        let result = if broken { -i64::from(libc::ECANCELED) } else { call(ready, fd) };
        let moves = matches!(ready.deed, Deed::Read | Deed::Write);
        let whole = result >= 0 && (!moves || result == i64::from(ready.length));
        broken |= !whole && !ready.flags.links_hard();
        Done { id: ready.id, result }
    };
    chain.iter().map(each).collect()
}

fn copy(ready: &Ready) -> Option<OwnedFd> {
    // SAFETY: it is borrowed for this one call, which refuses what is not open.
    (ready.fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(ready.fd) }.try_clone_to_owned().ok())?
}

fn call(ready: &Ready, fd: i32) -> i64 {
    let part = libc::iovec { iov_base: ready.at as *mut libc::c_void, iov_len: ready.length as usize };
    let flags = ready.flags.of_transfer();
    // SAFETY: memory of the queue, of enough length, which outlives its requests.
    let result = unsafe {
        match ready.deed {
            // An offset of -1 is the position.
            Deed::Read => libc::preadv2(fd, &raw const part, 1, ready.offset, flags),
            Deed::Write => libc::pwritev2(fd, &raw const part, 1, ready.offset, flags),
            Deed::Fsync => libc::fsync(fd) as isize,
            Deed::Fdatasync => libc::fdatasync(fd) as isize,
        }
    };
    match result {
        -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
        moved => moved as i64,
    }
}
