//! What can be asked of a server of NFS, and the bytes of it (RFC 1813, section 3.3).
//!
//! What loads consist of is put by hand, without a copy of the handle; the rest by `nfs3_types`. A test holds both to each other.

use nfs3_types::nfs3::{
    COMMIT3args, CREATE3args, FSINFO3args, FSSTAT3args, MKDIR3args, NFS_PROGRAM, Nfs3Option, READDIR3args,
    READDIRPLUS3args, READLINK3args, REMOVE3args, RENAME3args, RMDIR3args, SETATTR3args, SYMLINK3args,
    cookieverf3, createhow3, diropargs3, sattr3, set_mtime, symlinkdata3,
};
use nfs3_types::xdr_codec::Pack;

use crate::handle::Handle;
use crate::rpc::{Credentials, NFS, put_call};
use crate::xdr::{put_opaque, put_u32, put_u64};

/// All rights of ACCESS (RFC 1813, section 3.3.4).
const ALL_RIGHTS: u32 = 0x3f;
const UNSTABLE: u32 = 0;
const FILE_SYNC: u32 = 2;
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;
const LINK_MODE: u32 = 0o777;

/// One call. Names are bytes, as the server has them.
#[derive(Debug, Clone, Copy)]
pub enum Call<'a> {
    Null,
    Getattr {
        object: &'a Handle,
    },
    /// Sets the size, or (None) the time of the last change to the server's now.
    Setattr {
        object: &'a Handle,
        size: Option<u64>,
    },
    Lookup {
        directory: &'a Handle,
        name: &'a [u8],
    },
    Access {
        object: &'a Handle,
    },
    Readlink {
        link: &'a Handle,
    },
    Read {
        file: &'a Handle,
        offset: u64,
        bytes: u32,
    },
    /// `durable`: on the disk before it is answered (FILE_SYNC).
    Write {
        file: &'a Handle,
        offset: u64,
        data: &'a [u8],
        durable: bool,
    },
    /// An empty file; one that is there is made empty.
    Create {
        directory: &'a Handle,
        name: &'a [u8],
    },
    Mkdir {
        directory: &'a Handle,
        name: &'a [u8],
    },
    Symlink {
        directory: &'a Handle,
        name: &'a [u8],
        to: &'a [u8],
    },
    Remove {
        directory: &'a Handle,
        name: &'a [u8],
    },
    Rmdir {
        directory: &'a Handle,
        name: &'a [u8],
    },
    Rename {
        directory: &'a Handle,
        name: &'a [u8],
        to: &'a Handle,
        new: &'a [u8],
    },
    /// An answer of at most so many bytes, from after `cookie`.
    Readdir {
        directory: &'a Handle,
        cookie: u64,
        verifier: [u8; 8],
        bytes: u32,
    },
    Readdirplus {
        directory: &'a Handle,
        cookie: u64,
        verifier: [u8; 8],
        bytes: u32,
    },
    Fsstat {
        root: &'a Handle,
    },
    Fsinfo {
        root: &'a Handle,
    },
    /// All of the file.
    Commit {
        file: &'a Handle,
    },
}

impl Call<'_> {
    pub(crate) fn put(&self, out: &mut Vec<u8>, xid: u32, who: &Credentials) {
        put_call(out, xid, (NFS, self.procedure() as u32), who, |out| self.put_arguments(out));
    }

    fn procedure(&self) -> NFS_PROGRAM {
        match self {
            Call::Null => NFS_PROGRAM::NFSPROC3_NULL,
            Call::Getattr { .. } => NFS_PROGRAM::NFSPROC3_GETATTR,
            Call::Setattr { .. } => NFS_PROGRAM::NFSPROC3_SETATTR,
            Call::Lookup { .. } => NFS_PROGRAM::NFSPROC3_LOOKUP,
            Call::Access { .. } => NFS_PROGRAM::NFSPROC3_ACCESS,
            Call::Readlink { .. } => NFS_PROGRAM::NFSPROC3_READLINK,
            Call::Read { .. } => NFS_PROGRAM::NFSPROC3_READ,
            Call::Write { .. } => NFS_PROGRAM::NFSPROC3_WRITE,
            Call::Create { .. } => NFS_PROGRAM::NFSPROC3_CREATE,
            Call::Mkdir { .. } => NFS_PROGRAM::NFSPROC3_MKDIR,
            Call::Symlink { .. } => NFS_PROGRAM::NFSPROC3_SYMLINK,
            Call::Remove { .. } => NFS_PROGRAM::NFSPROC3_REMOVE,
            Call::Rmdir { .. } => NFS_PROGRAM::NFSPROC3_RMDIR,
            Call::Rename { .. } => NFS_PROGRAM::NFSPROC3_RENAME,
            Call::Readdir { .. } => NFS_PROGRAM::NFSPROC3_READDIR,
            Call::Readdirplus { .. } => NFS_PROGRAM::NFSPROC3_READDIRPLUS,
            Call::Fsstat { .. } => NFS_PROGRAM::NFSPROC3_FSSTAT,
            Call::Fsinfo { .. } => NFS_PROGRAM::NFSPROC3_FSINFO,
            Call::Commit { .. } => NFS_PROGRAM::NFSPROC3_COMMIT,
        }
    }

    fn put_arguments(&self, out: &mut Vec<u8>) {
        match *self {
            Call::Null => {}
            Call::Getattr { object } => put_opaque(out, object.bytes()),
            Call::Access { object } => {
                put_opaque(out, object.bytes());
                put_u32(out, ALL_RIGHTS);
            }
            Call::Lookup { directory, name } => {
                put_opaque(out, directory.bytes());
                put_opaque(out, name);
            }
            Call::Read { file, offset, bytes } => {
                put_opaque(out, file.bytes());
                put_u64(out, offset);
                put_u32(out, bytes);
            }
            Call::Write { file, offset, data, durable } => {
                put_opaque(out, file.bytes());
                put_u64(out, offset);
                put_u32(out, data.len() as u32);
                put_u32(out, if durable { FILE_SYNC } else { UNSTABLE });
                put_opaque(out, data);
            }
            // Into memory: nothing can fail.
            _ => drop(self.pack_rare(out)),
        }
    }

    fn pack_rare(&self, out: &mut Vec<u8>) -> nfs3_types::xdr_codec::Result<usize> {
        match *self {
            Call::Setattr { object, size } => {
                let mut new_attributes = sattr3::default();
                match size {
                    Some(bytes) => new_attributes.size = Nfs3Option::Some(bytes),
                    None => new_attributes.mtime = set_mtime::SET_TO_SERVER_TIME,
                }
                SETATTR3args { object: object.owned(), new_attributes, guard: Nfs3Option::None }.pack(out)
            }
            Call::Readlink { link } => READLINK3args { symlink: link.owned() }.pack(out),
            Call::Create { directory, name } => {
                let how = createhow3::UNCHECKED(sattr3 { size: Nfs3Option::Some(0), ..moded(FILE_MODE) });
                CREATE3args { where_: place(directory, name), how }.pack(out)
            }
            Call::Mkdir { directory, name } => {
                MKDIR3args { where_: place(directory, name), attributes: moded(DIRECTORY_MODE) }.pack(out)
            }
            Call::Symlink { directory, name, to } => {
                let symlink = symlinkdata3 { symlink_attributes: moded(LINK_MODE), symlink_data: to.into() };
                SYMLINK3args { where_: place(directory, name), symlink }.pack(out)
            }
            Call::Remove { directory, name } => REMOVE3args { object: place(directory, name) }.pack(out),
            Call::Rmdir { directory, name } => RMDIR3args { object: place(directory, name) }.pack(out),
            Call::Rename { directory, name, to, new } => {
                RENAME3args { from: place(directory, name), to: place(to, new) }.pack(out)
            }
            Call::Readdir { directory, cookie, verifier, bytes } => {
                let (dir, cookieverf) = (directory.owned(), cookieverf3(verifier));
                READDIR3args { dir, cookie, cookieverf, count: bytes }.pack(out)
            }
            Call::Readdirplus { directory, cookie, verifier, bytes } => {
                let (dir, cookieverf) = (directory.owned(), cookieverf3(verifier));
                READDIRPLUS3args { dir, cookie, cookieverf, dircount: bytes, maxcount: bytes }.pack(out)
            }
            Call::Fsstat { root } => FSSTAT3args { fsroot: root.owned() }.pack(out),
            Call::Fsinfo { root } => FSINFO3args { fsroot: root.owned() }.pack(out),
            Call::Commit { file } => COMMIT3args { file: file.owned(), offset: 0, count: 0 }.pack(out),
            Call::Null
            | Call::Getattr { .. }
            | Call::Lookup { .. }
            | Call::Access { .. }
            | Call::Read { .. }
            | Call::Write { .. } => Ok(0),
        }
    }
}

fn moded(mode: u32) -> sattr3 {
    sattr3 { mode: Nfs3Option::Some(mode), ..sattr3::default() }
}

fn place<'a>(directory: &Handle, name: &'a [u8]) -> diropargs3<'a> {
    diropargs3 { dir: directory.owned(), name: name.into() }
}

#[cfg(test)]
mod tests {
    use nfs3_types::nfs3::{ACCESS3args, GETATTR3args, LOOKUP3args, READ3args, WRITE3args, stable_how};
    use nfs3_types::rpc::{auth_unix, call_body, fragment_header, msg_body, opaque_auth, rpc_msg};
    use nfs3_types::xdr_codec::Opaque;
    use proptest::prelude::*;

    use super::*;

    /// As `nfs3_types` writes a call.
    fn expected(xid: u32, procedure: NFS_PROGRAM, arguments: &impl Pack) -> Vec<u8> {
        let who =
            auth_unix { stamp: 0, machinename: Opaque::borrowed(b"piano"), uid: 7, gid: 8, gids: Vec::new() };
        let call = call_body {
            rpcvers: 2,
            prog: nfs3_types::nfs3::PROGRAM,
            vers: nfs3_types::nfs3::VERSION,
            proc: procedure as u32,
            cred: opaque_auth::auth_unix(&who),
            verf: opaque_auth::default(),
        };
        let mut message = Vec::new();
        rpc_msg { xid, body: msg_body::CALL(call) }.pack(&mut message).unwrap();
        arguments.pack(&mut message).unwrap();
        let mut record = Vec::new();
        fragment_header::new(message.len() as u32, true).pack(&mut record).unwrap();
        record.extend(message);
        record
    }

    fn found(xid: u32, call: Call<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        call.put(&mut out, xid, &Credentials::new(b"piano", 7, 8));
        out
    }

    proptest! {
        #[test]
        fn calls_put_by_hand_are_those_of_the_crate(
            xid: u32,
            handle in prop::collection::vec(any::<u8>(), 0..=64),
            name in prop::collection::vec(any::<u8>(), 0..70),
            data in prop::collection::vec(any::<u8>(), 0..70),
            offset: u64,
            count: u32,
            durable: bool,
        ) {
            let handle = Handle::new(&handle).unwrap();
            let own = || handle.owned();
            let object = &handle;
            prop_assert_eq!(
                found(xid, Call::Getattr { object }),
                expected(xid, NFS_PROGRAM::NFSPROC3_GETATTR, &GETATTR3args { object: own() })
            );
            prop_assert_eq!(
                found(xid, Call::Access { object }),
                expected(xid, NFS_PROGRAM::NFSPROC3_ACCESS, &ACCESS3args { object: own(), access: ALL_RIGHTS })
            );
            let what = diropargs3 { dir: own(), name: name.as_slice().into() };
            prop_assert_eq!(
                found(xid, Call::Lookup { directory: object, name: &name }),
                expected(xid, NFS_PROGRAM::NFSPROC3_LOOKUP, &LOOKUP3args { what })
            );
            prop_assert_eq!(
                found(xid, Call::Read { file: object, offset, bytes: count }),
                expected(xid, NFS_PROGRAM::NFSPROC3_READ, &READ3args { file: own(), offset, count })
            );
            let stable = if durable { stable_how::FILE_SYNC } else { stable_how::UNSTABLE };
            let count = data.len() as u32;
            let write = WRITE3args { file: own(), offset, count, stable, data: Opaque::borrowed(&data) };
            prop_assert_eq!(
                found(xid, Call::Write { file: object, offset, data: &data, durable }),
                expected(xid, NFS_PROGRAM::NFSPROC3_WRITE, &write)
            );
        }
    }

    #[test]
    fn rare_calls_have_their_procedures_and_arguments() {
        let handle = Handle::new(b"h").unwrap();
        let call = Call::Commit { file: &handle };
        let commit = COMMIT3args { file: handle.owned(), offset: 0, count: 0 };
        assert_eq!(found(1, call), expected(1, NFS_PROGRAM::NFSPROC3_COMMIT, &commit));
        let null: Vec<u32> = Vec::new();
        let mut record = expected(2, NFS_PROGRAM::NFSPROC3_NULL, &null);
        record.truncate(record.len() - 4); // the length of the empty list
        let head = crate::record::head(record.len() - 4);
        record[..4].copy_from_slice(&head);
        assert_eq!(found(2, Call::Null), record);
    }
}
