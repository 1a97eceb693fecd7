use super::*;
use crate::parse;

fn after(text: &str) -> World {
    let parsed =
        parse("s", format!("etude script 1\n{text}").as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut world = World::new(&parsed.script);
    parsed.script.steps.iter().for_each(|step| drop(world.step(step)));
    world
}

fn bytes(world: &World, path: &str) -> Option<u64> {
    match world.names.node(world.names.find(path.as_bytes())?).kind {
        NodeKind::File { bytes, .. } => Some(bytes),
        _ => None,
    }
}

fn position(world: &World, descriptor: i32) -> u64 {
    world.opened[world.description(0, descriptor).unwrap() as usize].position
}

#[test]
fn paths_lead_through_links_dots_and_directories() {
    let world = after(
        "file \"d/x\" 5\nlink \"l\" to \"d/../d\"\nlink \"m\" to \"/l/x\"\nlink \"o\" to \"o\"\ndirectory \"e\"
openat(AT_FDCWD, \"m\", O_WRONLY|O_TRUNC) = 3\nwrite(3, 7) = 7\nopenat(AT_FDCWD, \"l\", O_RDONLY|O_DIRECTORY) = 4
openat(4, \"./y\", O_WRONLY|O_CREAT, 0644) = 5\npwrite64(5, 10, 90) = 10\nchdir(\"e\") = 0\nmkdir(\"../z\", 0755) = 0
rename(\"../d\", \"f\") = 0\nopenat(4, \"w\", O_WRONLY|O_CREAT, 0644) = 6\nopenat(AT_FDCWD, \"/o\", O_RDONLY) = -1 ELOOP\n",
    );
    assert_eq!(bytes(&world, "e/f/x"), Some(7));
    assert_eq!(bytes(&world, "e/f/y"), Some(100));
    assert!(world.names.find(b"z").is_some() && world.names.find(b"e/f/w").is_some());
    assert!(world.names.find(b"d").is_none() && world.names.find(b"d/x").is_none());
}

#[test]
fn sizes_and_positions_follow_the_calls() {
    let world = after(
        "file \"a\" 100\nname \"b\" of \"a\"\nopenat(AT_FDCWD, \"a\", O_RDWR|O_APPEND) = 3\nread(3, 30) = 30\ndup(3) = 4
read(4, 30) = 30\nopenat(AT_FDCWD, \"c\", O_WRONLY|O_CREAT, 0644) = 5\nsendfile(5, 3, NULL, 40) = 40
copy_file_range(3, [0], 5, NULL, 50, 0) = 50\nfallocate(5, 0, 0, 200) = 0\nwrite(3, 20) = 20\n",
    );
    assert_eq!(
        (bytes(&world, "a"), bytes(&world, "b"), bytes(&world, "c")),
        (Some(120), Some(120), Some(200))
    );
    assert_eq!((position(&world, 3), position(&world, 4), position(&world, 5)), (120, 120, 90));
}

#[test]
fn descriptors_go_with_forks_copies_and_execs() {
    let world = after(
        "file \"a\" 1\n0: openat(AT_FDCWD, \"a\", O_RDONLY|O_CLOEXEC) = 3\n0: dup2(3, 7) = 7\n0: fork(1)\n0: close(3) = 0
1: exec()\n1: fcntl(7, F_SETFD, 1) = 0\n1: fork(2)\n2: close_range(0, 4294967295, 0) = 0\n0: openat(AT_FDCWD, \"a\", O_RDONLY) = 7\n0: close(7) = 0\n",
    );
    let open = |process| world.processes[&process].table.numbers().collect::<Vec<_>>();
    assert_eq!((open(0), open(1), open(2)), (vec![7], vec![7], vec![]));
    assert_eq!(world.description(0, 7), Some(1), "of two that were given one number the older is closed");
    assert!(world.processes[&1].slot(7).unwrap().closes_at_exec);
}
