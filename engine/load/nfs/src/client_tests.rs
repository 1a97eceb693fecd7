//! The waiting client with servers of a few lines: good, refusing, silent, gone.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use proptest::prelude::*;

use super::*;

/// A server that reads once from each of its connections and then says that, with the call's number first.
fn says(answers: Vec<Vec<u32>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for words in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut call = [0; 4096];
            let Ok(bytes) = stream.read(&mut call) else { continue };
            if bytes < 8 || words.is_empty() {
                continue;
            }
            let mut answer = (0x8000_0000_u32 | (4 + 4 * words.len() as u32)).to_be_bytes().to_vec();
            answer.extend_from_slice(&call[4..8]);
            words.iter().for_each(|word| answer.extend_from_slice(&word.to_be_bytes()));
            let _ = stream.write_all(&answer);
        }
    });
    address
}

fn who() -> Credentials {
    Credentials::new(b"piano", 1, 2)
}

const PATIENCE: Duration = Duration::from_secs(20);
const GOOD: [u32; 5] = [1, 0, 0, 0, 0];

fn with(rest: &[u32]) -> Vec<u32> {
    [&GOOD[..], rest].concat()
}

#[test]
fn a_port_is_asked_for_and_an_export_mounted() {
    let port = says(vec![with(&[20048]), with(&[0]), with(&[65536])]);
    assert_eq!(port_of(port, MOUNT, &who(), PATIENCE), Ok(20048));
    assert_eq!(port_of(port, NFS, &who(), PATIENCE), Err(Failure::Status("PROG_UNAVAIL")));
    assert!(matches!(port_of(port, NFS, &who(), PATIENCE), Err(Failure::Malformed(_))));
    let at = says(vec![with(&[0, 4, 0x6162_6364, 1, 1]), with(&[13]), with(&[3])]);
    assert_eq!(mounted(at, "/mem", &who(), PATIENCE), Ok(Handle::new(b"abcd").unwrap()));
    assert_eq!(mounted(at, "/mem", &who(), PATIENCE), Err(Failure::Status("MNT3ERR_ACCES")));
    assert!(matches!(mounted(at, "/mem", &who(), PATIENCE), Err(Failure::Malformed(_))));
}

#[test]
fn a_refusal_is_told_by_its_name() {
    for (words, expected) in [
        (vec![1, 0, 0, 0, 1], Failure::Status("PROG_UNAVAIL")),
        (vec![1, 0, 0, 0, 2, 4, 4], Failure::Status("PROG_MISMATCH")),
        (vec![1, 0, 0, 0, 4], Failure::Status("GARBAGE_ARGS")),
        (vec![1, 0, 0, 0, 5], Failure::Status("SYSTEM_ERR")),
        (vec![1, 1, 0, 2, 2], Failure::Status("RPC_MISMATCH")),
        (vec![1, 1, 1, 5], Failure::Status("AUTH_TOOWEAK")),
        (vec![1, 1, 1, 99], Failure::Malformed("why it was denied is no status of RPC")),
        (vec![0], Failure::Malformed("it is no answer")),
        (vec![1, 2], Failure::Malformed("it is neither accepted nor denied")),
        (Vec::new(), Failure::Closed),
    ] {
        let mut client = Client::connect(says(vec![words]), &who(), PATIENCE).unwrap();
        assert_eq!(client.call(&Call::Null, |_| Ok(())), Err(expected));
    }
}

#[test]
fn a_server_that_answers_nothing_is_not_waited_for_beyond_the_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let patience = Duration::from_millis(30);
    let mut client = Client::connect(listener.local_addr().unwrap(), &who(), patience).unwrap();
    assert_eq!(client.call(&Call::Null, |_| Ok(())), Err(Failure::Timeout));
}

#[test]
fn what_cannot_be_mounted_is_one_line_that_says_what_to_do() {
    let refused = says(vec![with(&[13])]);
    let export = |mount_port| Export {
        text: "nfs://127.0.0.1:1/mem".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: 1,
        mount_port: Some(mount_port),
        path: "/mem".to_owned(),
    };
    for (export, part) in [(export(refused.port()), "MNT3ERR_ACCES"), (export(1), "no connection")] {
        let line = Mounted::new(&export, &who(), PATIENCE).map(|_| ()).unwrap_err();
        assert!(line.contains(part) && !line.contains('\n'), "{line}");
    }
}

proptest! {
    #[test]
    fn any_answer_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = (xid_of(&bytes), port(&bytes), root(&bytes));
        let accepted = [&[0; 4], &[0, 0, 0, 1][..], &[0; 12], &bytes].concat();
        let _ = (result_of(&bytes), result_of(&accepted));
    }
}
