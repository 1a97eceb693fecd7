//! Load by io_uring: one thread sends, the kernel does the rest.
//!
//! What has no operation of the ring (readdir, readdirplus, access, readlink, fsstat, setattr) is a system call of this thread.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use etude_clock::{SECOND, monotonic_ns};
use etude_workload::{Kind, Object, Operation, Stream};
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use crate::file_set::gate::{Gate, Numbers};
use crate::file_set::incompressible_data::MOST;
use crate::files::call::{Caller, Place};
use crate::files::errno;
use crate::files::handles::Handle;
use crate::files::state::Job;
use crate::run::target::{Ended, Failure, Target, Ticket};

/// Entries of the ring at most: more requests are under way than are handed over at once.
const MOST_ENTRIES: usize = 4096;

/// What the kernel reads or fills while a request is under way, and what keeps it open.
struct Flight {
    job: Job,
    /// None: of no file, or opened by the first of two operations.
    handle: Option<Arc<Handle>>,
    buffer: Vec<u8>,
    found: Box<libc::statx>,
    /// A write that is followed by its sync.
    syncing: bool,
    /// Nobody waits for it.
    lost: bool,
}

pub(crate) struct Ring {
    ring: IoUring,
    place: Arc<Place>,
    caller: Caller,
    stream: Stream,
    numbers: Numbers,
    gate: Gate<Job>,
    /// Were held back, and may go.
    ready: Vec<Job>,
    /// By the number that the kernel gives back.
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// Buffers that are not in use.
    buffers: Vec<Vec<u8>>,
    ended: Vec<Ended>,
    kinds: Vec<&'static str>,
    writes: u64,
}

impl Ring {
    /// # Errors
    /// The kernel has no io_uring, or does not allow it.
    pub fn new(place: Place, stream: Stream, numbers: Numbers, outstanding: usize) -> io::Result<Ring> {
        etude_clock::without_slack();
        let entries = outstanding.next_power_of_two().clamp(8, MOST_ENTRIES) as u32;
        let ring = IoUring::builder().setup_cqsize(entries * 2).build(entries)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::other("it needs Linux 5.11"));
        }
        let place = Arc::new(place);
        Ok(Ring {
            ring,
            caller: Caller::new(place.clone(), 0),
            place,
            stream,
            numbers,
            gate: Gate::new(numbers.len()),
            ready: Vec::new(),
            flights: Vec::new(),
            free: Vec::new(),
            buffers: Vec::new(),
            ended: Vec::new(),
            kinds: Kind::ALL.map(Kind::name).to_vec(),
            writes: 0,
        })
    }

    /// Hands a request to the kernel, or makes it.
    fn go(&mut self, job: Job) -> io::Result<()> {
        match self.entry(&job) {
            Ok(Some(mut flight)) => {
                let number = self.free.pop().unwrap_or_else(|| {
                    self.flights.push(None);
                    self.flights.len() - 1
                });
                let entry = self.operation(&mut flight).user_data(number as u64);
                self.flights[number] = Some(flight);
                self.push(&entry)
            }
            Ok(None) => {
                let result = self.caller.perform(&job.operation);
                self.over(&job, result, false)
            }
            Err(number) => self.over(&job, Err(number), false),
        }
    }

    /// What a request needs while it is under way; None: the ring has no operation for it.
    fn entry(&mut self, job: &Job) -> Result<Option<Flight>, i32> {
        let operation = &job.operation;
        let handle = match (operation.kind, operation.object) {
            (Kind::Read | Kind::Commit, Object::File(file)) => Some(self.place.open(file, false)?),
            (Kind::Write, Object::File(file)) if operation.bytes as usize <= MOST => {
                Some(self.place.open(file, true)?)
            }
            (Kind::Remove | Kind::Rename, Object::File(file)) => {
                self.place.handles.forget(file);
                None
            }
            (
                Kind::Getattr
                | Kind::Lookup
                | Kind::Create
                | Kind::Remove
                | Kind::Mkdir
                | Kind::Rmdir
                | Kind::Symlink,
                _,
            ) => None,
            _ => return Ok(None),
        };
        let mut buffer = Vec::new();
        if operation.kind == Kind::Read {
            buffer = self.buffers.pop().unwrap_or_default();
            buffer.resize(buffer.len().max(operation.bytes as usize), 0);
        }
        // SAFETY: a statx is numbers, for all of which zero will do.
        let found = Box::new(unsafe { std::mem::zeroed::<libc::statx>() });
        Ok(Some(Flight { job: *job, handle, buffer, found, syncing: false, lost: false }))
    }

    /// The entry of the ring. What it points to lives in the flight, on the heap, or as long as the place.
    fn operation(&mut self, flight: &mut Flight) -> squeue::Entry {
        let Operation { kind, object, offset, bytes, .. } = flight.job.operation;
        let root = types::Fd(self.place.root.as_raw_fd());
        let path = self.place.paths.get(object).as_ptr();
        let file = types::Fd(flight.handle.as_ref().map_or(-1, |handle| handle.fd.as_raw_fd()));
        let found: *mut libc::statx = &raw mut *flight.found;
        match kind {
            Kind::Read => opcode::Read::new(file, flight.buffer.as_mut_ptr(), bytes).offset(offset).build(),
            Kind::Write => {
                self.writes += 1;
                let piece = self.place.data.piece(self.writes, bytes as usize);
                opcode::Write::new(file, piece.as_ptr(), bytes).offset(offset).build()
            }
            Kind::Commit => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            Kind::Getattr => opcode::Statx::new(root, path, found.cast())
                .flags(libc::AT_SYMLINK_NOFOLLOW)
                .mask(libc::STATX_BASIC_STATS)
                .build(),
            Kind::Lookup => opcode::Statx::new(root, path, found.cast())
                .flags(libc::AT_SYMLINK_NOFOLLOW | libc::AT_STATX_DONT_SYNC)
                .build(),
            Kind::Create => opcode::OpenAt::new(root, path)
                .flags(libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC)
                .mode(0o666)
                .build(),
            Kind::Remove => opcode::UnlinkAt::new(root, path).build(),
            Kind::Rmdir => opcode::UnlinkAt::new(root, path).flags(libc::AT_REMOVEDIR).build(),
            Kind::Mkdir => opcode::MkDirAt::new(root, path).mode(0o777).build(),
            Kind::Symlink => {
                opcode::SymlinkAt::new(root, crate::files::call::SYMLINK_TARGET.as_ptr(), path).build()
            }
            Kind::Rename => {
                let to = self.place.paths.get(Object::File(offset as usize)).as_ptr();
                opcode::RenameAt::new(root, path, root, to).build()
            }
            // Not handed over; nothing is done.
            _ => opcode::Nop::new().build(),
        }
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: what the entry points to is kept until its completion was seen.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.submit(None)?;
        }
    }

    /// Hands over what is there; waits until then for a completion where an instant is given.
    fn submit(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let submitter = self.ring.submitter();
        let done = match until_ns {
            None => submitter.submit(),
            Some(until_ns) => {
                let rest = until_ns.saturating_sub(monotonic_ns());
                let time = types::Timespec::new().sec(rest / SECOND).nsec((rest % SECOND) as u32);
                let arguments = types::SubmitArgs::new().timespec(&time);
                submitter.submit_with_args(1, &arguments)
            }
        };
        match done {
            Ok(_) => Ok(()),
            // Time is over, a signal came, or completions have to be taken first.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn take_completions(&mut self) -> io::Result<()> {
        // Copied: what becomes free may send more.
        let done: Vec<cqueue::Entry> = self.ring.completion().collect();
        for each in done {
            self.completed(each.user_data() as usize, each.result())?;
        }
        Ok(())
    }

    fn completed(&mut self, number: usize, result: i32) -> io::Result<()> {
        let Some(mut flight) = self.flights.get_mut(number).and_then(Option::take) else { return Ok(()) };
        let operation = flight.job.operation;
        if result >= 0 && operation.stable && operation.kind == Kind::Write && !flight.syncing {
            flight.syncing = true;
            let file = types::Fd(flight.handle.as_ref().map_or(-1, |handle| handle.fd.as_raw_fd()));
            let entry = opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build();
            self.flights[number] = Some(flight);
            return self.push(&entry.user_data(number as u64));
        }
        self.free.push(number);
        if !flight.buffer.is_empty() {
            self.buffers.push(std::mem::take(&mut flight.buffer));
        }
        if let (Kind::Create, Object::File(file), 0..) = (operation.kind, operation.object, result) {
            self.place.keep(file, result);
        }
        let result = if result < 0 { Err(-result) } else { Ok(()) };
        self.over(&flight.job, result, flight.lost)
    }

    /// A request is over; others may go now.
    fn over(&mut self, job: &Job, result: Result<(), i32>, lost: bool) -> io::Result<()> {
        if !lost {
            self.ended.push(Ended {
                ticket: job.ticket,
                at_ns: monotonic_ns(),
                kind: job.operation.kind.index(),
                result: result.map_err(|number| Failure::Status(errno::name(number))),
            });
        }
        self.gate.end(self.numbers.claim(&job.operation), |job| self.ready.push(job));
        self.go_ready()
    }

    fn go_ready(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.ready).into_iter().try_for_each(|job| self.go(job))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still read and fill what belongs to requests that nobody waited for: that is never freed.
        std::mem::forget(std::mem::take(&mut self.flights));
        std::mem::forget(self.place.clone());
    }
}

impl Target for Ring {
    fn kinds(&self) -> &[&'static str] {
        &self.kinds
    }

    fn send(&mut self, ticket: Ticket) -> io::Result<()> {
        let job = Job { ticket, due_ns: 0, operation: self.stream.next() };
        match self.gate.admit(ticket, self.numbers.claim(&job.operation), job) {
            Some(job) => self.go(job),
            None => Ok(()),
        }
    }

    fn listen(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> io::Result<()> {
        self.go_ready()?;
        let unsent = !self.ring.submission().is_empty();
        let waits = self.ended.is_empty() && self.ring.completion().is_empty() && until_ns > monotonic_ns();
        if waits {
            self.submit(Some(until_ns))?;
        } else if unsent {
            self.submit(None)?;
        }
        self.take_completions()?;
        // What these let go is handed over at once.
        if !self.ring.submission().is_empty() {
            self.submit(None)?;
        }
        ended.append(&mut self.ended);
        Ok(())
    }

    fn give_up(&mut self, ticket: Ticket) {
        self.gate.leave(ticket, |job| self.ready.push(job));
        if let Some(flight) = self.flights.iter_mut().flatten().find(|flight| flight.job.ticket == ticket) {
            flight.lost = true;
        }
    }
}
