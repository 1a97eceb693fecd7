//! Ready-made workloads: every value that differs from the default, and where it is from.

use std::collections::BTreeMap;

use crate::knobs::{KNOBS, Knobs, Workload};

pub(crate) const NAMES: [&str; 6] = ["specsfs97", "sfs2008", "web", "db_tp", "mail", "postmark"];

/// A knob, its value, its source.
type Setting = (&'static str, &'static str, &'static str);

const TABLE_3: &str = "Cutting Corners (USENIX ATC 2008), Table 3";

pub(crate) fn preset(name: &str) -> Option<Workload> {
    let settings: &[&[Setting]] = match name {
        "specsfs97" => &[&SFS, &SFS97],
        "sfs2008" => &[&SFS, &SFS2008],
        "web" => &[&WEB],
        "db_tp" => &[&DB_TP],
        "mail" => &[&MAIL],
        "postmark" => &[&POSTMARK],
        _ => return None,
    };
    let mut workload = Workload { name: name.to_owned(), knobs: Knobs::default(), sources: BTreeMap::new() };
    for (knob, value, source) in settings.iter().copied().flatten() {
        let known = KNOBS.iter().find(|known| known.name == *knob);
        let done = known.map(|known| {
            workload.sources.insert(known.name, source.replace("TABLE 3", TABLE_3));
            (known.set)(&mut workload, value)
        });
        debug_assert_eq!(done, Some(Ok(())), "{name}: {knob}");
    }
    for knob in KNOBS {
        workload.sources.entry(knob.name).or_insert_with(|| "ours: the default".to_owned());
    }
    Some(workload)
}

/// Knob and value, as TOML, of what a preset sets.
#[cfg(test)]
pub(crate) fn shown(workload: &Workload) -> Vec<(&'static str, String)> {
    let ours = |knob: &&crate::knobs::Knob| {
        workload.sources.get(knob.name).is_some_and(|from| from != "ours: the default")
    };
    let row = |knob: &crate::knobs::Knob| (knob.name, (knob.toml)(workload));
    KNOBS.iter().filter(ours).map(row).collect()
}

/// Not a test: prints the tables of docs/reference/workloads.md.
#[test]
#[ignore = "it prints, and asserts nothing"]
fn the_tables_of_the_documentation() {
    println!("| knob | unit | default | what it is |\n| --- | --- | --- | --- |");
    let plain = Workload { name: String::new(), knobs: Knobs::default(), sources: BTreeMap::new() };
    for knob in KNOBS {
        let default = (knob.toml)(&plain).replace('"', "");
        println!(
            "| `{}` | {} | {} | {} |",
            knob.name,
            knob.unit,
            if knob.name == "mix" { "none".to_owned() } else { default },
            knob.what
        );
    }
    for name in NAMES {
        println!("\n### {name}\n\n```toml");
        let preset = preset(name).unwrap();
        shown(&preset).into_iter().for_each(|(knob, value)| println!("{knob} = {value}"));
        println!("```");
    }
}

/// What both versions of SPEC's have in common here.
const SFS: [Setting; 13] = [
    (
        "sizes",
        "table:1024=33,2048=21,4096=13,8192=10,16384=8,32768=5,65536=4,131072=3,262144=2,1048576=1",
        "SPEC SFS 3.0 User's Guide, chapter 1, Table 2 (from memory, not compared with the guide again); TABLE 3: 1 KB to 1 MB",
    ),
    ("directory_files", "2000", "TABLE 3: directories of thousands; 2000 is ours"),
    ("depth", "2", "ours: a directory for each client, and one below it"),
    ("links", "0.05", "ours: enough that each link is read seldom"),
    ("read_sequential", "0", "TABLE 3: random"),
    ("write_sequential", "0", "TABLE 3: random"),
    ("alignment", "8192", "ours: the transfer size of SFS 97"),
    ("churn", "0.04", "ours: enough that a name is not used again soon"),
    ("fill", "false", "ours: TABLE 3 has random writes alone, and they soon fill a file of a few KB"),
    ("write_append", "0", "TABLE 3: random"),
    ("files", "1000", "ours: half a directory, so that even the smallest load has files of every size"),
    ("present", "0.5", "ours: create and remove are equally frequent"),
    ("commit_every", "0", "ours: commits are those of the mix alone"),
];

const SFS97: [Setting; 6] = [
    (
        "mix",
        "lookup=27,read=18,write=9,getattr=11,readlink=7,readdir=2,readdirplus=9,create=1,remove=1,fsstat=1,setattr=1,access=7,commit=5",
        "SPEC SFS 3.0, NFS version 3, as published in 2008; FSINFO's 1 % is left out, so each share is 1/99 of its weight",
    ),
    (
        "bytes_per_rate",
        "10485760",
        "SPEC SFS 3.0 User's Guide, chapter 1: 10 MB for each operation/s (from memory)",
    ),
    ("popularity", "share:0.1", "TABLE 3: random 10 % of the files; SPEC SFS 3.0 likewise"),
    ("read_size", "fixed:8192", "SPECsfs2008 FAQ: SFS 97 always used transfers of 8 KB"),
    ("write_size", "fixed:8192", "SPECsfs2008 FAQ: SFS 97 always used transfers of 8 KB"),
    ("stable", "0", "ours: the mix has commits, so writes need not be durable by themselves"),
];

const SFS2008: [Setting; 6] = [
    (
        "mix",
        "lookup=24,read=18,write=10,getattr=26,readlink=1,readdir=1,readdirplus=2,create=1,remove=1,fsstat=1,setattr=4,access=11",
        "SPECsfs2008, NFS version 3, as published in 2008; it sums to 100",
    ),
    (
        "bytes_per_rate",
        "125829120",
        "SPECsfs2008 User's Guide: 120 MB for each operation/s (from memory); set it lower for a small disk",
    ),
    ("popularity", "share:0.3", "SPECsfs2008 User's Guide: 30 % of the files are used (from memory)"),
    (
        "read_size",
        "fixed:32768",
        "SPECsfs2008 FAQ: transfers of up to 32 KB; its shares of smaller ones are not used here",
    ),
    (
        "write_size",
        "fixed:32768",
        "SPECsfs2008 FAQ: transfers of up to 32 KB; its shares of smaller ones are not used here",
    ),
    ("stable", "1", "ours: the mix has no commit, so writes are durable when answered"),
];

const WEB: [Setting; 10] = [
    (
        "mix",
        "read=60,lookup=20,getattr=20",
        "TABLE 3: reads; lookup and getattr are ours: a server of static files finds and checks a file before it reads it",
    ),
    ("popularity", "zipf:0.75", "TABLE 3: Zipf, 0.6 < alpha < 0.9; the middle of that"),
    (
        "sizes",
        "tailed:2850:1.2:0.1:20000:1.3",
        "TABLE 3: long tail, 10.5 KB on average; its form, a log-normal body with a Pareto tail, after Barford and Crovella (SIGMETRICS 1998), its numbers ours",
    ),
    ("largest", "4194304", "ours: so that the mean does not hang on a few files"),
    ("files", "1000", "ours"),
    ("files_per_rate", "10", "ours: more visitors, more to visit"),
    ("directory_files", "36", "TABLE 3: small directories, of dozens; 36 is ours"),
    ("depth", "2", "ours: a site, and parts of it"),
    ("read_sequential", "1", "TABLE 3: sequential reads; each run is over a whole file"),
    (
        "read_size",
        "whole:32768",
        "ours: a small file in one request, a larger one in pieces of 32 KiB, as an NFS client reads ahead",
    ),
];

const DB_TP: [Setting; 19] = [
    ("mix", "read=2,write=1", "TABLE 3: random reads and writes, 2:1"),
    ("files", "8", "TABLE 3: few files; 8 is ours"),
    ("sizes", "fixed:17179869184", "TABLE 3: GB to TB; 16 GiB each, 128 GiB together, is ours"),
    (
        "scale",
        "0.00390625",
        "ours: 1/256, so that all fits in 1 GiB: 8 files of 64 MiB and a log; 1 is the size of the paper",
    ),
    ("popularity", "uniform", "TABLE 3: random"),
    ("directory_files", "100", "TABLE 3: small directories"),
    ("read_sequential", "0", "TABLE 3: random"),
    ("write_sequential", "0", "TABLE 3: random"),
    ("write_append", "0", "TABLE 3: random"),
    ("read_size", "fixed:8192", "ours: the page of many databases"),
    ("write_size", "fixed:8192", "ours: the page of many databases"),
    ("alignment", "8192", "ours: the page of many databases"),
    ("stable", "0", "TABLE 3: asynchronous writes"),
    ("log_files", "1", "ours"),
    ("log_bytes", "67108864", "ours: one file of the log goes round in 64 MiB"),
    ("log_write", "32768", "ours: 8 of them are the batch; any server takes requests of 32 KiB"),
    (
        "log_batch",
        "8",
        "after TABLE 3 and its text: sequential asynchronous writes, 256 KB a batch, then a commit",
    ),
    ("log_every", "48", "ours: 16 pages are written, and 32 read, for each batch on average"),
    ("commit_every", "0", "ours: pages reach the disk when the server likes; the log is what is committed"),
];

const MAIL: [Setting; 18] = [
    (
        "mix",
        "read=35,write=25,lookup=15,getattr=5,setattr=10,create=5,remove=5",
        "TABLE 3: reads and appends; the shares are ours, for Porcupine (SOSP 1999) reports none: more is read than arrives, a message in five is a new file, and setattr empties mailboxes that are full",
    ),
    ("popularity", "zipf:1.3", "TABLE 3: Zipf, alpha = 1.3"),
    (
        "sizes",
        "tailed:2250:1.1:0.08:9000:1.3",
        "TABLE 3: long tail, 4.7 KB on average; its form, a log-normal body with a Pareto tail, and its numbers are ours",
    ),
    ("largest", "1048576", "ours: so that the mean does not hang on a few files"),
    ("files", "10000", "ours: 20 directories"),
    ("files_per_rate", "50", "ours: more users, more mail"),
    ("directory_files", "500", "TABLE 3: large directories, 500 and more"),
    ("depth", "1", "ours"),
    ("read_sequential", "1", "TABLE 3: sequential reads; each run is over a whole file"),
    ("read_size", "whole:32768", "ours: a small file in one request"),
    ("write_append", "1", "TABLE 3: appending writes"),
    (
        "append_size",
        "lognormal:2250:1.1",
        "ours: what is appended is a message, so its law is the body of that of `sizes`",
    ),
    ("write_size", "whole:32768", "ours: how new files are filled"),
    (
        "append_limit",
        "12000",
        "ours: what fills up to it and is emptied again is about as large as the mean, so the whole is stationary",
    ),
    ("churn", "0.2", "ours: a fifth of the files come and go"),
    ("fill", "true", "ours: a message that is a file of its own is written when the file has been made"),
    (
        "commit_at_end",
        "true",
        "ours: a message is durable before its receipt is confirmed (RFC 5321, section 6.1)",
    ),
    ("commit_every", "0", "ours"),
];

const POSTMARK: [Setting; 17] = [
    (
        "mix",
        "read=9,write=14,create=5,remove=5",
        "after PostMark 1.5: read against append and create against delete 5:5; a whole file is 1.81 requests on average, so a transaction is ½·1.81 reads, ½ an append, ½ a create with 1.81 writes, ½ a remove",
    ),
    (
        "files",
        "1000",
        "PostMark 1.5: 500 files at first; 1000 names, of which half is there: its pool may wander, ours is stationary",
    ),
    ("churn", "1", "PostMark 1.5: any file may be deleted"),
    ("present", "0.5", "PostMark 1.5: 500 files"),
    ("sizes", "uniform:500:9999", "PostMark 1.5: set size 500 10000, the upper never reached"),
    ("popularity", "uniform", "PostMark 1.5"),
    ("directories", "0", "PostMark 1.5: no subdirectories"),
    ("directory_files", "0", "PostMark 1.5: no subdirectories"),
    ("read_sequential", "1", "PostMark 1.5: a file is read whole"),
    (
        "read_size",
        "whole:4096",
        "ours: PostMark's 512 bytes go through a buffer of the C library, whose requests are of 4096",
    ),
    (
        "write_size",
        "whole:4096",
        "ours: PostMark's 512 bytes go through a buffer of the C library, whose requests are of 4096",
    ),
    ("write_append", "1", "PostMark 1.5: writes append, or fill a new file"),
    (
        "append_size",
        "uniform:1:4096",
        "ours: PostMark appends 1 byte up to what is left to 10000; one request here",
    ),
    (
        "append_limit",
        "10000",
        "PostMark 1.5: no file grows above 10000; it then appends nothing, and ours writes from the beginning",
    ),
    ("fill", "true", "PostMark 1.5: a file is created with its content"),
    ("runs", "1", "PostMark 1.5: one process, one file at a time"),
    ("stable", "0", "PostMark 1.5: nothing is synced"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_of_every_preset_has_a_source_and_the_knobs_fit_together() {
        for name in NAMES {
            let preset = preset(name).unwrap();
            assert_eq!(preset.check(), Ok(()), "{name}");
            assert!(
                KNOBS.iter().all(|knob| preset.sources.get(knob.name).is_some_and(|from| from.len() > 3))
            );
        }
        assert_eq!(preset("nfs"), None);
    }

    #[test]
    fn means_of_web_and_mail_are_those_of_the_table() {
        // Of thousands and of 1024s alike within 2 %.
        for (name, low, high) in [("web", 10_537.0, 10_710.0), ("mail", 4_717.0, 4_794.0)] {
            let knobs = preset(name).unwrap().knobs;
            let mean = knobs.sizes.mean(knobs.largest);
            assert!((low..high).contains(&mean), "{name}: {mean}");
        }
    }
}
