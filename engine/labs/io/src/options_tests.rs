use proptest::prelude::*;

use super::*;

pub fn parsed(line: &str) -> Result<Options, Fail> {
    let words = etude_micro::options::read::<Words>("io", line.split_whitespace().map(OsString::from))?;
    words.unwrap_or_else(|| panic!("{line}: help")).meaning("io")
}

fn good(line: &str) -> Options {
    parsed(line).unwrap_or_else(|fail| panic!("{line}: {fail:?}"))
}

fn refused(line: &str) -> String {
    let fail = parsed(line).expect_err(line);
    assert_eq!(fail.code, etude_micro::exit::USAGE, "{fail:?}");
    fail.line
}

#[test]
fn command_lines_of_2015_mean_what_they_meant() {
    let options = good("-r -B -d -b 512 -t 16777216 -v iofile");
    assert_eq!((options.operation, options.path), (Operation::Read, PathBuf::from("iofile")));
    assert_eq!(options.blocks, Blocks { size: 512, whole: 32768, tail: 0 });
    assert!(options.bare && options.direct && !options.sync);
    assert_eq!(options.style, Style::Verbose);
    let options = good("-wBqs -b16384 iofile");
    assert_eq!((options.operation, options.style), (Operation::Write, Style::Quiet));
    assert!(options.sync && options.bare);
    assert_eq!(good("-c iofile").operation, Operation::Create);
    assert_eq!(good("-rqvj iofile").style, Style::Quiet);
    assert_eq!(good("-r read").path, PathBuf::from("read"));
}

#[test]
fn words_stand_where_options_did() {
    for line in ["read -B -b 16K x", "-B read -b 16K x", "-b16K --bare -- read x", "-rB -b 16384 x"] {
        assert_eq!(good(line), good("read -b 16KiB -B x"), "{line}");
    }
}

#[test]
fn defaults_are_the_labs() {
    let options = good("read x");
    assert_eq!((options.blocks.size, options.blocks.total(), options.iterations), (16384, 16 << 20, 1));
    assert_eq!((options.style, options.method, options.cool), (Style::Rates, Method::Plain, Cool::None));
    assert!(!options.bare && !options.touch && options.huge.is_none() && options.shuffle.is_none());
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    for (line, said) in [
        ("", "expected io read [options] PATH"),
        ("erase x", "there is no operation \"erase\": expected io read"),
        ("read", "no PATH: expected io read [options] PATH"),
        ("-r x y", "one argument too many: \"y\"; read takes one PATH"),
        ("-r -w x", "-r and -w exclude each other: leave one out"),
        ("read -b 0 x", "-b \"0\": expected 1 B or more"),
        ("read -t", "-t needs a value"),
        ("read -b 3 -t 16 x", "no multiple of the buffer of 3 bytes (-b): give -t 15B or -t 18B, or --tail"),
        ("read -b 2G -t 2G x", "one call moves at most 2147479552 bytes"),
        ("read -n 0 x", "-n \"0\": expected a whole number, 1 to"),
        ("read -z x", "there is no option -z; --help"),
        ("read --zero x", "there is no option --zero; --help"),
        ("read --huge yes x", "--huge \"yes\": expected on or off"),
        ("read --cool cold x", "--cool \"cold\": expected none, warm or drop"),
        ("read --method write x", "--method \"write\": expected read, pread, mmap, io_uring"),
        ("write --method read x", "--method \"read\": expected write, pwrite, mmap, io_uring"),
        ("read --order random x", "read continues at its position; add --method pread or mmap or io_uring"),
        ("read --seed 3 x", "add --order random"),
        ("read -d --method mmap x", "-d has no effect on a mapping"),
        ("read -P axi x", "--counters \"axi\": expected l1d, l1i, l2, mem, tlb"),
        ("read --bare=yes x", "--bare takes no value; --help lists the options"),
    ] {
        assert!(refused(line).contains(said), "{line}: {}", refused(line));
    }
}

#[test]
fn create_refuses_what_it_has_no_use_for() {
    for option in ["-B", "-d", "-q", "-s", "-v", "-g", "-n 2", "--touch", "--cool warm", "--cpu 0", "-P l1d"]
    {
        let name = option.split(' ').next().unwrap_or_default();
        assert!(refused(&format!("create {option} x")).contains(&format!("takes no {name};")), "{option}");
    }
    assert_eq!(good("create -b 1M -t 4M -j x").style, Style::Json);
}

#[test]
fn a_random_order_has_a_seed() {
    assert_eq!(good("read --method pread --order random x").shuffle, Some(1));
    assert_eq!(good("read --order random --seed 7 --method mmap x").shuffle, Some(7));
    assert_eq!(good("read --order sequential x").shuffle, None);
}

proptest! {
    #[test]
    fn no_command_line_makes_it_fall(words in prop::collection::vec("-{0,2}[a-zA-Z0-9=]{0,8}|read|-b|-t|16K", 0..8)) {
        let words = words.iter().filter(|word| !matches!(word.as_str(), "--help" | "-h" | "-V"));
        let read = etude_micro::options::read::<Words>("io", words.map(OsString::from));
        let result = read.and_then(|words| words.map(|words| words.meaning("io")).transpose());
        if let Err(fail) = result {
            prop_assert_eq!(fail.code, etude_micro::exit::USAGE);
            prop_assert!(!fail.line.contains('\n'));
        }
    }
}
