//! Whether this process may take from the whole machine, or only from a part: then it would cool only itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use etude_cgroup::own_directory;

/// # Errors
/// One line: what limits this process, and what to do.
pub fn check(total: u64) -> Result<(), String> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (mounts, own) = (text("/proc/self/mountinfo"), text("/proc/self/cgroup"));
    let v1 = own_directory(&mounts, &own, Some("memory"));
    let v2 = own_directory(&mounts, &own, None);
    let limited =
        v1.and_then(|group| v1_limit(&group, total)).or_else(|| v2.and_then(|group| v2_limit(&group, total)));
    if let Some(by) = limited {
        return Err(format!(
            "{by}: it would cool only itself; run it outside of that group, or drop caches as root"
        ));
    }
    let nodes = text("/sys/devices/system/node/has_memory");
    let status = text("/proc/self/status");
    match foreign_nodes(&nodes, &status) {
        Some((allowed, all)) => Err(format!(
            "this process may have memory of node {allowed} only, of {all}: it would cool only these; run it outside of \
             that cpuset"
        )),
        None => Ok(()),
    }
}

/// What limits a group of v1, its ancestors included.
fn v1_limit(group: &Path, total: u64) -> Option<String> {
    let text = fs::read_to_string(group.join("memory.stat")).ok()?;
    limit_of_v1(&text).filter(|limit| *limit < total).map(|limit| said(group, limit))
}

fn limit_of_v1(stat: &str) -> Option<u64> {
    let mut rows = stat.lines().filter_map(|line| line.split_once(' '));
    rows.find(|(name, _)| *name == "hierarchical_memory_limit")?.1.trim().parse().ok()
}

/// What limits a group of v2 or one above it.
fn v2_limit(group: &Path, total: u64) -> Option<String> {
    let limits = group.ancestors().take_while(|group| group.join("cgroup.procs").exists());
    let mut limits = limits.flat_map(|group| ["memory.max", "memory.high"].map(|name| (group, name)));
    limits.find_map(|(group, name)| {
        let limit = limit_of_v2(&fs::read_to_string(group.join(name)).ok()?)?;
        (limit < total).then(|| said(group, limit))
    })
}

/// None for `max`.
fn limit_of_v2(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn said(group: &Path, limit: u64) -> String {
    format!("{} limits memory to {} MiB", group.display(), limit >> 20)
}

/// Nodes that this process may have memory of, and all, if some of all are not among these.
fn foreign_nodes<'a>(all: &'a str, status: &'a str) -> Option<(&'a str, &'a str)> {
    let all = all.trim();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?.trim();
    let (may, are) = (numbers(allowed)?, numbers(all)?);
    (!are.is_subset(&may)).then_some((allowed, all))
}

/// What a list like `0-1,4` names.
fn numbers(list: &str) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        found.extend(first.parse().ok()?..=last.parse::<u32>().ok()?.min(1 << 16));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limit_of_v1_is_that_of_the_strictest_ancestor() {
        let stat = "cache 29855744\nhierarchical_memory_limit 67108864\nhierarchical_memsw_limit 9\n";
        assert_eq!(limit_of_v1(stat), Some(64 << 20));
        assert_eq!(limit_of_v1("cache 29855744\n"), None);
    }

    #[test]
    fn no_limit_of_v2_is_called_max() {
        assert_eq!(limit_of_v2("max\n"), None);
        assert_eq!(limit_of_v2("67108864\n"), Some(64 << 20));
    }

    #[test]
    fn a_limit_above_the_group_limits_it_and_one_that_is_larger_than_the_machine_does_not() {
        let top = std::env::temp_dir().join(format!("etude-confined-{}", std::process::id()));
        let group = top.join("slice/unit");
        fs::create_dir_all(&group).unwrap();
        for level in [&group, &top.join("slice")] {
            fs::write(level.join("cgroup.procs"), "").unwrap();
            fs::write(level.join("memory.max"), "max\n").unwrap();
        }
        let free = v2_limit(&group, 2 << 30);
        fs::write(top.join("slice/memory.high"), "1073741824\n").unwrap();
        let (small, large) = (v2_limit(&group, 2 << 30), v2_limit(&group, 1 << 29));
        fs::remove_dir_all(&top).unwrap();
        assert_eq!((free, large), (None, None));
        assert_eq!(small, Some(format!("{}/slice limits memory to 1024 MiB", top.display())));
    }

    #[test]
    fn a_cpuset_of_some_nodes_is_told_from_one_of_all() {
        let status = "Name:\tx\nMems_allowed:\t1\nMems_allowed_list:\t0\n";
        assert_eq!(foreign_nodes("0-1\n", status), Some(("0", "0-1")));
        assert_eq!(foreign_nodes("0\n", status), None);
        assert_eq!(foreign_nodes("", status), None, "one without nodes");
        assert_eq!(foreign_nodes("0,2\n", "Mems_allowed_list:\t0-127\n"), None, "nodes that could be added");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_passed_over(text in "\\PC*") {
            let _ = (limit_of_v1(&text), limit_of_v2(&text), foreign_nodes(&text, &text), numbers(&text));
        }
    }
}
