//! What servers answer (RFC 1813, section 3.3), each body read to its last byte: what is short, long or impossible is none.

use nfs3_types::nfs3::{NFS3_FHSIZE, ftype3};

use crate::failure::{Failure, nfs_name};
use crate::handle::Handle;
use crate::record::MOST_BYTES;
use crate::xdr::Words;

/// Of a name in an answer. Servers have 255; more than that is theirs to know.
const MOST_NAME_BYTES: usize = 4096;
const MOST_PATH_BYTES: usize = 65536;
const ATTRIBUTES_BYTES: usize = 84;
const CHANGED_BYTES: usize = 24;
const VERIFIER_BYTES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    File,
    Directory,
    Link,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    pub form: Form,
    pub bytes: u64,
}

/// One name of a directory; READDIR gives no more than the name.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub name: &'a [u8],
    pub cookie: u64,
    pub attributes: Option<Attributes>,
    pub handle: Option<Handle>,
}

/// What stands around the names of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries {
    pub verifier: [u8; VERIFIER_BYTES],
    /// Where the next call goes on.
    pub cookie: u64,
    pub count: usize,
    /// The directory has no more.
    pub last: bool,
}

/// FSSTAT: bytes and files, and those that are free for this user. A server that does not count them says 0 of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub all_bytes: u64,
    pub free_bytes: u64,
    pub all_files: u64,
    pub free_files: u64,
}

/// FSINFO: the longest read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    pub most_read_bytes: u32,
    pub most_write_bytes: u32,
}

type Read<T> = Result<T, Failure>;

/// The words behind a status of success; another by its name.
fn good(body: &[u8]) -> Read<Words<'_>> {
    let mut words = Words::new(body);
    match words.u32()? {
        0 => Ok(words),
        status => {
            Err(nfs_name(status).map_or(Failure::Malformed("its status is none of NFS"), Failure::Status))
        }
    }
}

fn these(words: &mut Words<'_>) -> Read<Attributes> {
    let form = match words.u32()? {
        form if form == ftype3::NF3REG as u32 => Form::File,
        form if form == ftype3::NF3DIR as u32 => Form::Directory,
        form if form == ftype3::NF3LNK as u32 => Form::Link,
        3 | 4 | 6 | 7 => Form::Other,
        _ => return Err(Failure::Malformed("a type of file is none")),
    };
    words.skip(16)?; // mode, links, user, group
    let bytes = words.u64()?;
    words.skip(ATTRIBUTES_BYTES - 28)?;
    Ok(Attributes { form, bytes })
}

fn perhaps_these(words: &mut Words<'_>) -> Read<Option<Attributes>> {
    words.flag()?.then(|| these(words)).transpose()
}

fn handle(words: &mut Words<'_>) -> Read<Handle> {
    Handle::new(words.opaque(NFS3_FHSIZE)?).ok_or(Failure::Malformed("a handle is too long"))
}

fn perhaps_handle(words: &mut Words<'_>) -> Read<Option<Handle>> {
    words.flag()?.then(|| handle(words)).transpose()
}

/// Of what was changed: before, in part, and after.
fn change(words: &mut Words<'_>) -> Read<()> {
    if words.flag()? {
        words.skip(CHANGED_BYTES)?;
    }
    perhaps_these(words).map(drop)
}

/// Of GETATTR.
///
/// # Errors
/// The server's status, or no such answer; so of all here.
pub fn attributes(body: &[u8]) -> Read<Attributes> {
    let mut words = good(body)?;
    let found = these(&mut words)?;
    words.end()?;
    Ok(found)
}

/// Of SETATTR, REMOVE and RMDIR.
///
/// # Errors
/// As [`attributes`].
pub fn changed(body: &[u8]) -> Read<()> {
    let mut words = good(body)?;
    change(&mut words)?;
    words.end()
}

/// Of RENAME.
///
/// # Errors
/// As [`attributes`].
pub fn renamed(body: &[u8]) -> Read<()> {
    let mut words = good(body)?;
    change(&mut words)?;
    change(&mut words)?;
    words.end()
}

/// Of COMMIT.
///
/// # Errors
/// As [`attributes`].
pub fn committed(body: &[u8]) -> Read<()> {
    let mut words = good(body)?;
    change(&mut words)?;
    words.skip(VERIFIER_BYTES)?;
    words.end()
}

/// Of LOOKUP.
///
/// # Errors
/// As [`attributes`].
pub fn looked_up(body: &[u8]) -> Read<(Handle, Option<Attributes>)> {
    let mut words = good(body)?;
    let found = (handle(&mut words)?, perhaps_these(&mut words)?);
    perhaps_these(&mut words)?;
    words.end()?;
    Ok(found)
}

/// Of ACCESS: the rights that there are.
///
/// # Errors
/// As [`attributes`].
pub fn access(body: &[u8]) -> Read<u32> {
    let mut words = good(body)?;
    perhaps_these(&mut words)?;
    let rights = words.u32()?;
    words.end()?;
    Ok(rights)
}

/// Of READLINK: where it leads.
///
/// # Errors
/// As [`attributes`].
pub fn target(body: &[u8]) -> Read<&[u8]> {
    let mut words = good(body)?;
    perhaps_these(&mut words)?;
    let found = words.opaque(MOST_PATH_BYTES)?;
    words.end()?;
    Ok(found)
}

/// Of READ: the bytes, and whether the file ends with them.
///
/// # Errors
/// As [`attributes`].
pub fn data(body: &[u8]) -> Read<(&[u8], bool)> {
    let mut words = good(body)?;
    perhaps_these(&mut words)?;
    let (count, last) = (words.u32()?, words.flag()?);
    let found = words.opaque(MOST_BYTES)?;
    words.end()?;
    if found.len() != count as usize {
        return Err(Failure::Malformed("it has other than as many bytes as it says"));
    }
    Ok((found, last))
}

/// Of WRITE: how many bytes were.
///
/// # Errors
/// As [`attributes`].
pub fn written(body: &[u8]) -> Read<u32> {
    let mut words = good(body)?;
    change(&mut words)?;
    let (count, how) = (words.u32()?, words.u32()?);
    words.skip(VERIFIER_BYTES)?;
    words.end()?;
    if how > 2 {
        return Err(Failure::Malformed("how it was written is no way of NFS"));
    }
    Ok(count)
}

/// Of CREATE, MKDIR and SYMLINK. The server may leave the handle out.
///
/// # Errors
/// As [`attributes`].
pub fn created(body: &[u8]) -> Read<Option<Handle>> {
    let mut words = good(body)?;
    let found = perhaps_handle(&mut words)?;
    perhaps_these(&mut words)?;
    change(&mut words)?;
    words.end()?;
    Ok(found)
}

/// Of READDIR, or READDIRPLUS (`plus`): tells of each name as it is read.
///
/// # Errors
/// As [`attributes`].
pub fn entries(body: &[u8], plus: bool, mut tell: impl FnMut(Entry<'_>)) -> Read<Entries> {
    let mut words = good(body)?;
    perhaps_these(&mut words)?;
    let verifier = words.array()?;
    let (mut cookie, mut count) = (0, 0);
    while words.flag()? {
        words.skip(8)?; // the file's number
        let name = words.opaque(MOST_NAME_BYTES)?;
        cookie = words.u64()?;
        count += 1;
        let attributes = if plus { perhaps_these(&mut words)? } else { None };
        let handle = if plus { perhaps_handle(&mut words)? } else { None };
        tell(Entry { name, cookie, attributes, handle });
    }
    let last = words.flag()?;
    words.end()?;
    Ok(Entries { verifier, cookie, count, last })
}

/// Of FSSTAT.
///
/// # Errors
/// As [`attributes`].
pub fn space(body: &[u8]) -> Read<Space> {
    let mut words = good(body)?;
    perhaps_these(&mut words)?;
    let all_bytes = words.u64()?;
    words.skip(8)?;
    let (free_bytes, all_files) = (words.u64()?, words.u64()?);
    words.skip(8)?;
    let free_files = words.u64()?;
    words.skip(4)?;
    words.end()?;
    Ok(Space { all_bytes, free_bytes, all_files, free_files })
}

/// Of FSINFO.
///
/// # Errors
/// As [`attributes`].
pub fn info(body: &[u8]) -> Read<Info> {
    let mut words = good(body)?;
    perhaps_these(&mut words)?;
    let most_read_bytes = words.u32()?;
    words.skip(8)?;
    let most_write_bytes = words.u32()?;
    words.skip(32)?;
    words.end()?;
    Ok(Info { most_read_bytes, most_write_bytes })
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
