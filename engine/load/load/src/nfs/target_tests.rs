//! The target with a server of a few lines, which answers by the procedure: well, late, with errors, or not at all.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use etude_clock::SECOND;
use etude_nfs::{Export, Records};
use etude_workload::{FileSet, Workload};

use super::*;
use crate::nfs::populate::{Settings, prepare};

/// What becomes of a call of that procedure: by how many GETATTRs were before it, which only the load makes.
type Answers = fn(usize, u32) -> Fate;

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Good,
    Status(u32),
    Garbage,
    Nothing,
    Close,
}

const NULL: u32 = 0;
const GETATTR: u32 = 1;
const LOOKUP: u32 = 3;
const READDIRPLUS: u32 = 17;
const FSSTAT: u32 = 18;
const FSINFO: u32 = 19;

/// Serves the port mapper's, mount's and NFS's calls, several at a time in the reverse of their order.
fn server(answers: Answers) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let number = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let number = Arc::clone(&number);
            thread::spawn(move || serve(stream, answers, &number));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answers: Answers, number: &AtomicUsize) -> Option<()> {
    let mut records = Records::default();
    loop {
        let bytes = stream.read(records.room(65536)).ok().filter(|bytes| *bytes > 0)?;
        records.came(bytes);
        let mut all: Vec<Vec<u8>> = Vec::new();
        while let Some(call) = records.next_record().ok()? {
            let word = |at: usize| u32::from_be_bytes(call[4 * at..4 * at + 4].try_into().unwrap());
            let (xid, program, procedure) = (word(0), word(3), word(5));
            let counts = program == 100_003 && ![NULL, FSINFO, FSSTAT].contains(&procedure);
            let step = usize::from(counts && procedure == GETATTR);
            let before = number.fetch_add(step, Ordering::SeqCst);
            let fate = if counts { answers(before, procedure) } else { Fate::Good };
            let body = match fate {
                Fate::Good if program == 100_005 => words(&[0, 4, 7, 0]),
                Fate::Good => good(procedure),
                Fate::Status(status) => words(&[status, 0, 0, 0, 0]),
                Fate::Garbage => words(&[77]),
                Fate::Nothing => continue,
                Fate::Close => return None,
            };
            let length = 0x8000_0000 | (24 + body.len() as u32);
            all.push([words(&[length, xid, 1, 0, 0, 0, 0]), body].concat());
        }
        all.reverse();
        stream.write_all(&all.concat()).ok()?;
    }
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A good answer: nothing has attributes, all have the same handle, and directories are empty.
fn good(procedure: u32) -> Vec<u8> {
    match procedure {
        NULL => Vec::new(),
        GETATTR => [words(&[0, 1]), vec![0; 80]].concat(),
        LOOKUP => words(&[0, 4, 9, 0, 0]),
        8..=10 => words(&[0, 1, 4, 9, 0, 0, 0]),
        READDIRPLUS => words(&[0, 0, 0, 0, 0, 1]),
        7 => words(&[0, 0, 0, 1 << 20, 0, 0, 0]),
        FSSTAT => [words(&[0, 0]), vec![0; 52]].concat(),
        FSINFO => [words(&[0, 0, 1 << 20, 0, 0, 1 << 20]), vec![0; 32]].concat(),
        14 => words(&[0, 0, 0, 0, 0]),
        _ => words(&[0, 0, 0]),
    }
}

/// GETATTRs of ten files at such a server, once they are there.
fn target(answers: Answers, connections: usize) -> Result<NfsTarget, String> {
    let address = server(answers);
    let export = Export {
        text: "nfs://here/mem".to_owned(),
        host: address.ip().to_string(),
        port: address.port(),
        mount_port: Some(address.port()),
        path: "/mem".to_owned(),
    };
    let workload = Workload::read("mix.getattr = 1\nfiles = 10\nfiles_per_rate = 0\n", "a test").unwrap();
    let set = FileSet::new(&workload, 1.0, 1).unwrap();
    let stream = Stream::new(&workload, &set, 1);
    let settings = Settings { export, connections, patience: Duration::from_secs(20) };
    let prepared = prepare(&settings, "test", set, 1, &mut |_, _| ())?;
    Ok(NfsTarget::new(prepared, stream))
}

fn results(target: &mut NfsTarget, tickets: std::ops::Range<u64>) -> Vec<(u64, Result<(), Failure>)> {
    tickets.clone().for_each(|ticket| target.send(ticket).unwrap());
    let (mut ended, until) = (Vec::new(), monotonic_ns() + 20 * SECOND);
    while ended.len() < tickets.clone().count() && monotonic_ns() < until {
        target.listen(until, &mut ended).unwrap();
    }
    let mut found: Vec<_> = ended.into_iter().map(|ended| (ended.ticket, ended.result)).collect();
    found.sort_by_key(|(ticket, _)| *ticket);
    found
}

fn all(tickets: std::ops::Range<u64>, result: &Result<(), Failure>) -> Vec<(u64, Result<(), Failure>)> {
    tickets.map(|ticket| (ticket, result.clone())).collect()
}

#[test]
fn requests_end_well_over_one_connection_or_several() {
    for connections in [1, 3] {
        let mut target = target(|_, _| Fate::Good, connections).unwrap();
        assert_eq!(results(&mut target, 0..200), all(0..200, &Ok(())));
        assert!(target.work.requests.is_empty());
    }
}

#[test]
fn a_servers_status_is_a_failure_by_its_name() {
    let jukebox: Answers = |_, procedure| if procedure == GETATTR { Fate::Status(10008) } else { Fate::Good };
    let failed = Err(Failure::Status("NFS3ERR_JUKEBOX"));
    assert_eq!(results(&mut target(jukebox, 1).unwrap(), 0..20), all(0..20, &failed));
}

#[test]
fn garbage_is_malformed() {
    let garbage: Answers = |_, procedure| if procedure == GETATTR { Fate::Garbage } else { Fate::Good };
    assert_eq!(results(&mut target(garbage, 1).unwrap(), 0..5), all(0..5, &Err(Failure::Malformed)));
}

#[test]
fn a_connection_that_ends_fails_what_is_under_way_and_the_next_is_made_anew() {
    let closing: Answers = |before, procedure| {
        if (before, procedure) == (0, GETATTR) { Fate::Close } else { Fate::Good }
    };
    let mut target = target(closing, 1).unwrap();
    assert_eq!(results(&mut target, 0..3), all(0..3, &Err(Failure::Closed)));
    // Until the next attempt there is none; it comes by itself.
    let until = monotonic_ns() + 20 * SECOND;
    let mut ticket = 3;
    while results(&mut target, ticket..ticket + 1)[0].1 != Ok(()) {
        assert!(monotonic_ns() < until, "it did not come back");
        ticket += 1;
    }
}

#[test]
fn what_was_given_up_is_not_told_and_holds_nobody_up() {
    let silent: Answers = |before, procedure| {
        if (before, procedure) == (0, GETATTR) { Fate::Nothing } else { Fate::Good }
    };
    let mut target = target(silent, 1).unwrap();
    target.send(0).unwrap();
    let mut ended = Vec::new();
    target.listen(0, &mut ended).unwrap();
    target.give_up(0);
    target.give_up(0);
    assert_eq!(results(&mut target, 1..30), all(1..30, &Ok(())));
    assert!(ended.is_empty() && target.work.requests.is_empty());
}

#[test]
fn a_population_that_fails_is_one_line_that_names_the_file() {
    let full: Answers = |_, procedure| if procedure == 7 { Fate::Status(28) } else { Fate::Good };
    let line = target(full, 1).map(drop).unwrap_err();
    assert!(line.contains("filling") && line.contains("NFS3ERR_NOSPC") && !line.contains('\n'), "{line}");
    let closed: Answers = |_, procedure| if procedure == 8 { Fate::Close } else { Fate::Good };
    let line = target(closed, 1).map(drop).unwrap_err();
    assert!(line.contains("making") && line.contains("closed the connection"), "{line}");
}
