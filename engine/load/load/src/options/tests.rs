use std::ffi::OsString;

use etude_options::Ended;
use proptest::prelude::*;

use super::*;

fn asked(words: &str) -> Result<Asked, String> {
    meant(words.split_whitespace().map(OsString::from).collect())
}

fn meant(words: Vec<OsString>) -> Result<Asked, String> {
    match etude_options::read::<Options>("etude load", words) {
        Ok(options) => options.meaning(),
        Err(Ended::Wrong(line)) => Err(line),
        Err(Ended::Text(text)) => Err(format!("help of {} lines", text.lines().count()).replace('\n', " ")),
    }
}

#[test]
fn what_cannot_be_meant_is_one_line_that_names_it() {
    for (words, part) in [
        ("", "no target: name one of --url, --directory and --nfs"),
        ("--url https://a/", "expected http://"),
        ("--url http://a/ --rate 0", "--rate \"0\": expected a rate above 0"),
        ("--url http://a/ --rate 1 --seconds -1", "--seconds"),
        ("--url http://a/ --rate 1", "--seconds is missing"),
        ("--url http://a/ --seconds 1", "--rate is missing, or --clients"),
        ("--window 0", "expected a duration from 1ms to 1000000s"),
        ("--arrivals often", "--arrivals \"often\": expected poisson or constant"),
        ("--outstanding 0", "1 or more"),
        ("--rate", "--rate needs a value"),
        ("--wait long", "sleep, hybrid or spin"),
        ("--way mmap", "calls or io_uring"),
        ("--nfs http://a/", "expected nfs://"),
        ("--nfs nfs://a/b --connections 0", "1 to 1024"),
        ("--set hot", "--set \"hot\": expected KNOB=VALUE"),
        ("--set =3", "expected KNOB=VALUE"),
        ("--directory=", "--directory needs a value"),
        ("--speed 3", "there is no option --speed"),
        ("--show=3", "--show"),
        ("-x", "-x"),
        ("stray", "stray"),
    ] {
        let line = asked(words).map(|_| ()).unwrap_err();
        assert!(line.contains(part) && !line.contains('\n'), "{words}: {line}");
    }
}

#[test]
fn how_windows_are_printed_is_asked_for_or_left_to_standard_output() {
    for (words, expected) in [("", None), ("--json", Some(Format::Json)), ("--text", Some(Format::Text))] {
        match asked(&format!("--url http://a/ --rate 1 --seconds 1 {words}")) {
            Ok(Asked::Offer(offer)) => assert_eq!(offer.format, expected),
            other => panic!("{words}: {other:?}"),
        }
    }
    assert!(asked("--json --text").unwrap_err().contains("--json and --text exclude"));
}

#[test]
fn what_contradicts_itself_is_told_with_both_names() {
    for (words, part) in [
        ("--url http://a/ --directory d", "--url and --directory exclude each other"),
        ("--url http://a/ --nfs nfs://a/b", "--url and --nfs exclude"),
        ("--directory d --nfs nfs://a/b", "--directory and --nfs exclude"),
        ("--url http://a/ --rate 3 --clients 2", "--rate and --clients exclude"),
        ("--url http://a/ --arrivals poisson --clients 2", "--arrivals and --clients exclude"),
        ("--url http://a/ --outstanding 3 --clients 2", "--outstanding and --clients exclude"),
        ("--url http://a/ --rate 3 --think 1", "--think needs --clients"),
        ("--url http://a/ --clients 3 --think-law constant", "--think-law needs --think"),
        ("--url http://a/ --preset web", "--url and --preset exclude"),
        ("--url http://a/ --set a=b", "--set needs --preset or --workload"),
        ("--url http://a/ --way calls", "--way needs --directory"),
        ("--url http://a/ --connections 2", "--connections needs --nfs"),
        ("--preset web --rate 1 --seconds 1", "no target: name one of"),
        ("--directory d --preset web --workload f", "--preset and --workload exclude"),
        ("--directory d --rate 1", "--directory needs --preset, --workload or --roll"),
        ("--nfs nfs://a/b --rate 1", "--nfs needs --preset or --workload"),
        ("--roll f --rate 1", "--roll needs --directory"),
        ("--only usr --url http://a/ --rate 1", "--only needs --roll"),
        ("--own --directory d --preset web --rate 1", "--own needs --roll"),
        ("--roll f --directory d --preset web", "--roll and --preset"),
        ("--roll f --directory d --clients 2", "--roll and --clients exclude"),
        ("--roll f --nfs nfs://a/b", "--roll and --nfs exclude"),
        ("--roll f --directory d --way calls", "--roll and --way exclude"),
        ("--show", "--show needs --preset or --workload"),
        ("--show --populate --preset web --directory d", "--show and --populate exclude"),
        ("--populate --preset web", "--populate needs --nfs or --directory"),
        ("--populate --preset web --directory d", "--rate is missing, or --sized-for"),
        ("--files-seed 3 --url http://a/", "--files-seed needs --preset or --workload"),
    ] {
        let line = asked(words).map(|_| ()).unwrap_err();
        assert!(line.contains(part) && !line.contains('\n'), "{words}: {line}");
    }
}

#[test]
fn what_is_asked_becomes_plain_data() {
    let Ok(Asked::Offer(Offer { aim: Aim::Http(url), plan, .. })) =
        asked("--url http://a:8/x --clients 7 --think 0.5 --think-law constant --seconds 3 --wait hybrid")
    else {
        panic!("another meaning");
    };
    assert_eq!((url.text.as_str(), plan.outstanding, plan.wait), ("http://a:8/x", 7, Wait::Hybrid));
    assert_eq!(plan.load, Load::Closed { clients: 7, think_ns: SECOND / 2, exponential: false });
    let words =
        "--nfs nfs://a/b --connections 3 --preset web --set a=1 --set b=2 --rate 50 --seconds 2 --seed 9";
    let Ok(Asked::Offer(Offer { aim: Aim::Nfs(nfs, workload), plan, .. })) = asked(words) else {
        panic!("another meaning");
    };
    assert_eq!((nfs.url.port, nfs.connections, plan.seed), (2049, 3, 9));
    assert_eq!(
        (workload.source, workload.set.len(), workload.sized_for),
        (Source::Preset("web".into()), 2, 50.0)
    );
    let words = "--directory d --workload f --way io_uring --clients 4 --seconds 2 --seed 1";
    let Ok(Asked::Offer(Offer { aim: Aim::Files(files, workload), .. })) = asked(words) else {
        panic!("another meaning");
    };
    assert_eq!(
        (files.way, workload.source, workload.sized_for),
        (Way::IoUring, Source::File("f".into()), 4.0)
    );
    let words = "--directory d --roll r --rate 3 --seconds 1";
    let Ok(Asked::Offer(Offer { aim: Aim::Roll(roll), .. })) = asked(words) else {
        panic!("another meaning")
    };
    assert_eq!((roll.only, roll.own), (Vec::new(), false));
    let words = format!("{words} --only usr/lib --only . --own");
    let Ok(Asked::Offer(Offer { aim: Aim::Roll(roll), .. })) = asked(&words) else {
        panic!("another meaning")
    };
    assert_eq!((roll.only, roll.own), (vec![b"usr/lib".to_vec(), b".".to_vec()], true));
    assert!(matches!(asked("--show --preset web"), Ok(Asked::Show(_))));
    let words = "--populate --directory d --preset mail --sized-for 200 --files-seed 3";
    let Ok(Asked::Populate(Populate { place: Place::Files(_), workload })) = asked(words) else {
        panic!("another meaning");
    };
    assert_eq!(workload.files_seed, 3);
    assert!(asked("--rate 3 --help").unwrap_err().starts_with("help of "));
}

proptest! {
    #[test]
    fn no_words_make_it_fall(picked in prop::collection::vec(0..WORDS.len(), 0..12)) {
        let words: Vec<OsString> = picked.iter().map(|at| OsString::from(WORDS[*at])).collect();
        if let Err(line) = meant(words) {
            prop_assert!(!line.is_empty() && !line.contains('\n'));
        }
    }
}

const WORDS: [&str; 32] = [
    "--only",
    "--own",
    "--url",
    "http://a/",
    "--directory",
    "d",
    "--nfs",
    "nfs://a/b",
    "--rate",
    "1",
    "--clients",
    "0",
    "--think",
    "--seconds",
    "--preset",
    "web",
    "--workload",
    "--set",
    "a=b",
    "--roll",
    "--way",
    "calls",
    "--wait",
    "spin",
    "--show",
    "--populate",
    "--files-seed",
    "--sized-for",
    "--outstanding",
    "--timeout",
    "-1",
    "\u{0}é",
];
