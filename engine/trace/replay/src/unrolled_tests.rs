use etude_script::Script;

use super::*;

fn script(lines: &str) -> Script {
    let text = format!("etude script 1\n{lines}");
    etude_script::parse("s", text.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}")).script
}

fn roll(lines: &str) -> Roll {
    Roll::read(compile(&script(lines), Vec::new()).unwrap().0).unwrap()
}

fn steps(roll: &Roll) -> Vec<Step> {
    let mut steps = Vec::new();
    unrolled(roll, |step, _| steps.push(step)).unwrap();
    steps
}

fn text(steps: &[Step]) -> Vec<String> {
    let line = |step: &Step| {
        let mut text = format!("{}: ", step.thread);
        etude_script::step_text(&mut text, step);
        text
    };
    steps.iter().map(line).collect()
}

const FILES: &str = "file \"a\" 5000\nfile \"usr/lib/b\" 70000\nfile \"usr/c\" 9\ndirectory \"d\"\n";

const THREADS: &str = "0: openat(AT_FDCWD, \"a\", O_RDWR) = 3 <0.000002000>\n\
    0: fork(1)\n\
    0: start(2)\n\
    1: compute(0.030000000)\n\
    1: write(3, 1000) = 1000 <0.000010000>\n\
    1: close(3) = 0 <0.000001000>\n\
    2: pread64(3, 1000, 0) = 1000 <0.000003000>\n\
    0: fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=100}) = 0 <0.000001000>\n\
    0: pipe2([5, 6], O_CLOEXEC) = 0 <0.000001000>\n\
    0: sendfile(6, 3, [100], 50) = 50 <0.000001000>\n\
    2: unlink(\"a\") = 0 <0.000001000>\n\
    0: exec()\n\
    0: wait(1)\n\
    0: close(3) = 0 <0.000001000>\n";

#[test]
fn steps_are_those_that_were_compiled() {
    let lines = format!("{FILES}{THREADS}");
    let (was, again) = (script(&lines), steps(&roll(&lines)));
    for thread in 0..3 {
        let of = |steps: &[Step]| -> Vec<Step> {
            let own = |step: &&Step| step.thread == thread && !matches!(step.action, Action::Compute(_));
            steps.iter().filter(own).cloned().collect()
        };
        assert_eq!(text(&of(&again)), text(&of(&was.steps)));
    }
    let at = |word: &str| text(&again).iter().position(|line| line.contains(word)).unwrap();
    assert!(at("write(3") < at("pread64"), "what waits for data comes after them");
    assert!(at("fork(1)") < at("1: "));
    assert!(at("1: close") < at("wait(1)"));
}

#[test]
fn a_roll_of_unrolled_steps_is_the_same_roll() {
    let first = roll(&format!("{FILES}{THREADS}"));
    let steps = steps(&first);
    let script = Script { needed: first.needed.clone(), steps, ..Script::default() };
    let second = Roll::read(compile(&script, Vec::new()).unwrap().0).unwrap();
    assert_eq!(second.marks, first.marks);
    assert_eq!(second.names, first.names);
    assert_eq!(second.needed, first.needed);
    let events = |roll: &Roll, thread| {
        let (mut reading, mut all, mut events) = (Reading::new(thread), Vec::new(), Vec::new());
        while reading.more(roll) {
            reading.read(roll, &mut events).unwrap();
            all.extend(events.iter().cloned());
        }
        all
    };
    for thread in 0..3 {
        assert_eq!(events(&second, thread), events(&first, thread));
    }
}

fn read_only(calls: &str) -> Vec<String> {
    let files = untouched(&roll(&format!("{FILES}{calls}"))).unwrap();
    let mut files: Vec<_> = files.into_iter().map(|path| String::from_utf8(path).unwrap()).collect();
    files.sort();
    files
}

const ALL: [&str; 3] = ["a", "usr/c", "usr/lib/b"];
const BUT_A: [&str; 2] = ["usr/c", "usr/lib/b"];

#[test]
fn files_that_are_read_listed_looked_at_and_mapped_are_untouched() {
    let open = "openat(AT_FDCWD, \"a\", O_RDONLY|O_CLOEXEC) = 3 <0.000001>\n";
    for calls in [
        "",
        "read(3, 100) = 100 <0.000001>\n",
        "fstat(3) = 0 <0.000001>\nlseek(3, 0, SEEK_END) = 5000 <0.000001>\n",
        "stat(\"usr/c\") = 0 <0.000001>\naccess(\"usr/lib/b\", W_OK) = 0 <0.000001>\n",
        "openat(AT_FDCWD, \"d\", O_RDONLY|O_DIRECTORY) = 4 <0.000001>\ngetdents64(4, 1024) = 48 <0.000001>\n",
        "openat(AT_FDCWD, \"new\", O_WRONLY|O_CREAT, 0644) = 4 <0.000001>\ncopy_file_range(3, NULL, 4, NULL, 99, 0) = 99 <0.000001>\n",
        "rename(\"usr/lib\", \"d/lib\") = 0 <0.000001>\n",
    ] {
        assert_eq!(read_only(&format!("{open}{calls}")), ALL, "{calls}");
    }
}

#[test]
fn files_that_a_call_may_change_move_or_lock_are_not() {
    for calls in [
        "openat(AT_FDCWD, \"a\", O_RDWR) = 3 <0.000001>\n",
        "openat(AT_FDCWD, \"a\", O_RDONLY|O_TRUNC) = 3 <0.000001>\n",
        "openat(AT_FDCWD, \"a\", O_WRONLY) = -1 EACCES <0.000001>\n",
        "openat(AT_FDCWD, \"d/../a\", O_RDONLY) = 3 <0.000001>\nfchmod(3, 0600) = 0 <0.000001>\n",
        "openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000001>\nflock(3, LOCK_EX) = 0 <0.000001>\n",
        "openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000001>\nfsetxattr(3, \"user.x\", 1, 0) = 0 <0.000001>\n",
        "truncate(\"a\", 10) = 0 <0.000001>\n",
        "chmod(\"a\", 0600) = 0 <0.000001>\n",
        "utimensat(AT_FDCWD, \"a\", 0) = 0 <0.000001>\n",
        "unlink(\"a\") = 0 <0.000001>\n",
        "rename(\"a\", \"e\") = 0 <0.000001>\n",
        "rename(\"d/x\", \"a\") = 0 <0.000001>\n",
        "link(\"a\", \"e\") = 0 <0.000001>\n",
        "rename(\"usr\", \"f\") = 0 <0.000001>\nrename(\"f\", \"usr\") = 0 <0.000001>\nunlink(\"a\") = 0 <0.000001>\n",
    ] {
        assert_eq!(read_only(calls), BUT_A, "{calls}");
    }
}

#[test]
fn a_part_has_calls_on_files_below_and_what_they_need() {
    let lines = format!(
        "{FILES}openat(AT_FDCWD, \"a\", O_RDWR) = 3 <0.000001>\n\
         openat(AT_FDCWD, \"usr/lib/b\", O_RDONLY) = 4 <0.000001>\n\
         read(4, 100) = 100 <0.000005>\nread(3, 100) = 100 <0.000001>\nclose(4) = 0 <0.000001>\n\
         stat(\"usr/c\") = 0 <0.000001>\nclose(3) = 0 <0.000001>\n"
    );
    let whole = roll(&lines);
    let part = |directories: &[&str]| {
        let directories: Vec<_> = directories.iter().map(|each| each.as_bytes().to_vec()).collect();
        only_below(&whole, &directories).map(|part| {
            let calls = steps(&part).into_iter().filter(|step| matches!(step.action, Action::Call(_)));
            let calls: Vec<_> = calls.collect();
            let mut needed: Vec<_> =
                part.needed.iter().map(|each| String::from_utf8_lossy(&each.path).into_owned()).collect();
            needed.sort();
            (calls.len(), needed)
        })
    };
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(part(&["."]).unwrap(), (3, owned(&["a"])));
    assert_eq!(part(&["/usr/lib"]).unwrap(), (3, owned(&["usr/lib/b"])));
    assert_eq!(part(&["usr"]).unwrap(), (4, owned(&["usr/c", "usr/lib/b"])));
    assert_eq!(part(&[".", "usr"]).unwrap().0, 7);
    // Time that was spent in what is left out goes by.
    let length = |roll: &Roll| crate::schedule::Score::of(roll, 1.0).unwrap().length_ns;
    assert_eq!(length(&only_below(&whole, &[b".".to_vec()]).unwrap()), length(&whole));
    let (line, code) = part(&[".", "home"]).unwrap_err();
    assert!(code == 2 && line.starts_with("home: ") && line.contains("., usr"), "{line}");
}
