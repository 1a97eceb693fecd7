//! Whether there is room, before anything is written.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a file system has left for this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Space {
    pub bytes: u64,
    /// None: it makes inodes as they are wanted (btrfs).
    pub nodes: Option<u64>,
    pub block: u64,
}

/// What is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    pub bytes: u64,
    pub nodes: u64,
}

impl Space {
    /// # Errors
    /// The file system does not say (statvfs(3)).
    pub fn of(directory: &Path) -> io::Result<Space> {
        let path = CString::new(directory.as_os_str().as_bytes())?;
        // SAFETY: the path lives through the call, and what is filled has room for it.
        let found = unsafe {
            let mut found: libc::statvfs = std::mem::zeroed();
            if libc::statvfs(path.as_ptr(), &mut found) != 0 {
                return Err(io::Error::last_os_error());
            }
            found
        };
        let block = found.f_frsize.max(1);
        let bytes = found.f_bavail.saturating_mul(block);
        Ok(Space { bytes, nodes: (found.f_files > 0).then_some(found.f_favail), block })
    }
}

impl Need {
    /// # Errors
    /// There is not enough, in one line.
    pub fn check(&self, space: &Space, directory: &Path) -> Result<(), String> {
        let short = if self.bytes > space.bytes {
            format!(
                "{} are missing for the file set, and {} are free",
                mebibytes(self.bytes),
                mebibytes(space.bytes)
            )
        } else if space.nodes.is_some_and(|free| self.nodes > free) {
            format!(
                "{} inodes are missing for the file set, and {} are free",
                self.nodes,
                space.nodes.unwrap_or(0)
            )
        } else {
            return Ok(());
        };
        let help =
            "name a directory with more room, a lower --rate or --sized-for, or a smaller set by --set";
        Err(format!("--directory {}: {short}; {help}", directory.display()))
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_one_line_with_both_amounts() {
        let space = Space { bytes: 10 << 20, nodes: Some(5), block: 4096 };
        let said = |bytes, nodes| Need { bytes, nodes }.check(&space, Path::new("/d"));
        assert_eq!(said(10 << 20, 5), Ok(()));
        let line = said((10 << 20) + 1, 5).unwrap_err();
        assert!(line.contains("10.0 MiB are free") && !line.contains('\n'), "{line}");
        assert!(said(0, 6).unwrap_err().contains("6 inodes are missing for the file set, and 5 are free"));
        let endless = Space { nodes: None, ..space };
        assert_eq!(Need { bytes: 0, nodes: 1 << 40 }.check(&endless, Path::new("/d")), Ok(()));
    }

    #[test]
    fn the_space_of_a_directory_is_known() {
        let space = Space::of(Path::new("/proc/self")).unwrap();
        assert_eq!(space.bytes, 0);
        assert!(Space::of(Path::new("/nowhere/at/all")).is_err());
    }
}
