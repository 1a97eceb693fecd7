//! What is kept goes on where it did.

use super::*;

const SCRIPT: &str = "etude script 1
file \"a\" 9000
file \"log\" 100
openat(AT_FDCWD, \"a\", O_RDWR) = 3 <0.000001000>
read(3, 100) = 100 <0.000001000>
lseek(3, 5000, SEEK_SET) = 5000 <0.000001000>
read(3, 100) = 100 <0.000001000>
read(3, 100) = 100 <0.000001000>
write(3, 50) = 50 <0.000001000>
pread64(3, 10, 0) = 10 <0.000001000>
openat(AT_FDCWD, \"log\", O_WRONLY|O_APPEND) = 4 <0.000001000>
sendfile(4, 3, NULL, 40) = 40 <0.000001000>
lseek(3, 10, SEEK_CUR) = 5300 <0.000001000>
close(3) = 0 <0.000001000>
";

fn kept(names: &[&str]) -> Vec<String> {
    let script = parse("s", SCRIPT.as_bytes()).unwrap().script;
    let calls: Vec<Call> = names.iter().map(|name| Call::named(name).unwrap()).collect();
    let text = shown(&filter(&script, &calls, &[]).unwrap());
    let lines = text.lines().filter(|line| line.contains("(3, ") || line.contains("(4, 3"));
    lines.map(|line| line.replace(" <0.000001000>", "")).collect()
}

#[test]
fn a_call_that_is_kept_goes_on_where_those_that_are_left_out_had_moved_the_position() {
    let seek = |to: u32| format!("lseek(3, {to}, SEEK_SET) = {to} <0.000000000>");
    let read = || "read(3, 100) = 100".to_owned();
    assert_eq!(kept(&["read"]), [read(), seek(5000), read(), read()]);
    assert_eq!(kept(&["write"]), [seek(5200), "write(3, 50) = 50".into()]);
    assert_eq!(kept(&["sendfile"]), [seek(5250), "sendfile(4, 3, NULL, 40) = 40".into()]);
    assert_eq!(kept(&["pread64"]), ["pread64(3, 10, 0) = 10"]);
    assert_eq!(
        kept(&["lseek"]),
        ["lseek(3, 5000, SEEK_SET) = 5000".into(), seek(5290), "lseek(3, 10, SEEK_CUR) = 5300".into()]
    );
    assert_eq!(
        kept(&["read", "lseek", "write", "sendfile"]).iter().filter(|line| line.contains("lseek")).count(),
        2
    );
}

#[test]
fn a_file_that_gets_a_name_by_its_descriptor_has_it() {
    let text = "etude script 1\nopenat(AT_FDCWD, \".\", O_RDWR|O_TMPFILE, 0644) = 3\nwrite(3, 5) = 5\n\
        linkat(3, NULL, AT_FDCWD, \"one\", AT_EMPTY_PATH) = 0\nclose(3) = 0\ntruncate(\"one\", 3) = 0\n";
    let script = parse("s", text.as_bytes()).unwrap().script;
    let mut world = World::new(&script);
    script.steps.iter().for_each(|step| drop(world.step(step)));
    let node = world.names.node(world.names.find(b"one").unwrap());
    assert_eq!(node.kind, NodeKind::File { bytes: 3, allocated: 3, seen: true });
    let kept = shown(&only_files(&script, &[Glob::new(b"one").unwrap()]).unwrap());
    assert_eq!(kept, text.replacen("etude script 1\n", "", 1));
}

#[test]
fn a_file_without_a_name_that_is_open_at_a_cut_is_opened_as_a_file() {
    let text = "etude script 1\nopenat(AT_FDCWD, \".\", O_RDWR|O_TMPFILE, 0644) = 3\nwrite(3, 5) = 5\ncompute(0.001000000)\n\
        write(3, 5) = 5\nclose(3) = 0\n";
    let script = parse("s", text.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}")).script;
    let lines = shown(&cut(&script, 500_000, u64::MAX).unwrap());
    let open = lines.lines().find(|line| line.contains("openat")).unwrap();
    assert!(
        open.contains("O_RDWR") && !open.contains("O_DIRECTORY") && !open.contains("O_TMPFILE"),
        "{lines}"
    );
}
