//! The machine and its system, as the lab's programs describe them. What cannot be known is null.
//!
//! This reads /proc and /sys, so it is called for a description only, never beside a measurement.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::buffer::physical_bytes;
use crate::pin;
use crate::report::Container;
use crate::tlb::tlbs;

/// `hw_configuration`: sizes in bytes, the clock in Hz.
pub fn hardware() -> Container {
    let cpuinfo = read("/proc/cpuinfo");
    let cpu = pin::allowed().first().copied().unwrap_or(0);
    let tlbs: Vec<_> = tlbs()
        .iter()
        .map(|tlb| {
            json!({"kind": tlb.kind, "level": tlb.level, "page_bytes": tlb.page_bytes, "entries": tlb.entries})
        })
        .collect();
    let members = vec![
        ("machine", json!(uname().machine)),
        ("model", json!(model(&cpuinfo))),
        ("ncpu", json!(configured(libc::_SC_NPROCESSORS_ONLN))),
        ("physmem", json!(physical_bytes())),
        ("pagesizes", json!(page_sizes())),
        ("clock", json!(clock_hz(cpu, &cpuinfo))),
        ("caches", Value::Array(caches(Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}/cache"))))),
        ("tlb", Value::Array(tlbs)),
    ];
    Container { name: "hw_configuration", members }
}

/// `os_configuration`; with the file system on which a path is or would be.
pub fn system(path: Option<&Path>) -> Container {
    let uname = uname();
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let mut members = vec![
        ("ostype", json!(uname.sysname)),
        ("osrelease", json!(uname.release)),
        ("version", json!(uname.version)),
        ("ident", json!(distribution(&read("/etc/os-release")))),
        ("clocksource", json!(source.as_deref().map(str::trim))),
        ("hugepages", json!(huge_pages())),
    ];
    if let Some(path) = path {
        let mount = mount_of(&absolute(path), &read("/proc/self/mountinfo").unwrap_or_default());
        let [kind, device, point] = mount
            .map_or([None, None, None], |mount| [Some(mount.kind), Some(mount.device), Some(mount.point)]);
        members.extend([("fstype", json!(kind)), ("device", json!(device)), ("mountpoint", json!(point))]);
    }
    Container { name: "os_configuration", members }
}

fn read(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

struct Uname {
    sysname: String,
    release: String,
    version: String,
    machine: String,
}

fn uname() -> Uname {
    // SAFETY: `libc::utsname` is arrays of bytes, for which zeros are values; the place for the answer is valid.
    let name = unsafe {
        let mut name: libc::utsname = mem::zeroed();
        libc::uname(&mut name);
        name
    };
    // SAFETY: the kernel ends each field with a zero byte.
    let text =
        |field: &[libc::c_char]| unsafe { CStr::from_ptr(field.as_ptr()) }.to_string_lossy().into_owned();
    Uname {
        sysname: text(&name.sysname),
        release: text(&name.release),
        version: text(&name.version),
        machine: text(&name.machine),
    }
}

/// The first value of a field of /proc/cpuinfo.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(field, _)| field.trim() == name).map(|(_, value)| value.trim())
}

fn model(cpuinfo: &Option<String>) -> Option<String> {
    let stated = cpuinfo.as_deref().and_then(|text| field(text, "model name")).map(str::to_owned);
    // Boards with a device tree, most of them Arm, have no name of the processor but one of the board.
    stated.or_else(|| read("/proc/device-tree/model").map(|text| text.trim_end_matches('\0').to_owned()))
}

fn clock_hz(cpu: usize, cpuinfo: &Option<String>) -> Option<u64> {
    let most_khz = read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"));
    let most_khz = most_khz.and_then(|text| text.trim().parse::<u64>().ok());
    let now_mhz = cpuinfo.as_deref().and_then(|text| field(text, "cpu MHz")?.parse::<f64>().ok());
    most_khz.map(|khz| khz * 1_000).or(now_mhz.map(|mhz| (mhz * 1e6) as u64))
}

fn configured(name: libc::c_int) -> u64 {
    // SAFETY: sysconf takes any number.
    unsafe { libc::sysconf(name) as u64 }
}

/// The base page and the huge ones, in order.
fn page_sizes() -> Vec<u64> {
    let base = configured(libc::_SC_PAGESIZE);
    let names = fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    let huge = names.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some(name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok()? << 10)
    });
    let mut sizes: Vec<_> = std::iter::once(base).chain(huge).collect();
    sizes.sort_unstable();
    sizes
}

/// What is chosen of `always [madvise] never`.
fn huge_pages() -> Option<String> {
    let text = read("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(chosen, _)| chosen.to_owned())
}

/// The caches of one CPU, in the kernel's order: from the nearest on.
fn caches(directory: &Path) -> Vec<Value> {
    let member = |index: usize, name: &str| {
        let text = fs::read_to_string(directory.join(format!("index{index}/{name}"))).ok()?;
        Some(text.trim().to_owned())
    };
    let cache = |index| {
        let level: u64 = member(index, "level")?.parse().ok()?;
        let kind = member(index, "type");
        let size = member(index, "size").and_then(|text| etude_quantity::size(&text).ok());
        let shared_by = member(index, "shared_cpu_list").map(|list| cpus(&list));
        Some(json!({"level": level, "type": kind, "size_bytes": size, "shared_by": shared_by}))
    };
    (0..).map_while(cache).collect()
}

/// How many CPUs a list like `0-3,8` names.
fn cpus(list: &str) -> u64 {
    let count = |range: &str| match range.split_once('-') {
        Some((first, last)) => Some(last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)? + 1),
        None => range.parse::<u64>().ok().map(|_| 1),
    };
    list.split(',').filter_map(count).sum()
}

fn distribution(release: &Option<String>) -> Option<String> {
    let mut lines = release.as_deref()?.lines();
    lines.find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"').to_owned())
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    kind: String,
    device: String,
    point: String,
}

/// A path, or where it would be, without links.
fn absolute(path: &Path) -> PathBuf {
    let parent =
        || path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let existing = fs::canonicalize(path).ok().or_else(|| fs::canonicalize(parent()?).ok());
    existing.unwrap_or_else(|| path.to_owned())
}

/// The innermost mount of /proc/self/mountinfo (proc(5)) above a path; of several at one place, the last.
fn mount_of(path: &Path, mountinfo: &str) -> Option<Mount> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (place, what) = line.split_once(" - ")?;
        let point = unescaped(place.split(' ').nth(4)?);
        let mut what = what.split(' ');
        Some((point, what.next()?.to_owned(), unescaped(what.next()?)))
    });
    let above = mounts.filter(|(point, _, _)| path.starts_with(OsStr::from_bytes(point)));
    let (point, kind, device) = above.max_by_key(|(point, _, _)| point.len())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some(Mount { kind, device: text(device), point: text(point) })
}

/// Blanks and the like are written as `\040`.
fn unescaped(field: &str) -> Vec<u8> {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 4).and_then(|digits| str::from_utf8(digits).ok());
        let code = digits.filter(|_| *byte == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(*byte));
        at += if code.is_some() { 4 } else { 1 };
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOUNTS: &str = "\
27 1 254:0 / / rw - ext4 /dev/vda rw
30 27 0:30 / /data rw shared:1 - tmpfs first rw
31 27 0:31 / /data rw shared:1 - xfs /dev/vdb rw
32 27 0:32 / /data/my\\040disk rw - btrfs /dev/v\\134c rw
33 27 0:33 / /database rw - ext2 /dev/vdd rw
";

    fn mount(path: &str) -> [String; 3] {
        let mount = mount_of(Path::new(path), MOUNTS).expect("all is below the root");
        [mount.kind, mount.device, mount.point]
    }

    #[test]
    fn a_path_is_on_the_innermost_mount_that_was_made_last() {
        assert_eq!(mount("/home/x"), ["ext4", "/dev/vda", "/"]);
        assert_eq!(mount("/data/x"), ["xfs", "/dev/vdb", "/data"]);
        assert_eq!(mount("/data/my disk/x"), ["btrfs", "/dev/v\\c", "/data/my disk"]);
        assert_eq!(mount("/data/my"), ["xfs", "/dev/vdb", "/data"]);
        assert_eq!(mount_of(Path::new("/x"), "nonsense\n - x\n"), None);
    }

    proptest! {
        #[test]
        fn no_mountinfo_makes_it_fall(text in "[ -~\\\\\n]*") {
            let _ = mount_of(Path::new("/x"), &text);
            let _ = unescaped(&text);
        }
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!([cpus("0"), cpus("0-3"), cpus("0-1,8-9,16")], [1, 4, 5]);
        assert_eq!(cpus("3-1"), 0);
    }

    #[test]
    fn this_machine_is_described() {
        let hardware = hardware();
        let member =
            |name| hardware.members.iter().find(|(member, _)| *member == name).map(|(_, value)| value);
        assert!(member("ncpu").and_then(Value::as_u64).is_some_and(|cpus| cpus >= 1));
        assert!(member("physmem").and_then(Value::as_u64).is_some_and(|bytes| bytes > 1 << 26));
        assert!(member("pagesizes").is_some_and(|sizes| sizes[0].as_u64().is_some_and(|base| base >= 4096)));
        let system = system(Some(Path::new("/proc/uptime")));
        assert!(system.members.contains(&("fstype", json!("proc"))), "{system:?}");
        assert!(system.members.contains(&("ostype", json!("Linux"))), "{system:?}");
    }
}
