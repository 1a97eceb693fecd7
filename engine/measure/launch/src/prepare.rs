//! Everything about a launch that can be done before its clock is read, and once for all its repetitions.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use etude_protocol::{Captured, Worker};
use libc::{c_char, c_int};

use crate::child::{Plan, Report, Stage};
use crate::files::Streams;
use crate::inside_barrier::{self, Inside};
use crate::resolve;

/// Highest number of a CPU that can be asked for.
const MAX_CPU: u32 = 65_535;

/// Limits of a launch and what it leaves behind.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Time after which the whole tree gets SIGTERM, ns.
    pub timeout_ns: Option<u64>,
    /// Time between SIGTERM and SIGKILL, ns.
    pub grace_ns: u64,
    /// Launches within a trial, one after the other; with one worker only.
    pub inner: u32,
    /// Bytes kept of the end of a captured stream.
    pub capture_bytes: usize,
    /// Whether processes that outlive the workers are left alone.
    pub keep_leftovers: bool,
    /// Whether commands of the workers can meet at a barrier, see [`crate::inside_barrier`].
    pub inside: bool,
    /// Whether the instant at which workers start is told by whoever asked for the launch.
    pub told: bool,
}

/// A launch that is ready to run, any number of times.
pub struct Prepared {
    pub(crate) options: Options,
    /// For each worker: ready, or why it cannot be started.
    pub(crate) workers: Vec<Result<Ready, String>>,
    pub(crate) inside: Option<Inside>,
}

/// What is the same for all workers that a launcher starts.
pub(crate) struct Common<'a> {
    pub null: &'a File,
    pub defaults: Rc<[c_int]>,
    pub open_files: Option<libc::rlimit>,
    pub parent: libc::pid_t,
}

/// One worker that is ready to be started. Owns what its plan points to; the pointed-to memory does not move with it.
pub(crate) struct Ready {
    pub plan: Plan,
    pub report: Report,
    pub streams: Streams,
    path: CString,
    cwd: Option<CString>,
    _strings: [Vec<CString>; 2],
    _pointers: [Vec<*const c_char>; 2],
    _cpus: Vec<u64>,
    _defaults: Rc<[c_int]>,
    _open_files: Option<Box<libc::rlimit>>,
}

impl Prepared {
    /// Makes ready what can be.
    pub(crate) fn new(workers: &[Worker], common: &Common, options: Options) -> Prepared {
        let several = options.inside && (workers.len() > 1 || options.told);
        let inside = several.then(|| Inside::new(workers.len(), options.told)).transpose();
        let inside = inside.map_err(|error| format!("no barrier for the workers: {error}"));
        let ready = |(index, worker): (usize, &Worker)| {
            let inside = inside.as_ref().map_err(Clone::clone)?.as_ref();
            let told = options.inside.then(|| inside_barrier::told(worker, index, inside));
            Ready::new(told.as_ref().unwrap_or(worker), common, &options)
        };
        let workers = workers.iter().enumerate().map(ready).collect();
        Prepared { options, workers, inside: inside.ok().flatten() }
    }

    /// Why no trial can be run, for the first worker for which that is so.
    pub(crate) fn is_ready(&self) -> bool {
        self.workers.iter().all(Result::is_ok)
    }
}

impl Ready {
    pub(crate) fn new(worker: &Worker, common: &Common, options: &Options) -> Result<Ready, String> {
        let name = worker.argv.first().ok_or("argv: empty; expected at least the program")?;
        let argv =
            worker.argv.iter().map(|arg| resolve::c_string("argv", arg)).collect::<Result<Vec<_>, _>>()?;
        let env = resolve::environment(&worker.env)?;
        let directory = worker.cwd.as_deref().map(Path::new);
        if let Some(directory) = directory {
            check_directory(directory)?;
        }
        let found = resolve::program(name, resolve::variable(&env, "PATH"), directory);
        let path = found.map_err(resolve::Unrunnable::text)?;
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| "argv: a NUL byte".to_owned())?;
        let cwd = worker.cwd.as_deref().map(|cwd| resolve::c_string("cwd", cwd)).transpose()?;
        let cpus = worker.cpus.as_deref().map(mask).transpose()?.unwrap_or_default();
        let streams = Streams::open(worker, common.null, options.capture_bytes)?;
        let pointers = [resolve::terminated(&argv), resolve::terminated(&env)];
        let open_files = common.open_files.map(Box::new);
        let plan = Plan {
            path: path.as_ptr(),
            argv: pointers[0].as_ptr(),
            envp: pointers[1].as_ptr(),
            cwd: cwd.as_ref().map_or(std::ptr::null(), |cwd| cwd.as_ptr()),
            stdio: streams.fds,
            cpus: if cpus.is_empty() { std::ptr::null() } else { cpus.as_ptr() },
            cpus_bytes: cpus.len() * size_of::<u64>(),
            defaults: common.defaults.as_ptr(),
            defaults_len: common.defaults.len(),
            mask: empty_mask(),
            open_files: open_files.as_deref().map_or(std::ptr::null(), std::ptr::from_ref),
            new_group: true,
            parent: common.parent,
        };
        Ok(Ready {
            plan,
            report: Report::default(),
            streams,
            path,
            cwd,
            _strings: [argv, env],
            _pointers: pointers,
            _cpus: cpus,
            _defaults: Rc::clone(&common.defaults),
            _open_files: open_files,
        })
    }

    /// One line on why the worker could not be started.
    pub(crate) fn explain(&self, (stage, errno): (Stage, i32)) -> String {
        explain(&self.path, self.cwd.as_ref(), stage, errno)
    }

    /// What was captured in this trial: standard output, standard error. To be called when nobody writes any more;
    /// `buffer` is for reading.
    pub(crate) fn captured(&mut self, buffer: &mut [u8]) -> [Option<Captured>; 2] {
        self.streams.captures.iter_mut().flatten().for_each(|capture| capture.drain(buffer));
        let [stdout, stderr] = &mut self.streams.captures;
        let stderr = stderr.as_mut().filter(|capture| !capture.is_empty());
        [stdout.as_mut().map(|capture| capture.finish()), stderr.map(|capture| capture.finish())]
    }
}

/// One line on why a command could not be started.
pub fn explain(path: &CString, cwd: Option<&CString>, stage: Stage, errno: i32) -> String {
    let path = path.to_string_lossy();
    let system = std::io::Error::from_raw_os_error(errno);
    match (stage, errno) {
        (Stage::Exec, libc::ENOENT) => {
            format!("{path}: no such file, or the interpreter it names is missing")
        }
        (Stage::Exec, libc::ENOEXEC) => {
            format!("{path}: neither a program of this machine nor a script with a #! line")
        }
        (Stage::Exec, _) => format!("{path}: {system}"),
        (Stage::Cpus, _) => {
            format!(
                "cpus: none of them is available: {system}; nproc --all and taskset -cp $$ list those available"
            )
        }
        (Stage::Directory, _) => {
            format!("cwd: {}: {system}", cwd.map_or_else(Default::default, |cwd| cwd.to_string_lossy()))
        }
        (Stage::Streams, _) => format!("standard streams: {system}"),
        (Stage::Limit, _) => format!("limit of open files could not be restored: {system}"),
        (Stage::Parent, _) => format!("could not be tied to the engine: {system}"),
    }
}

fn check_directory(directory: &Path) -> Result<(), String> {
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(format!("cwd: {}: is no directory", directory.display())),
        Err(error) => Err(format!("cwd: {}: {error}", directory.display())),
    }
}

fn mask(cpus: &[u32]) -> Result<Vec<u64>, String> {
    let highest = *cpus.iter().max().ok_or("cpus: empty; expected at least one CPU, or null for all")?;
    if highest > MAX_CPU {
        return Err(format!("cpus: {highest} is no CPU; expected at most {MAX_CPU}"));
    }
    let mut mask = vec![0; highest as usize / 64 + 1];
    for cpu in cpus {
        mask[*cpu as usize / 64] |= 1 << (cpu % 64);
    }
    Ok(mask)
}

fn empty_mask() -> libc::sigset_t {
    // SAFETY: sigset_t is plain old data, and initialised by sigemptyset.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut mask);
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn a_mask_has_a_bit_a_cpu() {
        assert_eq!(mask(&[0, 3]), Ok(vec![0b1001]));
        assert_eq!(mask(&[64]), Ok(vec![0, 1]));
        assert!(mask(&[]).is_err());
        assert!(mask(&[u32::MAX]).is_err());
    }
}
