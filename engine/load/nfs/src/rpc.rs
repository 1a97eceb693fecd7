//! What is around each call and answer (RFC 5531): numbers, programs, who asks, and whether it was taken.

use std::ffi::CStr;

use nfs3_types::rpc::{auth_unix, opaque_auth};
use nfs3_types::xdr_codec::{Opaque, Pack};

use crate::failure::{Failure, auth_name};
use crate::record::head;
use crate::xdr::{Words, put_u32};

/// A service and its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    pub number: u32,
    pub version: u32,
}

pub(crate) const PORTMAP: Program = Program { number: 100_000, version: 2 };
pub(crate) const MOUNT: Program = Program { number: 100_005, version: 3 };
pub(crate) const NFS: Program = Program { number: 100_003, version: 3 };

const CALL: u32 = 0;
const REPLY: u32 = 1;
const RPC_VERSION: u32 = 2;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;
/// Of credentials and verifiers (RFC 5531, section 8.2).
const MOST_AUTH_BYTES: usize = 400;
/// Of a machine's name (RFC 5531, appendix A).
const MOST_NAME_BYTES: usize = 255;

/// Who asks, as AUTH_SYS has it, with the empty verifier behind it: the same bytes in each call.
#[derive(Debug, Clone)]
pub struct Credentials(Vec<u8>);

impl Credentials {
    /// A user and a group of a machine. The server believes them.
    pub fn new(machine: &[u8], uid: u32, gid: u32) -> Credentials {
        let machine = &machine[..machine.len().min(MOST_NAME_BYTES)];
        let machinename = Opaque::owned(machine.to_vec());
        let who = opaque_auth::auth_unix(&auth_unix { stamp: 0, machinename, uid, gid, gids: Vec::new() });
        let mut bytes = Vec::new();
        // Into memory: nothing can fail.
        let _ = who.pack(&mut bytes).and_then(|_| opaque_auth::default().pack(&mut bytes));
        Credentials(bytes)
    }

    /// This process's.
    pub fn own() -> Credentials {
        let mut name = [0; MOST_NAME_BYTES + 1];
        // SAFETY: there is room for as many bytes as are said, and the last stays 0; the others have no arguments.
        let (uid, gid) = unsafe {
            libc::gethostname(name.as_mut_ptr().cast(), MOST_NAME_BYTES);
            (libc::geteuid(), libc::getegid())
        };
        let name = CStr::from_bytes_until_nul(&name).map_or(&b"etude"[..], CStr::to_bytes);
        Credentials::new(name, uid, gid)
    }
}

/// Appends a call as a record: its head, and what `body` puts.
pub(crate) fn put_call(
    out: &mut Vec<u8>,
    xid: u32,
    (program, procedure): (Program, u32),
    who: &Credentials,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let begin = out.len();
    put_u32(out, 0);
    for word in [xid, CALL, RPC_VERSION, program.number, program.version, procedure] {
        put_u32(out, word);
    }
    out.extend_from_slice(&who.0);
    body(out);
    let length = out.len() - begin - 4;
    out[begin..begin + 4].copy_from_slice(&head(length));
}

/// To which call a record is the answer.
///
/// # Errors
/// It is no answer.
pub(crate) fn xid_of(record: &[u8]) -> Result<u32, Failure> {
    let mut words = Words::new(record);
    let xid = words.u32()?;
    match words.u32()? {
        REPLY => Ok(xid),
        _ => Err(Failure::Malformed("it is no answer")),
    }
}

/// What a call has brought, of a record whose number is known.
///
/// # Errors
/// It was not taken, by the name that RFC 5531 gives the reason, or is no answer.
pub(crate) fn result_of(record: &[u8]) -> Result<&[u8], Failure> {
    let mut words = Words::new(record);
    words.skip(8)?;
    match words.u32()? {
        ACCEPTED => {
            words.u32()?;
            words.opaque(MOST_AUTH_BYTES)?;
            accepted(words)
        }
        DENIED => Err(denied(words)?),
        _ => Err(Failure::Malformed("it is neither accepted nor denied")),
    }
}

fn accepted(mut words: Words<'_>) -> Result<&[u8], Failure> {
    Err(Failure::Status(match words.u32()? {
        0 => return Ok(words.rest()),
        1 => "PROG_UNAVAIL",
        2 => "PROG_MISMATCH",
        3 => "PROC_UNAVAIL",
        4 => "GARBAGE_ARGS",
        5 => "SYSTEM_ERR",
        _ => return Err(Failure::Malformed("how it was accepted is no status of RPC")),
    }))
}

fn denied(mut words: Words<'_>) -> Result<Failure, Failure> {
    match words.u32()? {
        0 => Ok(Failure::Status("RPC_MISMATCH")),
        1 => {
            let why = words.u32()?;
            auth_name(why)
                .map(Failure::Status)
                .ok_or(Failure::Malformed("why it was denied is no status of RPC"))
        }
        _ => Err(Failure::Malformed("how it was denied is no status of RPC")),
    }
}
