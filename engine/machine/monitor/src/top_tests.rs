//! Processes that are laid out as files.

use crate::top::{Listed, Top};
use crate::tree::Tree;

const SECOND: u64 = 1_000_000_000;

/// One process: number, parent, ticks, ticks of children, threads, start in ticks.
struct One(u32, u32, i64, i64, i64, i64);

fn put(tree: &Tree, one: &One) {
    let One(pid, parent, used, waited, threads, start) = *one;
    let stat = format!(
        "{pid} (p{pid}) S {parent} 1 1 0 -1 0 0 0 0 0 {used} 0 {waited} 0 20 0 {threads} 0 {start} 100 3 9\n"
    );
    tree.put(&format!("proc/{pid}/stat"), &stat);
    tree.put(&format!("proc/{pid}/schedstat"), &format!("{} 0 1\n", used * 10_000_000));
}

/// Ends it as the kernel does: what was open of it cannot be read any more.
fn end(tree: &Tree, pid: u32) {
    tree.put(&format!("proc/{pid}/schedstat"), "gone\n");
    tree.remove(&format!("proc/{pid}"));
}

fn told(listed: &Listed) -> Vec<(u32, i64, i64)> {
    let tick = |ns: i64| ns / 10_000_000;
    listed.entries.iter().map(|one| (one.pid, tick(one.cpu_ns), tick(one.children_ns))).collect()
}

/// A tree and its list after a first look at second 10.
fn begun(ones: &[One], most: usize) -> (Tree, Top) {
    let tree = Tree::new(&[]);
    ones.iter().for_each(|one| put(&tree, one));
    let top = Top::open(&tree.root(), most, Some(1), 10 * SECOND).unwrap();
    (tree, top)
}

#[test]
fn those_that_used_most_come_first_and_those_that_did_not_run_not_at_all() {
    let (tree, mut top) = begun(&[One(5, 1, 900, 0, 1, 1), One(6, 1, 0, 0, 1, 1), One(7, 1, 5, 0, 3, 1)], 5);
    put(&tree, &One(6, 1, 20, 0, 1, 1));
    put(&tree, &One(7, 1, 75, 0, 3, 1));
    let listed = top.list(Some(1), 11 * SECOND, Some(1.0));
    assert_eq!(told(&listed), [(7, 70, 0), (6, 20, 0)]);
    assert_eq!((listed.processes, listed.unseen_ns), (3, Some(100_000_000)));
    let one = &listed.entries[0];
    assert_eq!((one.name.as_str(), one.parent, one.rss_bytes), ("p7", 1, 3 * 4096));
}

#[test]
fn no_more_are_listed_than_were_asked_for() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 0, 1, 1), One(6, 1, 0, 0, 1, 1), One(7, 1, 0, 0, 1, 1)], 2);
    for pid in 5..8 {
        put(&tree, &One(pid, 1, i64::from(pid), 0, 1, 1));
    }
    assert_eq!(told(&top.list(Some(1), 11 * SECOND, None)), [(7, 7, 0), (6, 6, 0)]);
}

#[test]
fn of_a_process_that_started_in_the_interval_all_counts() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 0, 1, 1)], 5);
    put(&tree, &One(9, 5, 30, 0, 1, 1050));
    assert!(top.list(Some(1), 11 * SECOND, None).entries.is_empty(), "nothing forked: nobody looks");
    assert_eq!(told(&top.list(Some(2), 12 * SECOND, None)), [], "it is older than the interval");
    put(&tree, &One(10, 5, 30, 0, 1, 1250));
    assert_eq!(told(&top.list(Some(3), 13 * SECOND, None)), [(10, 30, 0)]);
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let (tree, mut top) = begun(&[One(5, 1, 500, 0, 1, 1)], 5);
    put(&tree, &One(5, 1, 8, 0, 1, 1050));
    let listed = top.list(Some(2), 11 * SECOND, None);
    assert_eq!(told(&listed), [(5, 8, 0)]);
    assert_eq!(listed.entries[0].start, 1050);
}

#[test]
fn children_that_ended_unseen_stand_with_their_parent() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 100, 1, 1), One(6, 1, 0, 0, 1, 1)], 5);
    put(&tree, &One(5, 1, 1, 190, 1, 1));
    put(&tree, &One(6, 1, 50, 0, 1, 1));
    let listed = top.list(Some(9), 11 * SECOND, Some(1.5));
    assert_eq!(told(&listed), [(5, 1, 90), (6, 50, 0)], "ranked by both");
    assert_eq!(listed.unseen_ns, Some(990_000_000));
}

#[test]
fn what_was_seen_of_a_child_does_not_count_twice() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 0, 1, 1), One(6, 5, 0, 0, 1, 1)], 5);
    put(&tree, &One(6, 5, 80, 0, 1, 1));
    assert_eq!(told(&top.list(Some(1), 11 * SECOND, Some(0.8))), [(6, 80, 0)]);
    end(&tree, 6);
    put(&tree, &One(5, 1, 1, 95, 1, 1));
    assert_eq!(told(&top.list(Some(1), 12 * SECOND, Some(2.0))), [(5, 1, 15)]);
}

#[test]
fn what_was_seen_of_a_child_is_remembered_until_it_is_waited_for() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 0, 1, 1), One(6, 5, 80, 0, 1, 1)], 5);
    end(&tree, 6);
    assert_eq!(told(&top.list(Some(1), 11 * SECOND, Some(1.0))), []);
    put(&tree, &One(5, 1, 1, 95, 1, 1));
    assert_eq!(told(&top.list(Some(1), 12 * SECOND, Some(1.0))), [(5, 1, 15)]);
}

#[test]
fn a_child_that_is_waited_for_later_than_another_hides_that_one_only_until_then() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 0, 1, 1), One(6, 5, 80, 0, 1, 1)], 5);
    end(&tree, 6);
    put(&tree, &One(5, 1, 1, 20, 1, 1));
    assert_eq!(told(&top.list(Some(1), 11 * SECOND, Some(1.0))), [(5, 1, 0)]);
    put(&tree, &One(5, 1, 2, 105, 1, 1));
    assert_eq!(told(&top.list(Some(1), 12 * SECOND, Some(1.0))), [(5, 1, 25)]);
}

#[test]
fn an_old_daemon_does_not_count_for_who_took_it_in() {
    let (tree, mut top) = begun(&[One(1, 0, 0, 0, 1, 1), One(5, 1, 0, 0, 1, 1), One(6, 5, 9000, 0, 1, 1)], 5);
    end(&tree, 5);
    put(&tree, &One(6, 1, 9000, 0, 1, 1));
    top.list(Some(1), 11 * SECOND, Some(1.0));
    end(&tree, 6);
    put(&tree, &One(1, 0, 1, 9010, 1, 1));
    assert_eq!(told(&top.list(Some(1), 12 * SECOND, Some(1.0))), [(1, 1, 10)]);
}

#[test]
fn children_count_for_no_more_than_was_used_unseen() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 0, 1, 1)], 5);
    put(&tree, &One(5, 1, 10, 7000, 1, 1));
    assert_eq!(told(&top.list(Some(9), 11 * SECOND, Some(0.3))), [(5, 10, 20)]);
    put(&tree, &One(5, 1, 20, 7100, 1, 1));
    let listed = top.list(Some(9), 12 * SECOND, None);
    assert_eq!((told(&listed), listed.unseen_ns), (vec![(5, 10, 0)], None));
}

#[test]
fn nanoseconds_count_where_they_are_known() {
    let (tree, mut top) = begun(&[One(5, 1, 0, 0, 1, 1), One(6, 1, 0, 0, 1, 1)], 5);
    put(&tree, &One(5, 1, 1, 0, 1, 1));
    tree.put("proc/5/schedstat", "17000000 0 1\n");
    put(&tree, &One(6, 1, 50, 0, 1, 1));
    tree.put("proc/6/schedstat", "1000000 0 1\n");
    let listed = top.list(Some(1), 11 * SECOND, None);
    let cpu_ns: Vec<i64> = listed.entries.iter().map(|one| one.cpu_ns).collect();
    assert_eq!(
        cpu_ns,
        [500_000_000, 17_000_000],
        "of a process that had threads meanwhile the first one is not all"
    );
}

#[test]
fn bytes_are_those_of_the_interval_or_null() {
    let (tree, top) = begun(&[One(5, 1, 0, 0, 1, 1), One(6, 1, 0, 0, 1, 1)], 5);
    drop(top);
    let io = |pid: u32, read: u64| {
        tree.put(&format!("proc/{pid}/io"), &format!("read_bytes: {read}\nwrite_bytes: 7\n"))
    };
    io(5, 1000);
    let mut top = Top::open(&tree.root(), 1, Some(1), 10 * SECOND).unwrap();
    io(5, 5096);
    put(&tree, &One(5, 1, 9, 0, 1, 1));
    put(&tree, &One(6, 1, 8, 0, 1, 1));
    assert_eq!(top.list(Some(1), 11 * SECOND, None).entries[0].io, Some((4096, 0)));
    io(6, 50);
    put(&tree, &One(6, 1, 16, 0, 1, 1));
    assert_eq!(top.list(Some(1), 12 * SECOND, None).entries[0].io, None, "it was not known before");
    io(6, 20);
    put(&tree, &One(6, 1, 24, 0, 1, 1));
    assert_eq!(top.list(Some(1), 13 * SECOND, None).entries[0].io, None, "backwards");
}

#[test]
fn without_schedstat_all_are_read_whole() {
    let tree = Tree::new(&[]);
    put(&tree, &One(5, 1, 10, 0, 1, 1));
    tree.remove("proc/5/schedstat");
    let mut top = Top::open(&tree.root(), 5, None, 10 * SECOND).unwrap();
    put(&tree, &One(5, 1, 14, 0, 1, 1));
    tree.remove("proc/5/schedstat");
    assert_eq!(told(&top.list(None, 11 * SECOND, None)), [(5, 4, 0)]);
    tree.remove("proc/5");
    assert_eq!(top.list(None, 12 * SECOND, None).processes, 0);
}
