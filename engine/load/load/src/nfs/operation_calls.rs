//! An operation of a workload as a call, and what its answer means.

use etude_nfs::{Call, Failure, Handle, answers};
use etude_workload::{Kind, Object, Operation};

use crate::file_set::gate::renamed;
use crate::file_set::incompressible_data::Pieces;
use crate::nfs::objects::Objects;
use crate::nfs::pool::{Place, Pool};

/// For readdir and readdirplus, where the workload does not say: a page of each.
const PAGE_BYTES: u32 = 4096;
/// Answers that tell nothing new of where a file is have no handle in them.
pub(crate) type Found = Option<Handle>;

/// The longest read and write that the server takes, bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub read: u32,
    pub write: u32,
}

/// How a call was made.
pub(crate) enum Asked {
    At(Place),
    /// The handle of this must be found first.
    Needs(Object),
    /// There is no connection.
    Away,
}

/// Makes the call of an operation.
pub(crate) fn ask(
    pool: &mut Pool,
    objects: &Objects,
    data: &mut Pieces,
    limits: Limits,
    tag: u64,
    operation: &Operation,
) -> Asked {
    let Operation { kind, object, offset, bytes, stable, .. } = *operation;
    match kind {
        Kind::Lookup
        | Kind::Create
        | Kind::Remove
        | Kind::Mkdir
        | Kind::Rmdir
        | Kind::Symlink
        | Kind::Rename => return by_name(pool, objects, tag, operation),
        _ => {}
    }
    let Some(handle) = objects.handle(object) else { return Asked::Needs(object) };
    let page = if bytes == 0 { PAGE_BYTES } else { bytes };
    let (directory, cookie, verifier) = (&handle, 0, [0; 8]);
    let call = match kind {
        // Of a file that has grown as far as it may: it begins anew.
        Kind::Setattr => Call::Setattr { object: &handle, size: operation.ordered.then_some(0) },
        Kind::Access => Call::Access { object: &handle },
        Kind::Readlink => Call::Readlink { link: &handle },
        Kind::Read => Call::Read { file: &handle, offset, bytes: bytes.min(limits.read) },
        Kind::Write => {
            let data = data.next(bytes.min(limits.write) as usize);
            Call::Write { file: &handle, offset, data, durable: stable }
        }
        Kind::Readdir => Call::Readdir { directory, cookie, verifier, bytes: page },
        Kind::Readdirplus => Call::Readdirplus { directory, cookie, verifier, bytes: page },
        Kind::Fsstat => Call::Fsstat { root: &handle },
        Kind::Commit => Call::Commit { file: &handle },
        _ => Call::Getattr { object: &handle },
    };
    pool.call(tag, &call).map_or(Asked::Away, Asked::At)
}

fn by_name(pool: &mut Pool, objects: &Objects, tag: u64, operation: &Operation) -> Asked {
    let (parent, name) = objects.population.place(operation.object);
    let Some(directory) = objects.handle(Object::Directory(parent)) else {
        return Asked::Needs(Object::Directory(parent));
    };
    let (directory, name) = (&directory, name.as_bytes());
    let place = match (operation.kind, operation.object) {
        (Kind::Create, _) => pool.call(tag, &Call::Create { directory, name }),
        (Kind::Remove, _) => pool.call(tag, &Call::Remove { directory, name }),
        (Kind::Mkdir, _) => pool.call(tag, &Call::Mkdir { directory, name }),
        (Kind::Rmdir, _) => pool.call(tag, &Call::Rmdir { directory, name }),
        (Kind::Symlink, Object::Link(link)) => {
            let to = objects.population.set.link(link).to;
            pool.call(tag, &Call::Symlink { directory, name, to: to.as_bytes() })
        }
        (Kind::Rename, _) => {
            let (parent, new) = objects.population.place(renamed(operation));
            let Some(to) = objects.handle(Object::Directory(parent)) else {
                return Asked::Needs(Object::Directory(parent));
            };
            pool.call(tag, &Call::Rename { directory, name, to: &to, new: new.as_bytes() })
        }
        _ => pool.call(tag, &Call::Lookup { directory, name }),
    };
    place.map_or(Asked::Away, Asked::At)
}

/// Finds the handle of an object by its name; None: there is no connection, or its directory is unknown, too.
pub(crate) fn find(pool: &mut Pool, objects: &Objects, tag: u64, object: Object) -> Option<Place> {
    let (parent, name) = objects.population.place(object);
    let directory = objects.handle(Object::Directory(parent))?;
    pool.call(tag, &Call::Lookup { directory: &directory, name: name.as_bytes() })
}

/// What an answer says: the handle, of those that bring one.
///
/// # Errors
/// Why it is no good one; a read that ends before its file does, or a write of less than was asked, is SHORT_READ or SHORT_WRITE.
pub(crate) fn read(operation: &Operation, limits: Limits, body: &[u8]) -> Result<Found, Failure> {
    match operation.kind {
        Kind::Getattr => answers::attributes(body).map(|_| None),
        Kind::Setattr | Kind::Remove | Kind::Rmdir => answers::changed(body).map(|()| None),
        Kind::Lookup => answers::looked_up(body).map(|(handle, _)| Some(handle)),
        Kind::Access => answers::access(body).map(|_| None),
        Kind::Readlink => answers::target(body).map(|_| None),
        Kind::Read => {
            let (found, last) = answers::data(body)?;
            let wanted = operation.bytes.min(limits.read) as usize;
            match found.len() {
                bytes if bytes > wanted => Err(Failure::Malformed("it has more bytes than were asked for")),
                bytes if bytes < wanted && !last => Err(Failure::Status("SHORT_READ")),
                _ => Ok(None),
            }
        }
        Kind::Write => {
            let wanted = operation.bytes.min(limits.write);
            if answers::written(body)? < wanted { Err(Failure::Status("SHORT_WRITE")) } else { Ok(None) }
        }
        Kind::Create | Kind::Mkdir | Kind::Symlink => answers::created(body),
        Kind::Rename => answers::renamed(body).map(|()| None),
        Kind::Readdir => answers::entries(body, false, |_| ()).map(|_| None),
        Kind::Readdirplus => answers::entries(body, true, |_| ()).map(|_| None),
        Kind::Fsstat => answers::space(body).map(|_| None),
        Kind::Commit => answers::committed(body).map(|()| None),
    }
}
