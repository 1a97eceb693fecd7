//! The file of a trace: made anew, and looked for when the program has ended.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A new file, known by more than its name.
pub struct Output {
    pub path: PathBuf,
    identity: (u64, u64),
}

impl Output {
    /// Makes it where it was asked for, or where traces of this program go.
    ///
    /// # Errors
    /// It is there already, or cannot be made: one line.
    pub fn make(asked: Option<&Path>, program: &Path) -> Result<(Output, File), String> {
        let path = asked.map_or_else(|| default_output(program), Path::to_owned);
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let found = made.and_then(|file| Ok((identity(&file.metadata()?), file)));
        let (identity, file) = found
            .map_err(|error| format!("{}: cannot be made: {error}; name another with -o", path.display()))?;
        Ok((Output { path, identity }, file))
    }

    /// Why it cannot be read where it was made.
    pub fn lost(&self) -> Option<String> {
        match std::fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity => None,
            Ok(_) => Some("another file has taken its place".into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some("it was removed, or moved".into()),
            Err(error) => Some(error.to_string()),
        }
    }
}

fn identity(found: &std::fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// A new file that the program does not come across where it works: in the user's state directory.
fn default_output(path: &Path) -> PathBuf {
    let name = path.file_name().map_or("program".into(), |name| name.to_string_lossy());
    let time: String =
        crate::rewrite::clock::now().chars().filter(|c| c.is_ascii_alphanumeric()).take(15).collect();
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
    let directory =
        default_directory(state, &std::env::temp_dir(), &std::env::current_dir().unwrap_or_default());
    // What goes wrong here is said when the file cannot be made.
    let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    directory.join(format!("{name}-{time}Z.trace"))
}

/// Where traces go that were given no name: not below the directory in which the program runs, if that can be.
fn default_directory(state: Option<PathBuf>, temporary: &Path, cwd: &Path) -> PathBuf {
    let state = state.filter(|state| state.is_absolute() && !state.starts_with(cwd));
    state.map_or_else(|| temporary.to_owned(), |state| state.join("etude/traces"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::default_directory;

    #[test]
    fn a_trace_without_a_name_is_not_where_the_program_works() {
        let at = |state: Option<&str>, cwd: &str| {
            default_directory(state.map(PathBuf::from), Path::new("/tmp"), Path::new(cwd))
        };
        let own = PathBuf::from("/home/u/.local/state/etude/traces");
        assert_eq!(at(Some("/home/u/.local/state"), "/home/u/src"), own);
        assert_eq!(at(Some("/home/u/.local/state"), "/home/u2"), own);
        for cwd in ["/home/u", "/home/u/.local/state", "/"] {
            assert_eq!(at(Some("/home/u/.local/state"), cwd), PathBuf::from("/tmp"), "{cwd}");
        }
        assert_eq!(at(None, "/home/u"), PathBuf::from("/tmp"));
        assert_eq!(at(Some("state"), "/home/u"), PathBuf::from("/tmp"));
    }
}
