//! Scripts side by side do not meet what is another's.

use super::*;

fn of(text: &str) -> Script {
    parse("s", format!("etude script 1\n{text}").as_bytes()).unwrap().script
}

#[test]
fn temporary_files_of_scripts_in_one_directory_are_apart() {
    let one = of("file \"in\" 7\nopenat(AT_FDCWD, \"d/etude_tmp1\", O_WRONLY|O_CREAT, 0644) = 3\n\
        renameat(AT_FDCWD, \"/d/etude_tmp1\", AT_FDCWD, \"out\") = 0\n");
    let other = of("file \"in\" 9\nfile \"etude_cut1\" 5\nfile \"etude_tmp2\" 5\n\
        symlinkat(\"d/etude_tmp1\", AT_FDCWD, \"etude_tmp3\") = 0\n\
        openat(AT_FDCWD, \"d/etude_tmp1/x\", O_WRONLY|O_CREAT, 0644) = 3\n");
    let text = shown(&merge(&[one.clone(), other.clone()], true).unwrap());
    let lines: Vec<&str> = text.lines().filter(|line| line.contains('"')).collect();
    let expected = [
        "file \"etude_cut1\" 5",
        "file \"etude_tmp2\" 5",
        "file \"in\" 9",
        "1: openat(AT_FDCWD, \"d/etude_tmp1\", O_WRONLY|O_CREAT, 0644) = 3",
        "1: renameat(AT_FDCWD, \"/d/etude_tmp1\", AT_FDCWD, \"out\") = 0",
        "2: symlinkat(\"d/etude_tmp4\", AT_FDCWD, \"etude_tmp3\") = 0",
        "2: openat(AT_FDCWD, \"d/etude_tmp4/x\", O_WRONLY|O_CREAT, 0644) = 3",
    ];
    assert_eq!(lines, expected);
    let both = shown(&merge(&[other.clone(), other], true).unwrap());
    assert!(both.contains("file \"etude_tmp4\" 5\n") && both.contains("file \"etude_tmp6\" 5\n"), "{both}");
    assert!(shown(&merge(&[one.clone(), one], false).unwrap()).contains("b/d/etude_tmp1"));
}

#[test]
fn words_that_processes_wait_at_are_those_of_one_script() {
    let script = of("start(1)\n1: futex(0x3, FUTEX_WAKE, 1) = 1\n0: futex(0x3, FUTEX_WAIT, 2) = 0\n\
        0: futex(0x4, FUTEX_WAKE_PRIVATE, 1) = 1\n");
    let text = shown(&clone(&script, 2).unwrap());
    let words: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once("futex(")?.1.split_once(',')?.0)).collect();
    assert_eq!(words, ["0x3", "0x3", "0x4", "0x6", "0x6", "0x4"]);
}
