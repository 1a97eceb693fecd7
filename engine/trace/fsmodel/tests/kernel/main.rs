//! The model against the kernel: random sequences of calls in a temporary directory, after each of which descriptors
//! (/proc/self/fd), their flags and positions, the working directory, and all names with their files are compared.
//!
//! ETUDE_FSMODEL_SEQUENCES says how many (without it 50 times PROPTEST_CASES, or 2,000), ETUDE_FSMODEL_SEED with which they
//! begin. 100,000 of them: `ETUDE_FSMODEL_SEQUENCES=100000 cargo test --profile checks -p etude-fsmodel --test kernel`.

mod kernel_state;
mod random_calls;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use etude_calls::{Call, Processor};
use etude_fsmodel::{Done, Model, flags};
use kernel_state::KernelState;
use random_calls::Random;

/// Calls of a sequence.
const LENGTH: usize = 30;
const FIRST: &str = "ETUDE_FSMODEL_FIRST";
const LAST: &str = "ETUDE_FSMODEL_LAST";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") || Processor::own().is_none() {
        return ExitCode::SUCCESS;
    }
    if let (Some(first), Some(last)) = (number(FIRST), number(LAST)) {
        return sequences(first, last);
    }
    const MOST_PROCESSES: u64 = 2;
    let cases = number("PROPTEST_CASES").map(|cases| cases * 50);
    let many = number("ETUDE_FSMODEL_SEQUENCES").or(cases).unwrap_or(2000);
    // Property tests take the same examples each time, unless they are to look for new ones.
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs());
    let random = cases.filter(|_| number("PROPTEST_RNG_SEED").is_none()).map(|_| now());
    let first = number("ETUDE_FSMODEL_SEED").or(random).unwrap_or(1);
    let processes = many.clamp(1, MOST_PROCESSES);
    let children: Vec<_> = (0..processes)
        .map(|process| {
            let bound = |process| first + many * process / processes;
            let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
            command.env(FIRST, bound(process).to_string()).env(LAST, bound(process + 1).to_string());
            command.spawn().expect("a process can be started")
        })
        .collect();
    let ended = children.into_iter().map(|mut child| child.wait().expect("it was started"));
    let failed = ended.filter(|status| !status.success()).count();
    println!("{many} sequences of {LENGTH} calls, {failed} of {processes} processes found a difference");
    ExitCode::from(u8::from(failed > 0))
}

/// Runs sequences, each in a directory of its own.
fn sequences(first: u64, last: u64) -> ExitCode {
    let temporary = std::env::temp_dir().canonicalize().expect("there is a temporary directory");
    let base = temporary.join(format!("etude-fsmodel-{}", std::process::id()));
    // SAFETY: what a process inherits above 2 is nothing of this one's.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    for seed in first..last {
        let top = base.join(seed.to_string());
        let place = top.join("d");
        std::fs::create_dir_all(&place).expect("a directory can be made");
        let different = sequence(seed, &place);
        // SAFETY: nothing of this process uses descriptors above 2.
        unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
        std::env::set_current_dir("/").expect("the root is there");
        let _ = std::fs::remove_dir_all(&top);
        if let Err((calls, what)) = different {
            let _ = std::fs::remove_dir_all(&base);
            eprintln!("sequence {seed}:\n  {}\n{what}", calls.join("\n  "));
            return ExitCode::FAILURE;
        }
    }
    let _ = std::fs::remove_dir_all(&base);
    ExitCode::SUCCESS
}

/// Calls with random arguments; returned is the first difference, and the calls up to it.
fn sequence(seed: u64, place: &Path) -> Result<(), (Vec<String>, String)> {
    std::env::set_current_dir(place).expect("it was made");
    let mut model = begin(place);
    let (mut random, mut kernel, mut calls) = (Random::new(seed), KernelState::new(place), Vec::new());
    for _ in 0..LENGTH {
        let drawn = random.call(&model, place);
        let (call, result) = (Call::named(drawn.name).expect("it is in the table"), drawn.make());
        let mut arguments = drawn.arguments;
        call.normalise(Processor::own().expect("it was looked at"), &mut arguments);
        let texts = drawn.texts_after();
        calls.push(format!("{}{:?} {} = {result}", drawn.name, drawn.arguments, drawn.shown()));
        let texts = texts.iter().map(|(at, text)| (*at, &text[..]));
        model.call(0, &Done::new(call, &arguments, result, texts));
        kernel.compare(&model).map_err(|what| (std::mem::take(&mut calls), what))?;
    }
    kernel.compare_all(&model).map_err(|what| (calls, what))
}

/// The model of this process in an empty directory.
fn begin(place: &Path) -> Model {
    use std::os::unix::ffi::OsStrExt;
    let mut model = Model::default();
    let path = etude_fsmodel::key(place.as_os_str().as_bytes());
    let node = model.names.add(path, etude_fsmodel::NodeKind::Directory, false);
    model.process(0).place = node;
    for descriptor in 0..3 {
        // SAFETY: it looks at a number.
        let open = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        if open >= 0 {
            model.open(0, descriptor, None, open as u64 & !flags::O_CLOEXEC);
        }
    }
    model
}

/// A path in the form that the kernel takes.
fn absolute(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec([b"/", path].concat()))
}
