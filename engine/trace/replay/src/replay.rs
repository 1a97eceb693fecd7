//! A replay as a whole: a process of its own, which cannot leave the directory that it was given.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use etude_script::{MOST_MOVED, Needed, What};

use crate::pages::Pages;
use crate::perform::{Listeners, Performer, Process, Wishes};
use crate::player::{KILLED, KNOT, Manner, Play, Player, why};
use crate::report::{Report, report};
use crate::roll::Roll;
use crate::shared::Shared;
use crate::watch::Watch;

/// The most that one call may move: a roll that says more is not played.
/// Data to be written, at least: more than compression looks back for (128 KiB at a time on btrfs), and not more than a
/// core's own cache holds, since what a program writes it has mostly just made.
const DATA: usize = 256 << 10;
/// A descriptor that cannot be: closing it marks, in a recording of the replay, where it begins to play.
const MARK: i32 = -0x4554_5544;

/// Why a replay did not take place: a line, and whether it is the input (3) or the machine (5).
#[derive(Debug)]
pub struct Refused(pub String, pub u8);

/// Plays a roll in a directory. `watch` sees what it has measured some times a second, and once more when it has ended.
///
/// # Errors
/// Nothing was played: the directory lacks something, or this process cannot be kept within it.
pub fn replay(
    roll: Roll,
    directory: &Path,
    manner: Manner,
    wishes: Wishes,
    mut watch: impl FnMut(&Shared, bool),
) -> Result<Report, Refused> {
    if roll.head.largest > MOST_MOVED {
        return Err(Refused(
            format!("moves {} bytes in one call; at most {MOST_MOVED} are played", roll.head.largest),
            3,
        ));
    }
    let machine = |error: io::Error| Refused(error.to_string(), 5);
    let shared = Shared::new(roll.head.threads.len()).map_err(machine)?;
    let play = Arc::new(Play::new(roll, shared, manner).map_err(|what| Refused(what, 3))?);
    let (mut from, to) = pipe().map_err(machine)?;
    let parent = std::process::id() as libc::pid_t;
    // SAFETY: the engine has no other thread here; the child ends by _exit.
    match unsafe { libc::fork() } {
        -1 => Err(machine(io::Error::last_os_error())),
        0 => {
            drop(from);
            child(&play, directory, wishes, to, parent, None)
        }
        pid => {
            drop(to);
            let mut said = String::new();
            until_said(&from);
            from.read_to_string(&mut said).map_err(machine)?;
            let status = follow(pid, &play.shared, &mut watch);
            watch(&play.shared, true);
            if let Some((code, line)) = said.split_once(' ') {
                return Err(Refused(line.to_owned(), code.parse().unwrap_or(5)));
            }
            let broken = play.shared.all().broken.load(Ordering::Relaxed);
            let broken = if broken == 0 && status != 0 { KILLED } else { broken };
            if broken != 0 {
                return Err(Refused(why(broken).to_owned(), if broken == KNOT { 3 } else { 5 }));
            }
            Ok(report(&play.roll, &play.shared, manner))
        }
    }
}

pub(crate) fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are then owned.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// Waits until something is there, or will not come: not within a read, which a recording of the replay would show.
fn until_said(from: &File) {
    let mut asked = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&mut asked, 1, -1) };
}

/// The process that plays the first thread, from now or from `begin` on (`CLOCK_MONOTONIC`, ns). What stands in its way goes to `to`, with an exit status in front.
pub(crate) fn child(
    play: &Arc<Play>,
    directory: &Path,
    wishes: Wishes,
    mut to: File,
    parent: libc::pid_t,
    begin: Option<i64>,
) -> ! {
    // SAFETY: plain values.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
    }
    let ready =
        confine(directory).and_then(|()| missing(&play.roll.needed)).and_then(|()| performer(play, wishes));
    match ready {
        Ok(performer) => {
            drop(to);
            let mut player = Player::new(play.clone(), 0, performer, 0);
            // SAFETY: no descriptor is negative.
            unsafe { libc::close(MARK) };
            player.begin(begin);
            player.run();
        }
        Err(Refused(line, code)) => drop(write!(to, "{code} {line}")),
    }
    // SAFETY: nothing is left to be done.
    unsafe { libc::_exit(0) }
}

fn performer(play: &Play, wishes: Wishes) -> Result<Performer, Refused> {
    let machine = |error: io::Error| Refused(error.to_string(), 5);
    let largest = play.roll.head.largest as usize;
    let data = Arc::new(Pages::random(largest.max(DATA) + (1 << 16)).map_err(machine)?);
    let names = Arc::new(play.roll.names.clone());
    let threads =
        play.roll.head.accepting.iter().filter(|thread| (**thread as usize) < play.roll.head.threads.len());
    let listeners = Arc::new(Listeners::new(threads.copied()).map_err(machine)?);
    let new = Performer::new(names, Arc::new(Process::default()), data, largest, wishes);
    new.map(|performer| performer.accepting(listeners)).map_err(machine)
}

/// Makes the directory the root of this process: no path, no `..` and no link leads out of it. By the right to do so, or in
/// a user namespace of its own.
fn confine(directory: &Path) -> Result<(), Refused> {
    let path = CString::new(directory.as_os_str().as_bytes())
        .map_err(|_| Refused("the directory has a zero byte in its name".into(), 5))?;
    // SAFETY: texts that end with a zero byte; this process has one thread.
    unsafe {
        if libc::chdir(path.as_ptr()) != 0 {
            return Err(Refused(format!("{}: {}", directory.display(), io::Error::last_os_error()), 5));
        }
        if libc::chroot(c".".as_ptr()) != 0 {
            own_namespace().map_err(|error| Refused(error, 5))?;
            if libc::chroot(c".".as_ptr()) != 0 {
                return Err(Refused(
                    format!(
                        "the replay cannot be kept within {}: {}",
                        directory.display(),
                        io::Error::last_os_error()
                    ),
                    5,
                ));
            }
        }
        libc::chdir(c"/".as_ptr());
    }
    Ok(())
}

/// A user namespace in which this user is the same, and may change its root.
fn own_namespace() -> Result<(), String> {
    // SAFETY: no arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: this process has one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
        return Err(format!(
            "the replay cannot be kept within its directory: {}; allow user namespaces, or run it as root",
            io::Error::last_os_error()
        ));
    }
    let write = |name: &str, text: String| std::fs::write(format!("/proc/self/{name}"), text);
    let mapped = write("setgroups", "deny".into())
        .and_then(|()| write("uid_map", format!("{user} {user} 1")))
        .and_then(|()| write("gid_map", format!("{group} {group} 1")));
    mapped.map_err(|error| format!("the replay cannot be kept within its directory: {error}; run it as root"))
}

/// Whether all is there that the first calls find; seen from within.
fn missing(needed: &[Needed]) -> Result<(), Refused> {
    for each in needed {
        let shown = String::from_utf8_lossy(&each.path).into_owned();
        let refuse =
            |what: String| Err(Refused(format!("{shown}: {what}; etude prepare makes what a roll needs"), 5));
        let begin = each.path.iter().position(|byte| *byte != b'/').unwrap_or(each.path.len());
        let path = Path::new("/").join(std::ffi::OsStr::from_bytes(&each.path[begin..]));
        match (std::fs::symlink_metadata(&path), &each.what) {
            (Err(_), _) => return refuse("is needed and not there".into()),
            (Ok(found), What::File { bytes, .. }) if found.is_file() && found.len() < *bytes => {
                return refuse(format!("has {} bytes, and {bytes} are needed", found.len()));
            }
            (Ok(found), What::Directory) if !found.is_dir() => return refuse("is no directory".into()),
            (Ok(found), What::File { .. }) if !found.is_file() => return refuse("is no file".into()),
            _ => {}
        }
    }
    Ok(())
}

/// Waits for the end; the wait status.
fn follow(pid: libc::pid_t, shared: &Shared, watch: &mut impl FnMut(&Shared, bool)) -> i32 {
    let mut health = Watch::default();
    loop {
        let mut status = 0;
        // SAFETY: a child of this process.
        match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
            0 => {}
            -1 => return libc::SIGKILL, // somebody else has waited for it
            _ => return status,
        }
        if let Some(why) = health.found(shared) {
            shared.all().broken.store(why, Ordering::Relaxed);
            // It waits in the kernel, perhaps; its children die with it.
            // SAFETY: a child of this process.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        watch(shared, false);
        std::thread::sleep(Duration::from_millis(20));
    }
}
