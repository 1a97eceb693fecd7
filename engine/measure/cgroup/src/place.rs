//! Where groups can be made.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Which control groups to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// v2 if it counts memory or I/O here, else v1, else v2.
    Auto,
    /// v1 only.
    V1,
    /// v2 only.
    V2,
}

/// v1 controllers that we read.
const V1_CONTROLLERS: [&str; 2] = ["cpuacct", "memory"];

/// Where the engine was started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// For each controller that can be used, the engine's group.
    V1(Vec<(&'static str, PathBuf)>),
    V2(V2Place),
}

/// In the hierarchy of v2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct V2Place {
    /// The engine's group.
    pub own: PathBuf,
    /// Whether a group can be made beside it, too.
    pub beside: bool,
    /// Controllers that its hierarchy offers there, and `cpu`, whose usage is always counted.
    pub controllers: Vec<String>,
}

impl Place {
    /// Looks where this process may make groups. The error says why nowhere.
    pub fn find(wanted: Wanted) -> Result<Place, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let (mounts, own) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
        let v1 = || find_v1(&mounts, &own);
        let v2 = || find_v2(&mounts, &own);
        match wanted {
            Wanted::V1 => v1(),
            Wanted::V2 => v2(),
            Wanted::Auto => match v2() {
                Ok(Place::V2(place))
                    if !place.controllers.iter().any(|name| name == "memory" || name == "io") =>
                {
                    v1().or(Ok(Place::V2(place)))
                }
                Err(why) => v1().map_err(|also| format!("{why}; {also}")),
                found => found,
            },
        }
    }
}

fn find_v1(mounts: &str, own: &str) -> Result<Place, String> {
    let mut refused = "no v1 hierarchy with cpuacct or memory is mounted".to_owned();
    let mut places = Vec::new();
    for controller in V1_CONTROLLERS {
        let Some(directory) = own_directory(mounts, own, Some(controller)) else {
            continue;
        };
        if is_writable(&directory) {
            places.push((controller, directory));
        } else {
            refused = not_writable(&directory);
        }
    }
    if places.is_empty() { Err(refused) } else { Ok(Place::V1(places)) }
}

fn find_v2(mounts: &str, own: &str) -> Result<Place, String> {
    let directory = own_directory(mounts, own, None).ok_or("no v2 hierarchy is mounted")?;
    let is_root = !directory.join("cgroup.events").exists();
    let parent = directory.parent().filter(|_| !is_root);
    let beside = parent.is_some_and(is_writable);
    if !is_writable(&directory) && !beside {
        return Err(not_writable(&directory));
    }
    // Below our own group a controller can only be enabled where no process is in the group, which is the root
    // only; beside it, those are there that our own group has.
    let offered = fs::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default();
    let usable = |name: &&str| ["memory", "io"].contains(name) && (is_root || beside);
    let mut controllers = vec!["cpu".to_owned()];
    controllers.extend(offered.split_whitespace().filter(usable).map(str::to_owned));
    Ok(Place::V2(V2Place { own: directory, beside, controllers }))
}

fn not_writable(directory: &Path) -> String {
    format!("{} is not writable; run as root, or in a group that is delegated to you", directory.display())
}

fn is_writable(directory: &Path) -> bool {
    CString::new(directory.as_os_str().as_bytes()).is_ok_and(|path| {
        // SAFETY: `path` is a valid C string through the call.
        unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) == 0 }
    })
}

/// The directory of this process's group for a v1 controller, or for v2 (None), from the text of
/// `/proc/self/mountinfo` and `/proc/self/cgroup`.
pub fn own_directory(mounts: &str, own: &str, controller: Option<&str>) -> Option<PathBuf> {
    let group = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match controller {
            Some(controller) => names.split(',').any(|name| name == controller),
            None => number == "0" && names.is_empty(),
        };
        is_it.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        let is_it = match controller {
            Some(controller) => kind == "cgroup" && options.split(',').any(|option| option == controller),
            None => kind == "cgroup2",
        };
        // A container may see only a part of the hierarchy: its root is then not that of the paths.
        let below = group.strip_prefix(root.trim_end_matches('/')).unwrap_or(group);
        is_it.then(|| Path::new(point).join(below.trim_start_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 1 0:22 / /proc rw - proc proc rw
35 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
36 30 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
37 30 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
";
    const OWN: &str =
        "5:memory:/docker/abc/deep\n4:cpu,cpuacct:/\n1:name=systemd:/a\n0::/user.slice/user-1000.slice\n";

    #[test]
    fn own_groups_are_found_in_each_hierarchy() {
        let found = |controller| own_directory(MOUNTS, OWN, controller);
        assert_eq!(found(Some("cpuacct")), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(found(Some("memory")), Some("/sys/fs/cgroup/memory/deep".into()));
        assert_eq!(found(None), Some("/sys/fs/cgroup/unified/user.slice/user-1000.slice".into()));
        assert_eq!(found(Some("blkio")), None);
        assert_eq!(own_directory("", OWN, None), None);
    }
}
