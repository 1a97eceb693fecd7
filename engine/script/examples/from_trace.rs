//! A trace as a script on standard output, what became of it on standard error: `from_trace TRACE [OPTION ...]`.

use etude_script::Options;

fn main() {
    let mut words = std::env::args().skip(1);
    let trace = words.next().expect("the path of a trace");
    let mut options = Options::default();
    for word in words {
        match word.as_str() {
            "--keep-names" => options.keep_names = true,
            "--hash-names" => options.hash_names = Some([7; 16]),
            "--keep-pipes" => options.keep_pipes = true,
            "--no-waits" => options.waits = false,
            map => {
                let (from, to) = map.split_once('=').expect("FROM=TO");
                options.maps.push((from.into(), to.into()));
            }
        }
    }
    let (script, report) = etude_script::from_trace(trace.as_ref(), &options).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(3);
    });
    etude_script::check(&script).expect("a script");
    etude_script::write(&script, &mut std::io::stdout().lock()).expect("standard output");
    report.lines().into_iter().for_each(|line| eprintln!("{line}"));
}
