//! The state of the kernel, compared with the model's.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use etude_fsmodel::{Model, NodeId, NodeKind, flags, key};

use crate::absolute;

/// Files of the kernel by those of the model, found while comparing.
pub struct KernelState {
    base: Vec<u8>,
    inodes: HashMap<NodeId, (u64, u64)>,
    nodes: HashMap<(u64, u64), NodeId>,
    /// Names when the whole tree was last looked through.
    names: usize,
}

type Difference = Result<(), String>;

macro_rules! same {
    ($kernel:expr, $model:expr, $($what:tt)+) => {{
        let (kernel, model) = (&$kernel, &$model);
        if kernel != model {
            return Err(format!("{}: the kernel has {kernel:?}, the model {model:?}", format!($($what)+)));
        }
    }};
}

impl KernelState {
    pub fn new(place: &Path) -> KernelState {
        let top = place.parent().expect("it is in another");
        let base = key(top.as_os_str().as_bytes());
        KernelState { base, inodes: HashMap::new(), nodes: HashMap::new(), names: 0 }
    }

    pub fn compare(&mut self, model: &Model) -> Difference {
        self.descriptors(model)?;
        let here = std::env::current_dir().ok();
        let kernel = here.as_ref().map(|path| key(path.as_os_str().as_bytes()));
        same!(kernel.as_deref(), model.place(0), "working directory");
        self.names(model)?;
        if model.names.below(&self.base).count() != self.names {
            self.compare_all(model)?;
        }
        Ok(())
    }

    /// All names that there are.
    pub fn compare_all(&mut self, model: &Model) -> Difference {
        let mut found = BTreeSet::new();
        let mut left = vec![absolute(&self.base)];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(&directory).map_err(|error| error.to_string())?.flatten() {
                found.insert(key(entry.path().as_os_str().as_bytes()));
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    left.push(entry.path());
                }
            }
        }
        let known: BTreeSet<Vec<u8>> = model.names.below(&self.base).map(|(path, _)| path.to_vec()).collect();
        self.names = known.len();
        let shown = |paths: BTreeSet<Vec<u8>>| -> Vec<String> {
            paths.iter().map(|path| path.escape_ascii().to_string()).collect()
        };
        same!(shown(found), shown(known), "names");
        Ok(())
    }

    fn descriptors(&mut self, model: &Model) -> Difference {
        let table = &model.processes[&0].table;
        same!(open_descriptors(), table.numbers().collect::<BTreeSet<i32>>(), "open descriptors");
        for (descriptor, slot) in table.iter().filter(|(descriptor, _)| *descriptor > 2) {
            let opened = &model.opened[slot.behind as usize];
            // SAFETY: these look at a number.
            let (own, set) = unsafe {
                (libc::fcntl(descriptor, libc::F_GETFD), libc::fcntl(descriptor, libc::F_GETFL) as u64)
            };
            same!(own & libc::FD_CLOEXEC != 0, slot.closes_at_exec, "FD_CLOEXEC of {descriptor}");
            same!(set & flags::O_APPEND, opened.flags & flags::O_APPEND, "O_APPEND of {descriptor}");
            let Some(node) = opened.node else { continue };
            same!(set & flags::O_PATH, opened.flags & flags::O_PATH, "O_PATH of {descriptor}");
            let mut found = MaybeUninit::<libc::stat>::uninit();
            // SAFETY: the kernel fills it if it returns 0.
            let found = unsafe {
                same!(libc::fstat(descriptor, found.as_mut_ptr()), 0, "fstat of {descriptor}");
                found.assume_init()
            };
            self.is(node, (found.st_dev, found.st_ino), &format!("file behind {descriptor}"))?;
            let named = model.names.node(node).names.len() as u64;
            if let NodeKind::File { bytes, .. } = model.names.node(node).kind {
                same!(found.st_size as u64, bytes, "size behind {descriptor}");
                same!(found.st_nlink as u64, named, "names behind {descriptor}");
                if opened.flags & flags::O_PATH == 0 {
                    // SAFETY: it moves nothing.
                    let position = unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
                    same!(position as u64, opened.position, "position of {descriptor}");
                }
            } else if model.names.node(node).kind == NodeKind::Directory {
                same!(found.st_nlink > 0, named > 0, "a name behind {descriptor}");
            }
        }
        Ok(())
    }

    fn names(&mut self, model: &Model) -> Difference {
        for (path, id) in model.names.below(&self.base) {
            let (shown, node) = (path.escape_ascii(), model.names.node(id));
            let at = absolute(path);
            let found = at.symlink_metadata().map_err(|error| format!("{shown}: {error}"))?;
            self.is(id, (found.dev(), found.ino()), &format!("{shown}"))?;
            match &node.kind {
                NodeKind::File { bytes, .. } => {
                    same!(found.is_file(), true, "{shown} is a file");
                    same!(found.len(), *bytes, "size of {shown}");
                    same!(found.nlink(), node.names.len() as u64, "names of {shown}");
                }
                NodeKind::Directory => same!(found.is_dir(), true, "{shown} is a directory"),
                NodeKind::Link(to) => {
                    let target = std::fs::read_link(&at).map_err(|error| format!("{shown}: {error}"))?;
                    same!(target.as_os_str().as_bytes(), &to[..], "target of {shown}");
                }
            }
        }
        Ok(())
    }

    /// A file of the model is one of the kernel, always the same.
    fn is(&mut self, node: NodeId, inode: (u64, u64), what: &str) -> Difference {
        same!(inode, *self.inodes.entry(node).or_insert(inode), "inode of {what}");
        // The number of a file that is gone may be given anew.
        self.nodes.insert(inode, node);
        Ok(())
    }
}

/// The list of /proc/self/fd, without the descriptor by which it is read.
fn open_descriptors() -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    // SAFETY: the directory is open until it is closed, an entry lives until the next is read.
    unsafe {
        let directory = libc::opendir(c"/proc/self/fd".as_ptr());
        assert!(!directory.is_null(), "/proc is mounted");
        while let Some(entry) = libc::readdir(directory).as_ref() {
            let name = CStr::from_ptr(entry.d_name.as_ptr()).to_str().unwrap_or_default();
            found.extend(name.parse::<i32>().ok().filter(|number| *number != libc::dirfd(directory)));
        }
        libc::closedir(directory);
    }
    found
}
