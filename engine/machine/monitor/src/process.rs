//! What the kernel tells of one process.

use crate::text::{lines, number, words};

/// From `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat<'a> {
    pub name: &'a [u8],
    pub parent: u32,
    /// CPU time of all its threads, also of those that ended, ticks.
    pub used: i64,
    /// CPU time of its children that ended and were waited for, and of theirs, ticks.
    pub waited: i64,
    pub threads: i64,
    /// When it started, ticks since boot.
    pub start: i64,
    /// Resident pages.
    pub pages: i64,
}

impl Stat<'_> {
    pub fn read(text: &[u8]) -> Option<Stat<'_>> {
        // A name may have blanks and brackets, and none of what follows has.
        let (open, close) = (crate::text::find(text, b'(')?, text.iter().rposition(|byte| *byte == b')')?);
        let name = text.get(open + 1..close)?;
        let mut fields = words(&text[close + 1..]).map(number);
        let mut nth = |skip: usize| fields.nth(skip).flatten();
        // proc(5) counts from 1, and state is 3: parent 4, utime 14 to cstime 17, num_threads 20, starttime 22, rss 24.
        let parent = nth(1)?;
        let (user, system) = (nth(9)?, nth(0)?);
        // Those of children may be written as negative numbers by old kernels.
        let (waited_user, waited_system) = (nth(0).unwrap_or(0), nth(0).unwrap_or(0));
        let (threads, start) = (nth(2)?, nth(1)?);
        Some(Stat {
            name,
            parent: u32::try_from(parent).ok()?,
            used: user.checked_add(system)?,
            waited: waited_user.checked_add(waited_system)?,
            threads,
            start,
            pages: nth(1)?,
        })
    }
}

/// For how long the first thread of a process ran so far, ns, from `/proc/PID/schedstat`.
pub fn ran_ns(text: &[u8]) -> Option<i64> {
    words(text).next().and_then(number)
}

/// Bytes that a process read from and wrote to block devices, from `/proc/PID/io`.
pub fn io(text: &[u8]) -> Option<(i64, i64)> {
    let valued = |name: &str| lines(text).find_map(|line| line.strip_prefix(name.as_bytes()));
    Some((number(valued("read_bytes: ")?)?, number(valued("write_bytes: ")?)?))
}

/// The group of version 2, else that of the first hierarchy, from `/proc/PID/cgroup`.
pub fn cgroup(text: &[u8]) -> Option<&[u8]> {
    let whole = lines(text).find_map(|line| line.strip_prefix(b"0::"));
    whole
        .filter(|path| *path != b"/")
        .or_else(|| lines(text).find_map(|line| line.splitn(3, |byte| *byte == b':').nth(2)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TAIL: &str = "R 20457 20457 17032 0 -1 4194304 100 0 0 0 11 12 13 14 20 0 5 0 2378290 3133440 410 18446744073709551615 9";

    #[test]
    fn a_process_may_be_called_anything() {
        let text = format!("20462 (a) b (c\n) {TAIL}\n");
        let found = Stat::read(text.as_bytes()).unwrap();
        assert_eq!(found.name, b"a) b (c\n");
        assert_eq!((found.parent, found.used, found.waited), (20_457, 23, 27));
        assert_eq!((found.threads, found.start, found.pages), (5, 2_378_290, 410));
    }

    #[test]
    fn a_torn_text_is_none() {
        for wrong in ["", "1 (a", "1 )a(", "1 (a) R 0", "1 (a) R x 20457 17032"] {
            assert_eq!(Stat::read(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_small_files_are_read() {
        assert_eq!(ran_ns(b"164155 63034 2\n"), Some(164_155));
        let text = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        assert_eq!(io(text), Some((5, 6)));
        assert_eq!(io(b""), None);
        assert_eq!(cgroup(b"4:memory:/a\n0::/b:c\n"), Some(&b"/b:c"[..]));
        assert_eq!(cgroup(b"4:memory:/a\n0::/\n"), Some(&b"/a"[..]), "a machine that has both");
        assert_eq!(cgroup(b"0::/\n"), Some(&b"/"[..]));
        assert_eq!(cgroup(b""), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9]{1,5} \\([\\PC]{0,9}\\)( [0-9\\PC]{1,20}){0,30}", bytes: Vec<u8>) {
            for text in [text.as_bytes(), &bytes] {
                let _ = (Stat::read(text), ran_ns(text), io(text), cgroup(text));
            }
        }

        #[test]
        fn fields_are_read_as_the_kernel_wrote_them(name: Vec<u8>, user in 0..i64::MAX / 2, system in 0..i64::MAX / 2) {
            let mut text = b"7 (".to_vec();
            text.extend(&name);
            text.extend(format!(") {}", TAIL.replace("11 12", &format!("{user} {system}"))).bytes());
            let found = Stat::read(&text).unwrap();
            prop_assert_eq!((found.name, found.used), (&name[..], user + system));
        }
    }
}
