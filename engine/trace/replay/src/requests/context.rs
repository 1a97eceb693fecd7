//! The kernel's aio, by its calls: there is no library for it that is kept.

use std::io;

use super::{Deed, Done, LONGEST_WAIT, Ready, Taker};

/// Requests under way at most: the kernel allows `fs.aio-max-nr` of all together.
const ENTRIES: usize = 512;

/// Completions that are taken at once.
const ROOM: usize = 64;

/// `struct iocb` of a machine whose numbers begin with their lowest byte.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key: u32,
    flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    options: u32,
    eventfd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    request: u64,
    result: i64,
    second: i64,
}

pub struct Context(libc::c_ulong);

impl Context {
    /// # Errors
    /// The kernel has no aio, or none is left.
    pub fn new() -> io::Result<Context> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: a place for the new context.
        match unsafe { libc::syscall(libc::SYS_io_setup, ENTRIES, &raw mut context) } {
            0 => Ok(Context(context)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes what is done; waits for so many.
    fn events(&self, at_least: usize, done: &mut Vec<Done>) {
        let mut events = [Event::default(); ROOM];
        let nanoseconds = if at_least == 0 { 0 } else { LONGEST_WAIT.as_nanos() as i64 };
        loop {
            let limit = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
            // SAFETY: room for so many events, and a valid time.
            let many = unsafe {
                let (room, at) = (events.len(), events.as_mut_ptr());
                libc::syscall(libc::SYS_io_getevents, self.0, at_least, room, at, &raw const limit)
            };
            let many = usize::try_from(many).unwrap_or(0);
            done.extend(events[..many].iter().map(|event| Done { id: event.data, result: event.result }));
            if at_least > 0 || many < events.len() {
                return;
            }
        }
    }
}

impl Taker for Context {
    fn submit(&self, those: &[Ready], done: &mut Vec<Done>, _waits: bool) {
        let mut requests: Vec<Request> = those.iter().map(request).collect();
        let pointers: Vec<*mut Request> = requests.iter_mut().map(|each| &raw mut *each).collect();
        let mut next = 0;
        while next < pointers.len() {
            let rest = &pointers[next..];
            // SAFETY: valid requests; the kernel copies them, and what they point to lives as long as the queue, which
            // waits for all of it.
            let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.0, rest.len(), rest.as_ptr()) };
            if taken > 0 {
                next += taken as usize;
                continue;
            }
            match io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) {
                libc::EINTR => {}
                // There is no room: some of those that are under way have to end first.
                libc::EAGAIN => self.events(1, done),
                error => {
                    done.push(Done { id: those[next].id, result: -i64::from(error) });
                    next += 1;
                }
            }
        }
    }

    fn take(&self, done: &mut Vec<Done>) {
        self.events(0, done);
    }

    fn wait(&self, many: usize, done: &mut Vec<Done>) {
        self.events(many.min(ROOM), done);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

fn request(ready: &Ready) -> Request {
    let opcode = match ready.deed {
        Deed::Read => 0,
        Deed::Write => 1,
        Deed::Fsync => 2,
        Deed::Fdatasync => 3,
    };
    let (buffer, bytes, offset) = match ready.deed {
        Deed::Read | Deed::Write => (ready.at, ready.length.into(), ready.offset),
        // The kernel refuses a sync that has any.
        Deed::Fsync | Deed::Fdatasync => (0, 0, 0),
    };
    let flags = ready.flags.of_transfer();
    Request {
        data: ready.id,
        flags,
        opcode,
        fd: ready.fd as u32,
        buffer,
        bytes,
        offset,
        ..Request::default()
    }
}
