//! Scripts of any calls, with what is likely to be open and what is not.

use etude_calls::{Call, Kind, Outcome, Processor, Range, RangeKind};
use etude_script::{Action, Called, Needed, Script, Step, What};
use etude_trace::Text;

use crate::random::Random;

const PATHS: [&str; 14] = [
    "/w/in",
    "/w/d/x",
    ".",
    "d/link",
    "a",
    "b",
    "d/c",
    "d",
    "new",
    "d/new",
    "/",
    "..",
    "../../planted",
    "d/../a",
];

/// A script that [`etude_script::check`] finds sound.
pub fn script(random: &mut Random) -> Script {
    let needed = (0..random.below(4)).map(|_| needed(random)).collect();
    let mut script = Script { notes: vec!["drawn".into()], needed, ..Script::default() };
    // Threads with their processes, and processes that can be waited for.
    let (mut threads, mut children) = (vec![(0, 0)], Vec::new());
    for _ in 0..random.below(40) {
        let (thread, process) = match script.steps.is_empty() {
            true => (0, 0),
            false => *random.of(&threads),
        };
        let new = threads.len() as u32 * 3 + if random.one_in(50) { random.below(20_000) as u32 } else { 0 };
        let fresh = threads.iter().all(|(thread, _)| *thread != new);
        let action = match random.below(20) {
            0 if fresh => {
                threads.push((new, process));
                Action::Start(new)
            }
            1 if fresh => {
                threads.push((new, new));
                children.push((new, process));
                Action::Fork(new)
            }
            2 => match children.iter().position(|(_, parent)| *parent == process) {
                Some(child) => Action::Wait(children.swap_remove(child).0),
                None => Action::Exec,
            },
            3 | 4 => Action::Compute(random.number()),
            _ => Action::Call(called(random)),
        };
        script.steps.push(Step { thread, action });
    }
    script
}

pub fn path(random: &mut Random) -> Vec<u8> {
    match random.below(30) {
        0 => vec![1 + random.below(255) as u8; 1 + random.below(300)],
        1 => b"x".repeat(4000 + random.below(2000)),
        _ => random.of(&PATHS).as_bytes().to_vec(),
    }
}

fn needed(random: &mut Random) -> Needed {
    let what = match random.below(5) {
        0 => What::Directory,
        1 => What::Link(path(random).into()),
        2 => What::HardLink(path(random).into()),
        _ => {
            let bytes = if random.one_in(4) { random.number() } else { random.below(10_000) as u64 };
            let allocated = random.one_in(4).then(|| random.number());
            What::File { bytes, allocated, seen: random.one_in(2) }
        }
    };
    Needed { path: path(random).into(), what }
}

pub fn called(random: &mut Random) -> Called {
    let all: Vec<Call> = Call::all().collect();
    let call = *random.of(&all);
    let mut arguments = [(); 6].map(|()| if random.one_in(2) { random.number() } else { small(random) });
    for (index, kind) in call.row().arguments.iter().enumerate() {
        if matches!(kind, Kind::Fd | Kind::DirFd) && !random.one_in(8) {
            arguments[index] = 3 + random.below(4) as u64;
        }
    }
    if call.name() == "fcntl" && random.one_in(2) {
        arguments[1] = *random.of(&[6, 7, 37, 38]);
    }
    call.normalise(Processor::X86_64, &mut arguments);
    let mut texts = Vec::new();
    for index in 0..6 {
        let unused = index >= call.used(&arguments);
        let text = match call.kind(&arguments, index) {
            Kind::Buffer | Kind::Pointer | Kind::Iovec | Kind::Unused | Kind::Command => {
                arguments[index] = 0;
                continue;
            }
            Kind::Path | Kind::Name => path(random),
            Kind::Pair => [3 + random.below(4) as i32, 3].map(i32::to_le_bytes).concat(),
            Kind::Range => range(random),
            Kind::OffsetAt => random.number().to_le_bytes().to_vec(),
            _ => continue,
        };
        if !unused && !random.one_in(10) {
            arguments[index] = 0;
            texts.push(Text { argument: index as u8, bytes: text.into() });
        }
    }
    let result = match call.row().outcome {
        Outcome::Descriptor if !random.one_in(8) => 3 + random.below(4) as i64,
        _ if random.one_in(2) => random.number() as i64,
        _ => random.below(5000) as i64 - 40,
    };
    let duration_ns = (!random.one_in(4)).then(|| random.number());
    Called { call, arguments, texts: texts.into_iter().collect(), result, duration_ns }
}

fn range(random: &mut Random) -> Vec<u8> {
    let (kind, _) = *random.of(&RangeKind::NAMES);
    let (start, length) = (random.number() as i64, random.below(5000) as i64 - 100);
    Range { kind, whence: random.below(3) as u8, start, length }.bytes().to_vec()
}

fn small(random: &mut Random) -> u64 {
    random.below(5000) as u64
}
