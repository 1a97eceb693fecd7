//! A capture: a directory with the script and the roll of one recording, which a replay plays in a temporary place.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use etude_trace::ordinary;
use serde::{Deserialize, Serialize};

use crate::replay::Refused;

/// The script of a capture.
pub const SCRIPT: &str = "io.script";
/// Its roll.
pub const ROLL: &str = "io.roll";
/// The file of a capture that is written last: where it is, the capture is whole.
const NOTE: &str = "capture.json";
const FORMAT: &str = "etude-capture";
const VERSION: u64 = 1;
/// Its bytes: more than any command line has.
const MOST_NOTE: u64 = 1 << 26;
/// The beginning of a temporary place's name.
const PLACE: &str = "etude-replay-";

#[derive(Serialize, Deserialize)]
struct Note {
    format: String,
    version: u64,
    #[serde(default)]
    argv: Vec<String>,
    /// Which share of the recording's gaps was waiting for a CPU.
    #[serde(default)]
    run_delay_share: Option<f64>,
}

/// Declares a capture whole.
pub fn seal(directory: &Path, argv: &[OsString], run_delay_share: Option<f64>) -> io::Result<()> {
    let argv = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let note = Note { format: FORMAT.into(), version: VERSION, argv, run_delay_share };
    let mut file = File::options().write(true).create_new(true).open(directory.join(NOTE))?;
    file.write_all(format!("{}\n", serde_json::to_string_pretty(&note)?).as_bytes())
}

/// The roll of a capture.
///
/// # Errors
/// It is none, not whole, or of another version.
pub fn roll_of(directory: &Path) -> Result<PathBuf, Refused> {
    let shown = directory.display();
    let wrong = |what: String| Err(Refused(format!("{shown}: {what}"), 3));
    if !directory.is_dir() {
        return wrong("expected a capture, which etude capture makes, or a roll and a directory".into());
    }
    let note = ordinary::open(&directory.join(NOTE));
    let text = match note.and_then(|file| {
        let mut text = Vec::new();
        file.take(MOST_NOTE).read_to_end(&mut text).map(|_| text)
    }) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return wrong(format!(
                "no whole capture: it has no {NOTE}; remove it and capture anew, if it was interrupted"
            ));
        }
        Err(error) => return wrong(format!("{NOTE}: {error}")),
    };
    match serde_json::from_slice::<Note>(&text) {
        Ok(note) if note.format != FORMAT => wrong(format!("{NOTE}: expected the format {FORMAT}")),
        Ok(note) if note.version != VERSION => wrong(format!(
            "a capture of version {}, and version {VERSION} is known: capture anew",
            note.version
        )),
        Ok(_) => Ok(directory.join(ROLL)),
        Err(error) => wrong(format!("{NOTE}: {error}; capture anew")),
    }
}

/// Runs `work` in a child process with the name of a directory that is not there yet, within `within`; what is there
/// afterwards is removed, also when a signal ends the work.
///
/// # Errors
/// No place can be made, or no process.
pub fn in_temporary_place(within: &Path, work: impl FnOnce(&Path) -> u8) -> Result<u8, Refused> {
    let machine = |error: io::Error| {
        Refused(
            format!("{}: no temporary place can be made: {error}; name another with --in", within.display()),
            5,
        )
    };
    remove_left(within);
    let place = Place::new(within).map_err(machine)?;
    let ended = supervised(|| work(&place.path.join("files"))).map_err(machine);
    if let Err(error) = place.remove() {
        return Err(Refused(format!("{}: cannot be removed: {error}", place.path.display()), 5));
    }
    ended
}

/// A directory of this process and its children. Its lock is theirs, and shows that one of them lives.
struct Place {
    path: PathBuf,
    _lock: File,
}

impl Place {
    fn new(within: &Path) -> io::Result<Place> {
        loop {
            let template = within.join(format!("{PLACE}XXXXXX")).into_os_string().into_vec();
            let mut template = CString::new(template)?.into_bytes_with_nul();
            // SAFETY: a text that ends with a zero byte, and may be written.
            if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
                return Err(io::Error::last_os_error());
            }
            template.pop();
            let path = PathBuf::from(OsString::from_vec(template));
            // Another replay may have taken it for one that was left, until it is locked.
            match locked(&path) {
                Ok(lock) if fs::symlink_metadata(&path).is_ok() => return Ok(Place { path, _lock: lock }),
                Err(error) if path.exists() => return Err(error),
                _ => {}
            }
        }
    }

    fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

fn locked(directory: &Path) -> io::Result<File> {
    let file =
        File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(directory)?;
    // SAFETY: an open descriptor.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Removes places of this user whose processes were killed.
fn remove_left(within: &Path) {
    // SAFETY: no arguments.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let own =
            |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user);
        if entry.file_name().as_bytes().starts_with(PLACE.as_bytes()) && own(&entry.path()) {
            let _ = locked(&entry.path()).map(|_lock| remove(&entry.path()));
        }
    }
}

/// Removes a directory, also where a roll has taken rights from directories in it.
fn remove(directory: &Path) -> io::Result<()> {
    fs::remove_dir_all(directory).or_else(|_| {
        open_up(directory);
        fs::remove_dir_all(directory)
    })
}

fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Runs `work` in a child, and waits until that and all that it has started have ended. A signal that would end this
/// process ends the child.
fn supervised(work: impl FnOnce() -> u8) -> io::Result<u8> {
    let parent = std::process::id() as libc::pid_t;
    let (watched, before) = blocked()?;
    // SAFETY: the engine has no other thread here; the child ends by _exit.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: plain values, and a mask that was got from the kernel.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                if libc::getppid() != parent {
                    libc::_exit(0);
                }
            }
            let code = work();
            let _ = io::stdout().flush();
            // SAFETY: nothing is left to be done.
            unsafe { libc::_exit(i32::from(code)) }
        }
        pid => pid,
    };
    let (mut code, mut ended) = (None, None);
    loop {
        let mut status = 0;
        // SAFETY: room for the status.
        match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
            0 => {
                // SAFETY: a set of signals; where it went is not asked for.
                let signal = unsafe { libc::sigwaitinfo(&watched, std::ptr::null_mut()) };
                if ENDING.contains(&signal) {
                    ended = ended.or(Some(signal));
                    if code.is_none() {
                        // SAFETY: a child that has not been waited for.
                        unsafe { libc::kill(child, libc::SIGTERM) };
                    }
                }
            }
            -1 => break,
            pid if pid == child => code = Some(code_of(status)),
            _ => {}
        }
    }
    // SAFETY: a mask that was got from the kernel.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    Ok(ended.map_or(code.unwrap_or(128 + libc::SIGKILL as u8), |signal| 128 + signal as u8))
}

/// Blocks what this process waits for, and becomes the parent of processes whose own have ended; the signals, and the
/// mask before.
fn blocked() -> io::Result<(libc::sigset_t, libc::sigset_t)> {
    // SAFETY: all zeros are values of these; the calls fill them.
    unsafe {
        let (mut watched, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut watched);
        for signal in ENDING.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&mut watched, signal);
        }
        // Where the parent ignores it, children would be gone before they are waited for.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        match libc::sigprocmask(libc::SIG_BLOCK, &watched, &mut before) {
            0 => Ok((watched, before)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn code_of(status: i32) -> u8 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) as u8 } else { 128 + libc::WTERMSIG(status) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("etude-capture-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn a_capture_is_whole_when_it_is_sealed() {
        let at = scratch("sealed");
        assert_eq!(roll_of(&at).map_err(|refused| refused.1).unwrap_err(), 3);
        seal(&at, &["tar".into()], Some(0.5)).unwrap();
        assert_eq!(roll_of(&at).unwrap(), at.join(ROLL));
        for other in [
            "{\"format\": \"etude-capture\", \"version\": 2}",
            "{",
            "[]",
            "{\"format\": \"x\", \"version\": 1}",
        ] {
            fs::write(at.join(NOTE), other).unwrap();
            assert_eq!(roll_of(&at).map_err(|refused| refused.1).unwrap_err(), 3, "{other}");
        }
        fs::remove_dir_all(&at).unwrap();
    }

    #[test]
    fn what_was_left_is_removed_unless_somebody_holds_it() {
        let at = scratch("left");
        let held = Place::new(&at).unwrap();
        let closed = at.join(format!("{PLACE}killed/d"));
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("f"), "x").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
        fs::create_dir(at.join("mine")).unwrap();
        remove_left(&at);
        let mut names: Vec<_> = fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert_eq!(names, [held.path.clone(), at.join("mine")]);
        fs::remove_dir_all(&at).unwrap();
    }
}
