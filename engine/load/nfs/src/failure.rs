//! Why a call has no good answer.

use std::fmt;

/// Of one call. What an answer says is told by its name in the protocol's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No connection.
    Connect,
    /// The connection ended before the answer came.
    Closed,
    /// The server's answer is that it failed: NFS3ERR_NOSPC, MNT3ERR_ACCES, PROG_MISMATCH, AUTH_TOOWEAK.
    Status(&'static str),
    /// The answer is none: what is wrong with it.
    Malformed(&'static str),
    /// None came in time; of the client that waits.
    Timeout,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect => write!(out, "no connection"),
            Failure::Closed => write!(out, "the server closed the connection"),
            Failure::Status(name) => write!(out, "the server answered {name}"),
            Failure::Malformed(what) => write!(out, "the answer is none of NFS: {what}"),
            Failure::Timeout => write!(out, "no answer"),
        }
    }
}

impl std::error::Error for Failure {}

/// The name of a status of NFS (RFC 1813, section 2.6).
pub(crate) fn nfs_name(status: u32) -> Option<&'static str> {
    NFS.iter().find(|(number, _)| *number == status).map(|(_, name)| *name)
}

/// The name of a status of the mount protocol (RFC 1813, section 5.1.5).
pub(crate) fn mount_name(status: u32) -> Option<&'static str> {
    MOUNT.iter().find(|(number, _)| *number == status).map(|(_, name)| *name)
}

/// Why the server does not take these credentials (RFC 5531, section 9).
pub(crate) fn auth_name(status: u32) -> Option<&'static str> {
    AUTH.get(status as usize).copied()
}

const NFS: [(u32, &str); 28] = [
    (1, "NFS3ERR_PERM"),
    (2, "NFS3ERR_NOENT"),
    (5, "NFS3ERR_IO"),
    (6, "NFS3ERR_NXIO"),
    (13, "NFS3ERR_ACCES"),
    (17, "NFS3ERR_EXIST"),
    (18, "NFS3ERR_XDEV"),
    (19, "NFS3ERR_NODEV"),
    (20, "NFS3ERR_NOTDIR"),
    (21, "NFS3ERR_ISDIR"),
    (22, "NFS3ERR_INVAL"),
    (27, "NFS3ERR_FBIG"),
    (28, "NFS3ERR_NOSPC"),
    (30, "NFS3ERR_ROFS"),
    (31, "NFS3ERR_MLINK"),
    (63, "NFS3ERR_NAMETOOLONG"),
    (66, "NFS3ERR_NOTEMPTY"),
    (69, "NFS3ERR_DQUOT"),
    (70, "NFS3ERR_STALE"),
    (71, "NFS3ERR_REMOTE"),
    (10001, "NFS3ERR_BADHANDLE"),
    (10002, "NFS3ERR_NOT_SYNC"),
    (10003, "NFS3ERR_BAD_COOKIE"),
    (10004, "NFS3ERR_NOTSUPP"),
    (10005, "NFS3ERR_TOOSMALL"),
    (10006, "NFS3ERR_SERVERFAULT"),
    (10007, "NFS3ERR_BADTYPE"),
    (10008, "NFS3ERR_JUKEBOX"),
];

const MOUNT: [(u32, &str); 9] = [
    (1, "MNT3ERR_PERM"),
    (2, "MNT3ERR_NOENT"),
    (5, "MNT3ERR_IO"),
    (13, "MNT3ERR_ACCES"),
    (20, "MNT3ERR_NOTDIR"),
    (22, "MNT3ERR_INVAL"),
    (63, "MNT3ERR_NAMETOOLONG"),
    (10004, "MNT3ERR_NOTSUPP"),
    (10006, "MNT3ERR_SERVERFAULT"),
];

const AUTH: [&str; 8] = [
    "AUTH_OK",
    "AUTH_BADCRED",
    "AUTH_REJECTEDCRED",
    "AUTH_BADVERF",
    "AUTH_REJECTEDVERF",
    "AUTH_TOOWEAK",
    "AUTH_INVALIDRESP",
    "AUTH_FAILED",
];

#[cfg(test)]
mod tests {
    use nfs3_types::mount::mountstat3;
    use nfs3_types::nfs3::nfsstat3;
    use nfs3_types::rpc::auth_stat;
    use nfs3_types::xdr_codec::Unpack;

    use super::*;

    fn named<T: Unpack + std::fmt::Display>(status: u32) -> Option<String> {
        T::unpack(&mut status.to_be_bytes().as_slice()).ok().map(|(found, _)| found.to_string())
    }

    #[test]
    fn each_status_has_the_name_that_the_protocol_gives_it() {
        for status in 1..20_000 {
            assert_eq!(nfs_name(status).map(str::to_owned), named::<nfsstat3>(status), "{status}");
            assert_eq!(mount_name(status).map(str::to_owned), named::<mountstat3>(status), "{status}");
            assert_eq!(auth_name(status).map(str::to_owned), named::<auth_stat>(status), "{status}");
        }
    }
}
