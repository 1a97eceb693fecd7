//! Results of operations on small scripts.

use super::*;

const COPY: &str = "file \"in\" 8192
openat(AT_FDCWD, \"in\", O_RDONLY) = 3 <0.000001000>
openat(AT_FDCWD, \"out\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4 <0.000001000>
read(3, 4096) = 4096 <0.000001000>
compute(0.000005000)
write(4, 4096) = 4096 <0.000001000>
read(3, 4096) = 4096 <0.000001000>
write(4, 4096) = 4096 <0.000001000>
close(4) = 0 <0.000001000>
";

#[test]
fn a_cut_opens_again_what_was_open() {
    assert_eq!(
        shown(&cut(&read(COPY), 8_000, 11_000).unwrap()),
        "file \"in\" 8192
file \"out\" 0
openat(AT_FDCWD, \"/in\", O_RDONLY) = 3
lseek(3, 4096, SEEK_SET) = 4096
openat(AT_FDCWD, \"/out\", O_WRONLY) = 4
write(4, 4096) = 4096 <0.000001000>
read(3, 4096) = 4096 <0.000001000>
write(4, 4096) = 4096 <0.000001000>
"
    );
    // A file that has no name any more; and a wait that had begun.
    let script = read(
        "file \"t\" 10\n0: fork(1)\n0: openat(AT_FDCWD, \"t\", O_RDWR) = 3 <0.000001000>
0: unlink(\"t\") = 0 <0.000001000>\n0: wait(1)\n0: read(3, 4) = 4 <0.000001000>\n1: compute(0.000009000)\n1: exec()\n",
    );
    assert_eq!(
        shown(&cut(&script, 5_000, 20_000).unwrap()),
        "file \"etude_cut1\" 10
0: openat(AT_FDCWD, \"/etude_cut1\", O_RDWR) = 3
0: fork(1)
1: close(3) = 0
0: unlinkat(AT_FDCWD, \"/etude_cut1\", AT_REMOVEDIR) = 0
0: wait(1)
0: read(3, 4) = 4 <0.000001000>
1: compute(0.000004000)
1: exec()
"
        .replace("AT_REMOVEDIR", "0")
    );
}

#[test]
fn descriptors_of_a_file_without_a_name_are_of_one_file_after_a_cut() {
    let script = read(
        "file \"t\" 10\nopen(\"t\", O_RDWR) = 3 <0.000001000>\nopen(\"t\", O_RDONLY) = 4 <0.000001000>
unlink(\"t\") = 0 <0.000001000>\nwrite(3, 90) = 90 <0.000001000>\nread(4, 99) = 90 <0.000001000>\n",
    );
    assert_eq!(
        shown(&cut(&script, 3_000, 20_000).unwrap()),
        "file \"etude_cut1\" 10\nopenat(AT_FDCWD, \"/etude_cut1\", O_RDWR) = 3
openat(AT_FDCWD, \"/etude_cut1\", O_RDONLY) = 4\nunlinkat(AT_FDCWD, \"/etude_cut1\", 0) = 0
write(3, 90) = 90 <0.000001000>\nread(4, 99) = 90 <0.000001000>\n"
    );
}

#[test]
fn what_was_dropped_goes_into_what_is_made_of_a_script() {
    let script = read(
        "dropped write \"pipe\" 2 calls 100 bytes 3 requests 0.000000010\nopen(\"a\", O_RDONLY) = 3 <0.000001000>\n",
    );
    let of = |made: &Script| -> Vec<(u64, u64, u64, u64)> {
        made.dropped.iter().map(|each| (each.calls, each.bytes, each.requests, each.ns)).collect()
    };
    assert_eq!(of(&cut(&script, 0, 500).unwrap()), [(2, 100, 3, 10)]);
    assert_eq!(of(&filter(&script, &[Call::named("open").unwrap()], &[]).unwrap()), [(2, 100, 3, 10)]);
    assert_eq!(of(&repeat(&script, 3, Rounds::Same).unwrap()), [(6, 300, 9, 30)]);
    assert_eq!(of(&clone(&script, 2).unwrap()), [(4, 200, 6, 20)]);
    assert_eq!(of(&merge(&[script.clone(), script.clone()], false).unwrap()), [(4, 200, 6, 20)]);
    assert_eq!(of(&scale_sizes(&script, Sizes { factor: 0.5, align: 1 }).unwrap()), [(2, 50, 3, 10)]);
}

#[test]
fn the_scheduling_class_goes_into_what_is_made_of_a_script_unless_there_are_several() {
    let batch = read("scheduling batch priority 0 nice -5\nopen(\"a\", O_RDONLY) = 3 <0.000001000>\n");
    let plain = read("open(\"a\", O_RDONLY) = 3 <0.000001000>\n");
    let class = batch.scheduling;
    assert_eq!(class, Some(Scheduling { policy: Policy::Batch, priority: 0, nice: -5 }));
    for made in [
        cut(&batch, 0, 500),
        filter(&batch, &[Call::named("open").unwrap()], &[]),
        repeat(&batch, 3, Rounds::Same),
        clone(&batch, 2),
        merge(&[batch.clone(), batch.clone()], false),
        scale_sizes(&batch, Sizes { factor: 0.5, align: 1 }),
    ] {
        assert_eq!(made.unwrap().scheduling, class);
    }
    for scripts in [[plain.clone(), batch.clone()], [batch, plain]] {
        assert_eq!(merge(&scripts, false).unwrap().scheduling, None);
    }
}

#[test]
fn rounds_put_back_what_they_change() {
    let script = read(
        "file \"log\" 10\ndirectory \"d\"\nopenat(AT_FDCWD, \"log\", O_WRONLY|O_APPEND) = 3\nwrite(3, 5) = 5
mkdir(\"d/x\", 0755) = 0\nchdir(\"d\") = 0\ncreat(\"x/y\", 0644) = 4\n",
    );
    let twice = shown(&repeat(&script, 2, Rounds::Same).unwrap());
    let between = "close(3) = 0\nclose(4) = 0\nchdir(\"/\") = 0\ntruncate(\"/log\", 10) = 0
unlinkat(AT_FDCWD, \"/d/x/y\", 0) = 0\nunlinkat(AT_FDCWD, \"/d/x\", AT_REMOVEDIR) = 0\n";
    assert!(twice.contains(between), "{twice}");
    let gone = read("file \"a\" 1\nunlink(\"a\") = 0\n");
    let Err(Refused(why)) = repeat(&gone, 2, Rounds::Same) else { panic!("it is not there any more") };
    assert!(why.starts_with("\"a\" is not there any more"), "{why}");
    assert_eq!(
        shown(&repeat(&gone, 2, Rounds::Own).unwrap()),
        "directory \"1\"\nfile \"1/a\" 1\ndirectory \"2\"\nfile \"2/a\" 1\nunlink(\"1/a\") = 0\nunlink(\"2/a\") = 0\n"
    );
}

#[test]
fn only_what_a_file_needs_is_kept() {
    let script = read(
        "file \"in\" 1
0: mkdir(\"d\", 0755) = 0 <0.000001000>\n0: creat(\"d/tmp\", 0644) = 3 <0.000001000>\n0: fork(1)
1: creat(\"other\", 0644) = 4 <0.000001000>\n1: write(3, 9) = 9 <0.000001000>\n1: write(4, 9) = 9 <0.000001000>
0: rename(\"d/tmp\", \"d/kept\") = 0 <0.000001000>\n0: close(3) = 0\n0: stat(\"in\") = 0 <0.000001000>\n",
    );
    assert_eq!(
        shown(&only_files(&script, &[Glob::new(b"d/kept").unwrap()]).unwrap()),
        "0: mkdir(\"d\", 0755) = 0 <0.000001000>\n0: creat(\"d/tmp\", 0644) = 3 <0.000001000>\n0: fork(1)
1: compute(0.000001000)\n1: write(3, 9) = 9 <0.000001000>
0: rename(\"d/tmp\", \"d/kept\") = 0 <0.000001000>\n0: close(3) = 0\n0: compute(0.000001000)\n1: compute(0.000001000)\n"
    );
    assert_eq!(
        shown(&filter(&script, &[Call::named("write").unwrap()], &[]).unwrap()).lines().count(),
        9,
        "all but stat, of which the time is left"
    );
}

#[test]
fn paths_of_a_clone_stay_in_its_directory() {
    let script = read(
        "file \"usr/x\" 1\nlink \"l\" to \"/usr/x\"\nopenat(AT_FDCWD, \"/usr/x\", O_RDONLY) = 3
openat(AT_FDCWD, \"../../usr/x\", O_RDONLY) = 4\nchdir(\"usr\") = 0\nopenat(AT_FDCWD, \"x\", O_RDONLY) = 5
symlink(\"/usr/x\", \"/m\") = 0\n",
    );
    assert_eq!(
        shown(&clone(&script, 1).unwrap()),
        "directory \"1\"\nlink \"1/l\" to \"/1/usr/x\"\nfile \"1/usr/x\" 1\n0: fork(1)
1: openat(AT_FDCWD, \"/1/usr/x\", O_RDONLY) = 3\n1: openat(AT_FDCWD, \"1/usr/x\", O_RDONLY) = 4
1: chdir(\"1/usr\") = 0\n1: openat(AT_FDCWD, \"x\", O_RDONLY) = 5\n1: symlink(\"/1/usr/x\", \"/1/m\") = 0\n0: wait(1)\n"
    );
}

#[test]
fn sizes_become_multiples_and_files_large_enough() {
    let script = read(COPY);
    let scaled = shown(&scale_sizes(&script, Sizes { factor: 0.3, align: 512 }).unwrap());
    assert!(scaled.starts_with("file \"in\" 2560\n"), "{scaled}");
    assert_eq!(scaled.matches("read(3, 1024) = 1024").count(), 2, "{scaled}");
    // 7 bytes ten times, each rounded up to 4: the file must hold 40.
    let many = read(&format!("file \"a\" 70\nopen(\"a\", O_RDONLY) = 3\n{}", "read(3, 7) = 7\n".repeat(10)));
    let scaled = shown(&scale_sizes(&many, Sizes { factor: 0.5, align: 1 }).unwrap());
    assert!(scaled.starts_with("file \"a\" 40\n"), "{scaled}");
    for (factor, align) in [(0.0, 1), (f64::NAN, 1), (-1.0, 1), (1.0, 0)] {
        assert!(scale_sizes(&script, Sizes { factor, align }).is_err());
    }
    assert!(scale_gaps(&script, -1.0).is_err());
}

#[test]
fn gaps_of_more_than_100_years_are_refused_and_not_cut() {
    let script = read("compute(2.0)\nsync() = 0\n");
    assert!(scale_gaps(&script, 1e9).is_ok());
    assert!(scale_gaps(&script, 2e9).is_err());
    assert!(scale_gaps(&read("sync() = 0\n"), 1e300).is_ok());
}

#[test]
fn links_on_the_way_to_what_is_kept_stay() {
    let script = read(
        "file \"usr/lib/a.so.1.2\" 10\nlink \"usr/lib/a.so\" to \"a.so.1.2\"\nlink \"lib\" to \"usr/lib\"\n\
         link \"other\" to \"nowhere\"\nopenat(AT_FDCWD, \"lib/a.so\", O_RDONLY) = 3\nclose(3) = 0\nsync() = 0\n",
    );
    let made = filter(&script, &[Call::named("openat").unwrap()], &[]).unwrap();
    let left: Vec<_> =
        made.needed.iter().map(|each| String::from_utf8_lossy(&each.path).into_owned()).collect();
    assert!(
        ["lib", "usr/lib/a.so", "usr/lib/a.so.1.2"].iter().all(|path| left.iter().any(|one| one == path)),
        "{left:?}"
    );
    assert!(!left.contains(&"other".to_owned()));
}

#[test]
fn a_directory_in_which_a_step_makes_a_file_stays() {
    let script = read(
        "directory \"d\"\ndirectory \"e\"\nopenat(AT_FDCWD, \"d/x\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3\nwrite(3, 9) = 9\nclose(3) = 0\n",
    );
    let made = filter(&script, &[Call::named("write").unwrap()], &[]).unwrap();
    let left: Vec<_> = made.needed.iter().map(|each| &each.path[..]).collect();
    assert_eq!(left, [b"d"]);
}
