//! The stream compared with the knobs, and executed on a model.

use std::collections::{HashMap, HashSet};

use crate::model_tests::Model;
use crate::random::{Purpose, finalize, mix};
use crate::testing::{chi_square, chi_square_limit};
use crate::{FileSet, Kind, Object, Operation, Stream, Workload};

pub(crate) fn preset(name: &str, settings: &[&str]) -> Workload {
    let mut workload = Workload::preset(name).unwrap();
    settings.iter().for_each(|setting| workload.set(setting).unwrap());
    workload
}

fn started(workload: &Workload, rate: f64) -> (FileSet, Stream) {
    let set = FileSet::new(workload, rate, 1).unwrap();
    let stream = Stream::new(workload, &set, 1);
    (set, stream)
}

fn file(operation: &Operation) -> Option<usize> {
    match operation.object {
        Object::File(file) => Some(file),
        _ => None,
    }
}

/// Small enough to be made in a test: the mix and all laws stay.
fn small(name: &str) -> Workload {
    match name {
        "specsfs97" | "sfs2008" => preset(name, &["bytes_per_rate=1000000"]),
        _ => preset(name, &[]),
    }
}

#[test]
fn operations_have_the_frequencies_of_the_mix() {
    for name in Workload::names() {
        let workload = small(name);
        let (set, mut stream) = started(&workload, 100.0);
        let logs = set.logs();
        let weights = Kind::ALL.map(|kind| workload.knobs.mix.weight(kind));
        let mut counts = [0.0; Kind::ALL.len()];
        for _ in 0..300_000 {
            let operation = stream.next();
            // What is on top of the mix: logs, and commits that follow writes.
            let on_top = file(&operation).is_some_and(|at| at < logs)
                || (operation.kind == Kind::Commit && workload.knobs.commit_at_end);
            counts[operation.kind.index()] += f64::from(u8::from(!on_top));
        }
        let (off, freedom) = chi_square(&counts, &weights);
        assert!(off < chi_square_limit(freedom), "{name}: {off} at {freedom}: {counts:?}");
    }
}

#[test]
fn no_operation_names_what_is_not_there_and_the_population_is_stationary() {
    for name in Workload::names() {
        let workload = small(name);
        let (set, mut stream) = started(&workload, 100.0);
        let mut model = Model::new(&workload, &set);
        let churning = (0..set.files()).filter(|at| set.file(*at).churn).count() as f64;
        let permanent = set.files() as f64 - churning;
        // A slot is taken with the probability `present`: seven deviations of a binomial number.
        let deviation = (churning * workload.knobs.present * (1.0 - workload.knobs.present)).sqrt();
        let aim = permanent + churning * workload.knobs.present;
        let mut bytes = vec![model.bytes()];
        for step in 0..300_000 {
            let operation = stream.next();
            model.execute(&operation).unwrap_or_else(|why| panic!("{name}, operation {step}: {why}"));
            let off = (model.files.len() as f64 - aim).abs();
            assert!(off <= 7.0 * deviation + 1.0, "{name}, operation {step}: {off} files off {aim}");
            if step % 30_000 == 29_999 {
                bytes.push(model.bytes());
            }
        }
        // In the first tenth what was made at once becomes what comes and goes: files of a pool have been appended to then.
        let (least, most) = (bytes[1..].iter().min().unwrap(), bytes[1..].iter().max().unwrap());
        assert!(*least as f64 > 0.85 * *most as f64, "{name}: {bytes:?}");
        assert!((0.75..1.33).contains(&(bytes[10] as f64 / bytes[0] as f64)), "{name}: {bytes:?}");
    }
}

/// Of lookups and getattrs, which are one draw of a file each. Files that come and go are left out: the others are drawn
/// in proportion to their popularity whatever is there of those.
#[test]
fn files_are_as_popular_as_their_rank_says() {
    for (name, alpha) in [("web", 0.75), ("mail", 1.3), ("specsfs97", 0.0), ("postmark", 0.0)] {
        let workload = small(name);
        let workload = if name == "postmark" {
            let mut changed = workload;
            changed.set("mix.getattr=50").unwrap();
            changed.set("churn=0.5").unwrap();
            changed
        } else {
            workload
        };
        let (set, mut stream) = started(&workload, 100.0);
        let ranks: Vec<usize> = (0..set.data_files()).map(|rank| stream.rank(rank)).collect();
        let mut counts = vec![0.0; set.files()];
        for _ in 0..300_000 {
            let operation = stream.next();
            if matches!(operation.kind, Kind::Lookup | Kind::Getattr) {
                counts[file(&operation).unwrap()] += 1.0;
            }
        }
        let used =
            if name == "specsfs97" { (set.data_files() as f64 * 0.1).ceil() as usize } else { ranks.len() };
        let steady = || ranks.iter().enumerate().filter(|(_, at)| !set.file(**at).churn);
        let weight = |rank: usize| if rank < used { (rank as f64 + 1.0).powf(-alpha) } else { 0.0 };
        let weights: Vec<f64> = steady().map(|(rank, _)| weight(rank)).collect();
        let found: Vec<f64> = steady().map(|(_, at)| counts[*at]).collect();
        let (off, freedom) = chi_square(&found, &weights);
        assert!(freedom > 100 && off < chi_square_limit(freedom), "{name}: {off} at {freedom}");
    }
}

/// Reads are put together again into runs: each begins at 0, goes on where it was and ends where the file ended when it began.
#[test]
fn sequential_reads_are_runs_over_whole_files() {
    for name in ["web", "mail", "postmark"] {
        let workload = small(name);
        let (set, mut stream) = started(&workload, 100.0);
        let mut model = Model::new(&workload, &set);
        let mut open: Vec<(usize, u64, u64)> = Vec::new();
        let (mut whole, mut most) = (0, 0);
        for _ in 0..300_000 {
            let operation = stream.next();
            let at = file(&operation).unwrap();
            if operation.kind == Kind::Remove || (operation.kind == Kind::Setattr && operation.ordered) {
                open.retain(|run| run.0 != at);
            }
            if operation.kind == Kind::Read {
                let length = model.lengths[&at];
                // Two runs may be at one place of one file that has grown in between: then the one that ends first.
                let ends = operation.offset + u64::from(operation.bytes);
                let here =
                    |run: &(usize, u64, u64)| run.0 == at && run.1 == operation.offset && run.2 >= ends;
                let found =
                    (0..open.len()).filter(|place| here(&open[*place])).min_by_key(|place| open[*place].2);
                let run = found.map(|place| open.swap_remove(place));
                let (_, next, end) = run.unwrap_or((at, 0, length));
                assert_eq!(next, operation.offset, "{name}: {operation:?}");
                let next = next + u64::from(operation.bytes);
                assert!(next <= end, "{name}: {operation:?} of {end}");
                if next < end {
                    open.push((at, next, end))
                } else {
                    whole += 1
                }
                most = most.max(open.len() as u64);
            }
            model.execute(&operation).unwrap();
        }
        assert!(most <= workload.knobs.runs && whole > 10_000, "{name}: {most} at once, {whole} whole");
    }
}

#[test]
fn a_database_reads_twice_as_often_as_it_writes_anywhere_in_its_files() {
    let workload = preset("db_tp", &[]);
    let (set, mut stream) = started(&workload, 100.0);
    let mut kinds = [0.0; 2];
    let mut places = vec![0.0; 64 * set.data_files()];
    for _ in 0..1_000_000 {
        let operation = stream.next();
        let at = file(&operation).unwrap();
        if at < set.logs() {
            continue;
        }
        assert!(operation.offset.is_multiple_of(8192) && operation.bytes == 8192);
        kinds[usize::from(operation.kind == Kind::Write)] += 1.0;
        let stretch = operation.offset * 64 / set.file(at).bytes;
        places[(at - set.logs()) * 64 + stretch as usize] += 1.0;
    }
    let (off, freedom) = chi_square(&kinds, &[2.0, 1.0]);
    assert!(off < chi_square_limit(freedom), "{kinds:?}");
    let (off, freedom) = chi_square(&places, &vec![1.0; places.len()]);
    assert!(off < chi_square_limit(freedom), "{off} at {freedom}");
}

#[test]
fn a_log_is_written_in_batches_of_sequential_writes_with_a_commit_after_each() {
    let workload = preset("db_tp", &["log_files=2", "log_bytes=1000000"]);
    let (set, mut stream) = started(&workload, 100.0);
    let mut next = [0u64; 2];
    let (mut batches, mut drawn) = (0u32, 0u32);
    while drawn < 480_000 {
        let first = stream.next();
        let at = file(&first).unwrap();
        if at >= set.logs() {
            drawn += 1;
            continue;
        }
        let writes: Vec<Operation> = std::iter::once(first).chain((1..8).map(|_| stream.next())).collect();
        for write in writes {
            assert_eq!((write.kind, write.object, write.bytes), (Kind::Write, Object::File(at), 32_768));
            let expected = if next[at] + 32_768 > 1_000_000 { 0 } else { next[at] };
            assert_eq!((write.offset, write.stable), (expected, false));
            next[at] = expected + 32_768;
        }
        let commit = stream.next();
        assert_eq!((commit.kind, commit.object), (Kind::Commit, Object::File(at)));
        batches += 1;
    }
    // 10,000 on average, deviation 99: seven of them.
    assert!(batches.abs_diff(10_000) < 700, "{batches}");
}

#[test]
fn what_is_created_is_filled_up_to_its_size() {
    let workload = preset("postmark", &["mix.write=40"]);
    let (set, mut stream) = started(&workload, 0.0);
    let mut filling: HashMap<usize, u64> = HashMap::new();
    let mut filled = 0;
    for _ in 0..200_000 {
        let operation = stream.next();
        let at = file(&operation).unwrap();
        match operation.kind {
            Kind::Create => drop(filling.insert(at, 0)),
            Kind::Remove => drop(filling.remove(&at)),
            Kind::Write if filling.contains_key(&at) => {
                assert_eq!(filling[&at], operation.offset);
                let next = operation.offset + u64::from(operation.bytes);
                assert!(next <= set.file(at).bytes);
                filling.insert(at, next);
                if next == set.file(at).bytes {
                    filling.remove(&at);
                    filled += 1;
                }
            }
            _ => {}
        }
    }
    assert!(filled > 10_000 && filling.len() < 30, "{filled}, {}", filling.len());
}

#[test]
fn writes_are_sequential_appended_random_durable_and_committed_as_asked() {
    let settings = [
        "mix=write=1",
        "files=50",
        "churn=0",
        "commit_at_end=false",
        "write_sequential=0.2",
        "write_append=0.5",
        "stable=0.3",
        "commit_every=10",
        "append_limit=60000",
        "write_size=whole:100000",
        "append_size=fixed:1000",
        "alignment=1000000000",
        "sizes=fixed:16384",
        "files_per_rate=0",
        "popularity=uniform",
    ];
    let (_, mut stream) = started(&preset("mail", &settings), 0.0);
    let mut lengths = [16_384u64; 50];
    let (mut writes, mut appends, mut appended, mut stable, mut since) = (0, 0, 0, 0, 0);
    for _ in 0..300_000 {
        let operation = stream.next();
        let at = file(&operation).unwrap();
        if operation.kind == Kind::Commit {
            assert_eq!(since, 10);
            since = 0;
            continue;
        }
        assert!(since < 10);
        writes += 1;
        stable += u32::from(operation.stable);
        since += u32::from(!operation.stable);
        let end = operation.offset + u64::from(operation.bytes);
        if operation.bytes == 1000 {
            appends += 1;
            let ends = operation.offset == lengths[at];
            appended += u32::from(ends);
            // What does not go to the end goes round from the beginning, and the file is as long as it may be.
            assert!(ends || (lengths[at] + 1000 > 60_000 && end <= 60_000), "{operation:?}");
        } else {
            assert!(operation.offset == 0 && end == lengths[at], "{operation:?}");
        }
        lengths[at] = lengths[at].max(end);
    }
    let near = |found: u32, share: f64| {
        let (expected, count) = (share * f64::from(writes), f64::from(writes));
        (f64::from(found) - expected).abs() < 5.4 * (count * share * (1.0 - share)).sqrt()
    };
    assert!(near(appends, 0.5) && near(stable, 0.3), "{writes}: {appends} {stable}");
    assert_eq!(appended, 50 * 43, "each file grows by 43 appends");
}

#[test]
fn a_run_that_is_not_durable_is_committed_when_it_ends() {
    let settings =
        ["mix=write=1", "write_append=0", "write_sequential=1", "churn=0", "runs=1", "write_size=whole:1000"];
    let (set, mut stream) = started(&preset("mail", &settings), 0.0);
    let (mut before, mut commits) = (stream.next(), 0);
    for _ in 0..10_000 {
        let operation = stream.next();
        let end = before.offset + u64::from(before.bytes);
        let ended = before.kind == Kind::Write && end == set.file(file(&before).unwrap()).bytes;
        assert_eq!(operation.kind == Kind::Commit, ended, "{before:?} {operation:?}");
        assert!(!ended || operation.object == before.object);
        commits += u32::from(ended);
        before = operation;
    }
    assert!(commits > 1000);
}

#[test]
fn the_commits_of_the_mix_are_of_files_that_were_written() {
    let (_, mut stream) = started(&small("specsfs97"), 100.0);
    let mut written = HashSet::new();
    let (mut commits, mut of_written) = (0, 0);
    for _ in 0..200_000 {
        let operation = stream.next();
        match operation.kind {
            Kind::Write => drop(written.insert(file(&operation))),
            Kind::Commit => {
                commits += 1;
                of_written += u32::from(written.contains(&file(&operation)));
            }
            _ => {}
        }
    }
    assert!(commits > 9000 && of_written * 100 > commits * 99, "{of_written} of {commits}");
}

#[test]
fn a_seed_gives_one_stream_and_another_another() {
    let workload = small("mail");
    let set = FileSet::new(&workload, 10.0, 1).unwrap();
    let drawn = |seed| {
        let mut stream = Stream::new(&workload, &set, seed);
        (0..1000).map(|_| stream.next()).collect::<Vec<_>>()
    };
    assert_eq!(drawn(3), drawn(3));
    assert_ne!(drawn(3), drawn(4));
}

/// One number of the first 10,000 files and the first 100,000 operations.
fn fingerprint(workload: &Workload) -> (u64, u64) {
    let set = FileSet::new(workload, 100.0, 1).unwrap();
    let mut files = 0;
    for at in 0..set.files().min(10_000) {
        let found = set.file(at);
        files = finalize(files ^ found.bytes);
        files = finalize(
            files ^ (found.directory as u64) << 2 ^ u64::from(found.churn) << 1 ^ u64::from(found.present),
        );
    }
    let mut stream = Stream::new(workload, &set, 1);
    let mut operations = mix(0, Purpose::Digest, 0);
    for _ in 0..100_000 {
        let next = stream.next();
        let (what, number) = match next.object {
            Object::File(number) => (0, number),
            Object::Directory(number) => (1, number),
            Object::Link(number) => (2, number),
        };
        let flags = u64::from(next.stable) << 1 | u64::from(next.ordered);
        for part in [next.kind.index() as u64, what, number as u64, next.offset, u64::from(next.bytes), flags]
        {
            operations = finalize(operations ^ part);
        }
    }
    (files, operations)
}

/// If this fails, a seed does not mean what it meant before: measurements of other versions cannot be repeated. Where that
/// is meant, the numbers are those that the failure shows.
#[test]
fn a_seed_means_the_same_on_every_machine_and_in_every_version() {
    let found: Vec<String> = Workload::names()
        .iter()
        .map(|name| {
            let (files, operations) = fingerprint(&small(name));
            format!("{name} {files:016x} {operations:016x}")
        })
        .collect();
    assert_eq!(found, GOLDEN);
}

const GOLDEN: [&str; 6] = [
    "specsfs97 b21d42e3287ce20b b0a34418d3014f61",
    "sfs2008 b21d42e3287ce20b c30c6158ba4390de",
    "web 38fd89f97ef16cec 9a8706868e10468a",
    "db_tp aa53f8fcb63c54e6 f7d8e5bb322fe90c",
    "mail 1b1c75162bb67aad 62e6aef4a9ea5792",
    "postmark 197556f8912374ad 7495881aef1f3d9d",
];

/// Not a test: prints what an operation costs, in ns (`cargo test --release -p etude-workload -- --ignored --nocapture`).
#[test]
#[ignore = "it measures, and asserts nothing"]
fn what_an_operation_costs() {
    for name in Workload::names() {
        let (set, mut stream) = started(&small(name), 1000.0);
        let start = std::time::Instant::now();
        let sum: u64 = (0..5_000_000).map(|_| stream.next().offset & 1).sum();
        let each = start.elapsed().as_nanos() as f64 / 5e6;
        println!("{name}: {each:.0} ns an operation on {} files ({sum})", set.files());
    }
}
