//! The population compared with the knobs.

use std::collections::HashSet;

use crate::testing::{chi_square, chi_square_limit, kolmogorov_limit};
use crate::{FileSet, Workload};

fn with(settings: &[&str]) -> Workload {
    let mut workload = Workload::read("mix.read = 1", "a test").unwrap();
    settings.iter().for_each(|setting| workload.set(setting).unwrap());
    workload
}

fn all_presets() -> impl Iterator<Item = Workload> {
    Workload::names().iter().map(|name| Workload::preset(name).unwrap())
}

#[test]
fn a_larger_load_adds_files_and_changes_none() {
    let mut own = with(&[
        "files_per_rate=7",
        "links=0.3",
        "depth=3",
        "churn=0.1",
        "directories=5",
        "directory_spread=zipf:1",
    ]);
    own.set("log_files=2").unwrap();
    for workload in all_presets().chain([own]) {
        let small = FileSet::new(&workload, 3.0, 9).unwrap();
        let large = FileSet::new(&workload, 40.0, 9).unwrap();
        assert!(small.files() <= large.files() && small.links() <= large.links());
        for index in 0..small.files() {
            assert_eq!(small.file(index), large.file(index), "{}", workload.name());
        }
        assert!((0..small.directories()).all(|index| small.directory(index) == large.directory(index)));
        assert!((0..small.links()).all(|index| small.link(index) == large.link(index)));
        assert_eq!(small.files() == large.files(), small.digest() == large.digest());
        assert_ne!(
            small.digest(),
            FileSet::new(&workload, 3.0, 10).unwrap().digest() * u64::from(workload.name() != "db_tp")
        );
    }
}

#[test]
fn the_number_of_files_grows_with_the_load_as_the_knobs_say() {
    let by_files = with(&["files=100", "files_per_rate=2.5"]);
    let files = |rate| FileSet::new(&by_files, rate, 1).unwrap().files();
    assert_eq!((files(0.0), files(40.0), files(100.0)), (100, 100, 250));
    let by_bytes = with(&["files=1", "bytes_per_rate=10000", "sizes=fixed:1000"]);
    let set = FileSet::new(&by_bytes, 7.0, 1).unwrap();
    assert_eq!((set.files(), set.bytes()), (70, 70_000));
    let small = FileSet::new(&Workload::preset("db_tp").unwrap(), 100.0, 1).unwrap();
    assert_eq!(small.bytes(), 9 * (64 << 20));
}

#[test]
fn sizes_of_presets_follow_their_law_and_have_its_mean() {
    for (name, low, high) in
        [("web", 10_290.0, 10_967.0), ("mail", 4606.0, 4909.0), ("postmark", 5199.0, 5300.0)]
    {
        let mut workload = Workload::preset(name).unwrap();
        let count = if cfg!(debug_assertions) { 1_000_000 } else { 4_000_000 };
        workload.set(&format!("files={count}")).unwrap();
        let set = FileSet::new(&workload, 0.0, 1).unwrap();
        let mean = set.bytes() as f64 / count as f64;
        assert!((low..high).contains(&mean), "{name}: {mean}");
        let mut sizes = set.sizes()[..100_000].to_vec();
        sizes.sort_unstable();
        let law = &workload.knobs.sizes;
        let all = law.share_up_to(workload.knobs.largest);
        let off = |at: usize| {
            (law.share_up_to(sizes[at]) / all - sizes.partition_point(|size| *size <= sizes[at]) as f64 / 1e5)
                .abs()
        };
        let worst = (0..100_000).step_by(7).map(off).fold(0.0, f64::max);
        assert!(worst < kolmogorov_limit(100_000), "{name}: {worst}");
    }
}

#[test]
fn names_are_unique_and_parents_come_first() {
    let own = with(&[
        "files=500",
        "links=0.5",
        "depth=4",
        "directory_files=7",
        "log_files=3",
        "spare=4",
        "churn=0.2",
    ]);
    for workload in all_presets().chain([own]) {
        let set = FileSet::new(&workload, 1.0, 5).unwrap();
        let directories = set.directories() + set.spare_directories();
        assert!((1..directories).all(|at| set.directory(at).parent.is_some_and(|parent| parent < at)));
        let deepest = (0..directories).map(|at| set.path_of_directory(at).matches('/').count()).max();
        assert_eq!(
            deepest.map(|deepest| deepest as u64 + 1),
            Some(if directories < 3 { 1 } else { workload.knobs.depth })
        );
        let files = set.files().min(3000);
        let paths: Vec<String> = (0..directories)
            .map(|at| set.path_of_directory(at))
            .chain((0..files).map(|at| set.path_of_file(at)))
            .chain((0..set.links().min(3000) + set.spare_links()).map(|at| set.path_of_link(at)))
            .collect();
        assert_eq!(paths.iter().collect::<HashSet<_>>().len(), paths.len(), "{}", workload.name());
        assert!((0..set.files()).all(|at| set.file(at).directory < set.directories()));
    }
}

#[test]
fn a_link_leads_to_a_file() {
    let set =
        FileSet::new(&with(&["files=300", "links=0.7", "depth=3", "directory_files=5", "spare=2"]), 1.0, 5)
            .unwrap();
    let files: HashSet<String> = (0..set.files()).map(|at| set.path_of_file(at)).collect();
    assert_eq!(set.links(), 210);
    for index in 0..set.links() + set.spare_links() {
        let link = set.link(index);
        let place = set.path_of_directory(link.directory);
        let mut path: Vec<&str> = place.split('/').filter(|name| !name.is_empty()).collect();
        for name in link.to.split('/') {
            if name == ".." { assert!(path.pop().is_some()) } else { path.push(name) }
        }
        assert!(files.contains(&path.join("/")), "{place} {}", link.to);
    }
}

#[test]
fn files_spread_by_zipf_fill_directories_by_zipf() {
    let set = FileSet::new(&with(&["files=100000", "directories=50", "directory_spread=zipf:0.8"]), 1.0, 5)
        .unwrap();
    let mut counts = vec![0.0; 50];
    (0..set.files()).for_each(|at| counts[set.directory_of(at) - 1] += 1.0);
    let weights: Vec<f64> = (1..=50).map(|rank| f64::from(rank).powf(-0.8)).collect();
    let (off, freedom) = chi_square(&counts, &weights);
    assert!(off < chi_square_limit(freedom), "{off}");
}

#[test]
fn what_cannot_be_kept_in_mind_is_refused() {
    let huge = with(&["bytes_per_rate=1e15", "sizes=fixed:1"]);
    for rate in [f64::NAN, -1.0, f64::INFINITY] {
        assert!(FileSet::new(&huge, rate, 1).unwrap_err().starts_with("rate:"));
    }
    assert!(FileSet::new(&huge, 1e3, 1).unwrap_err().contains("more than 50000000 files"));
}
