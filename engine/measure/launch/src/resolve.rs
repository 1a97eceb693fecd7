//! From a worker's description to what `execve` takes, before any clock is read.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are looked up when the environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrunnable {
    /// There is no such file.
    NotFound(String),
    /// There is one, but it cannot be executed.
    NotExecutable(String),
}

impl Unrunnable {
    /// One line: what, where, what to do.
    pub fn text(self) -> String {
        match self {
            Unrunnable::NotFound(text) | Unrunnable::NotExecutable(text) => text,
        }
    }
}

/// The environment of a worker: the engine's own with `changes`, as `NAME=VALUE` strings.
pub fn environment(changes: &BTreeMap<String, Option<String>>) -> Result<Vec<CString>, String> {
    let mut entries = Vec::new();
    for (name, value) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| changes.contains_key(name)) {
            continue;
        }
        let mut entry = name.as_bytes().to_vec();
        entry.push(b'=');
        entry.extend_from_slice(value.as_bytes());
        entries.push(CString::new(entry).map_err(|_| "env: a NUL byte".to_owned())?);
    }
    for (name, value) in changes {
        if name.is_empty() || name.contains('=') {
            return Err(format!("env: {name:?} is no name of a variable (empty, or with =)"));
        }
        if let Some(value) = value {
            entries.push(c_string("env", &format!("{name}={value}"))?);
        }
    }
    Ok(entries)
}

/// A C string; `what` names it in the error.
pub fn c_string(what: &str, text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{what}: {text:?} has a NUL byte, which no program can be given"))
}

/// Pointers to C strings as `execve` takes them, with a null at the end; valid as long as the strings.
pub fn terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// The value of `name` in an environment made by [`environment`].
pub fn variable<'a>(environment: &'a [CString], name: &str) -> Option<&'a str> {
    environment.iter().find_map(|entry| entry.to_str().ok()?.strip_prefix(name)?.strip_prefix('='))
}

/// The file that `name` stands for, looked up in `path` (a PATH) as seen from `directory`.
pub fn program(name: &str, path: Option<&str>, directory: Option<&Path>) -> Result<PathBuf, Unrunnable> {
    if name.is_empty() {
        return Err(Unrunnable::NotFound("argv: the program's name is empty; expected a program".into()));
    }
    if name.contains('/') {
        return runnable(Path::new(name), directory).map(|()| name.into());
    }
    let path = path.unwrap_or(DEFAULT_PATH);
    let mut refused = None;
    for folder in path.split(':') {
        let candidate = Path::new(if folder.is_empty() { "." } else { folder }).join(name);
        match runnable(&candidate, directory) {
            Ok(()) => return Ok(candidate),
            Err(error @ Unrunnable::NotExecutable(_)) => refused = refused.or(Some(error)),
            Err(Unrunnable::NotFound(_)) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        Unrunnable::NotFound(format!("{name}: not found in PATH; check its spelling, or give its path"))
    }))
}

fn runnable(file: &Path, directory: Option<&Path>) -> Result<(), Unrunnable> {
    let seen = directory.map_or_else(|| file.to_owned(), |directory| directory.join(file));
    let shown = file.display();
    let found = match std::fs::metadata(&seen) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(Unrunnable::NotExecutable(format!("{shown}: permission denied")));
        }
        Err(_) => return Err(Unrunnable::NotFound(format!("{shown}: no such file"))),
    };
    if found.is_dir() {
        return Err(Unrunnable::NotExecutable(format!("{shown}: is a directory, not a program")));
    }
    let shown_path = CString::new(seen.as_os_str().as_bytes());
    let allowed = shown_path.is_ok_and(|path| {
        // SAFETY: `path` is a valid C string through the call.
        unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
    });
    if allowed && found.permissions().mode() & 0o111 != 0 {
        return Ok(());
    }
    Err(Unrunnable::NotExecutable(format!("{shown}: not executable; chmod +x it, or name its interpreter")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_in_path_in_order() {
        assert_eq!(program("true", Some("/nowhere:/bin"), None), Ok("/bin/true".into()));
        assert_eq!(program("sh", None, None).map(|found| found.ends_with("sh")), Ok(true));
    }

    #[test]
    fn a_relative_path_is_seen_from_the_directory() {
        assert_eq!(program("bin/true", Some(""), Some(Path::new("/usr"))), Ok("bin/true".into()));
        assert!(matches!(
            program("bin/true", Some(""), Some(Path::new("/proc"))),
            Err(Unrunnable::NotFound(_))
        ));
        assert_eq!(program("true", Some("bin"), Some(Path::new("/usr"))), Ok("bin/true".into()));
    }

    #[test]
    fn what_is_no_program_is_refused_with_the_reason() {
        assert!(matches!(program("/etc/passwd", None, None), Err(Unrunnable::NotExecutable(_))));
        assert!(matches!(program("/etc", None, None), Err(Unrunnable::NotExecutable(_))));
        assert!(matches!(program("", None, None), Err(Unrunnable::NotFound(_))));
        let error = program("no-such-program", Some("/bin"), None).unwrap_err().text();
        assert_eq!(error, "no-such-program: not found in PATH; check its spelling, or give its path");
    }

    #[test]
    fn changes_replace_add_and_remove() {
        let changes = BTreeMap::from([("PATH".into(), Some("/x".into())), ("HOME".into(), None)]);
        let environment = environment(&changes).unwrap();
        assert_eq!(variable(&environment, "PATH"), Some("/x"));
        assert_eq!(variable(&environment, "HOME"), None);
        assert_eq!(environment.iter().filter(|entry| entry.as_bytes().starts_with(b"PATH=")).count(), 1);
    }
}
