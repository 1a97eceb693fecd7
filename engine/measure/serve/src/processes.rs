//! The CPU time that processes and kernel threads of some names have had, from /proc.

use std::fs;
use std::path::Path;

use etude_protocol::Process;

/// What the kernel keeps of a program's name, B.
const NAME_BYTES: usize = 15;

/// /proc counts in ticks of 10 ms on every machine that this runs on (USER_HZ).
const TICK_NS: u64 = 10_000_000;

/// Those that have one of `names` and live, in the order of their numbers. Who ends meanwhile may be missing.
pub(crate) fn named(names: &[String], proc: &Path) -> Vec<Process> {
    let Ok(entries) = fs::read_dir(proc) else {
        return Vec::new();
    };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<_> = pids.filter_map(|pid| process(pid, names, proc)).collect();
    found.sort_by_key(|process| process.pid);
    found
}

fn process(pid: i32, names: &[String], proc: &Path) -> Option<Process> {
    let directory = proc.join(pid.to_string());
    let stat = fs::read(directory.join("stat")).ok()?;
    let process =
        parse(pid, &stat).filter(|process| names.iter().any(|name| is_called(&process.name, name)))?;
    let tasks = fs::read_dir(directory.join("task")).ok()?.flatten();
    let thread = |entry: fs::DirEntry| {
        let on_cpu = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, on_cpu.split(' ').next()?.parse().ok()?))
    };
    Some(Process { threads: tasks.filter_map(thread).collect(), ..process })
}

/// /proc/PID/stat without its threads; None if it is none, or of one that has ended. The name may hold blanks and brackets: the last one ends it.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let begin = stat.iter().position(|&byte| byte == b'(')? + 1;
    let end = stat.iter().rposition(|&byte| byte == b')').filter(|&end| end >= begin)?;
    let rest = String::from_utf8_lossy(&stat[end + 1..]);
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    if matches!(words.first(), Some(&("Z" | "X"))) {
        return None;
    }
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    Some(Process {
        pid,
        name: String::from_utf8_lossy(&stat[begin..end]).into_owned(),
        began: number(19)?,
        cpu_ns: number(11)?.checked_add(number(12)?)?.checked_mul(TICK_NS)?,
        threads: Vec::new(),
    })
}

fn is_called(found: &str, wanted: &str) -> bool {
    found == wanted || (wanted.len() > NAME_BYTES && found.as_bytes() == &wanted.as_bytes()[..NAME_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_whatever_it_likes() {
        let stat = b"7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 99 0 0";
        let process = parse(7, stat).expect("a process");
        assert_eq!((process.name.as_str(), process.began, process.cpu_ns), ("a) b (c", 99, 70_000_000));
    }

    #[test]
    fn a_zombie_has_ended() {
        assert_eq!(parse(7, b"7 (a) Z 1 7 7 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 99 0 0"), None);
    }

    #[test]
    fn the_kernel_cuts_names() {
        assert!(is_called("a-very-long-nam", "a-very-long-name-indeed"));
        assert!(!is_called("a-very", "a-very-long-name-indeed") && !is_called("nfsd4", "nfsd"));
    }

    #[test]
    fn this_process_has_had_its_threads_time() {
        let own = fs::read_to_string("/proc/self/comm").expect("Linux").trim_end().to_owned();
        let found = named(&[own], Path::new("/proc"));
        let process =
            found.iter().find(|process| process.pid == std::process::id() as i32).expect("this one");
        assert!(process.threads.iter().any(|&(_, ns)| ns > 0), "{process:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_of_a_stat_ends_the_engine(stat in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = parse(1, &stat);
        }
    }
}
