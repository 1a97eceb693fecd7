//! With events of the kernel itself, which every machine has: they take the same way as those of the processor.

use std::hint::black_box;
use std::thread;

use super::*;

/// The task clock and page faults, or what is wrong here.
fn software() -> Result<Around, String> {
    let [task_clock, page_faults] = ["task_clock", "page_faults"].map(|name| {
        let found = EVENTS.into_iter().find(|event| event.name == name);
        found.ok_or(("", "not among the events"))
    });
    let around = Around::of(vec![task_clock, page_faults]);
    match around.opened.iter().find_map(|opened| opened.as_ref().err()) {
        Some(why) => Err(why.clone()),
        None => Ok(around),
    }
}

/// The set, unless this machine lets nobody count (then it has said so for another test of this crate).
macro_rules! or_skip {
    ($around:expr) => {
        match $around {
            Ok(around) => around,
            Err(why) => {
                eprintln!("skipped: {why}");
                return;
            }
        }
    };
}

fn value(counts: &Counts, name: &str) -> f64 {
    let count = counts.counts.iter().find(|count| count.name == name).map(|count| count.value.clone());
    count.expect("it was asked for").expect("it was counted")
}

const PAGES: usize = 300;

/// Faults once a page.
fn fault() {
    // SAFETY: a new mapping, written within its bounds, and given back.
    unsafe {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), PAGES * 4096, protection, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, PAGES * 4096, libc::MADV_NOHUGEPAGE);
        (0..PAGES).for_each(|page| memory.cast::<u8>().add(page * 4096).write_volatile(1));
        libc::munmap(memory, PAGES * 4096);
    }
}

#[test]
fn only_the_stretch_is_counted() {
    let mut around = or_skip!(software());
    fault();
    around.start();
    fault();
    let one = around.stop();
    fault();
    around.start();
    let nothing = around.stop();
    around.start();
    fault();
    around.pause();
    fault();
    let paused = around.stop();
    let faults = [&one, &nothing, &paused].map(|counts| value(counts, "page_faults"));
    let once = PAGES as f64..1.5 * PAGES as f64;
    assert!(once.contains(&faults[0]) && faults[1] < 50.0 && once.contains(&faults[2]), "{faults:?}");
    assert!(value(&one, "task_clock") > value(&nothing, "task_clock"), "{one:?} {nothing:?}");
    assert_eq!(one.notes, [] as [&str; 0]);
}

#[test]
fn what_was_never_started_has_no_count() {
    let mut around = or_skip!(software());
    fault();
    let counts = around.stop();
    assert!(counts.counts.iter().all(|count| count.value == Err("event was never started".to_owned())));
}

#[test]
fn a_thread_that_is_started_later_is_counted_and_may_start_and_end_the_stretch() {
    let mut around = or_skip!(software());
    thread::scope(|scope| {
        scope.spawn(|| {
            fault();
            around.start();
            fault();
            around.pause();
            fault();
        });
    });
    let faults = value(&around.stop(), "page_faults");
    assert!((PAGES as f64..1.5 * PAGES as f64).contains(&faults), "{faults}");
}

#[test]
fn a_process_that_is_started_later_is_counted_and_may_start_the_stretch() {
    let mut around = or_skip!(software());
    for _ in 0..20 {
        // SAFETY: the child faults, switches the event and ends, without anything that a fork of threads forbids.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                fault();
                around.start();
                fault();
                libc::_exit(0);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
        fault();
        let faults = value(&around.stop(), "page_faults");
        // Ours, and the child's after the start; what it did before is not counted.
        assert!((2.0 * PAGES as f64..2.5 * PAGES as f64).contains(&faults), "{faults}");
    }
}

#[test]
fn each_set_has_cycles_and_instructions_and_a_reason_for_each_event_that_it_lacks() {
    for (set, _) in SETS {
        let mut around = Around::open(set).expect("it is in the list");
        around.start();
        (0..100_000u64).for_each(|step| assert_eq!(black_box(step), step));
        let counts = around.stop();
        let names: Vec<_> = counts.counts.iter().map(|count| count.name).collect();
        assert_eq!((&names[..2], names.len()), (&["cycles", "instructions"][..], 4));
        for count in &counts.counts {
            match &count.value {
                Ok(value) => assert!(*value >= 0.0, "{count:?}"),
                Err(why) => assert!(!why.is_empty() && !why.contains('\n'), "{count:?}"),
            }
        }
    }
    assert!(Around::open("axi").is_none());
}

#[test]
fn a_cache_event_that_this_machine_lacks_says_so() {
    let impossible = counted("L1_icache_stores", CACHE, L1I | STORES);
    let mut around = Around::of(vec![Ok(impossible)]);
    around.start();
    let why = around.stop().counts.remove(0).value.expect_err("no machine counts stores to it");
    assert!(why.contains("no such event") || why.contains("not allowed") || why.contains("perf"), "{why}");
}
