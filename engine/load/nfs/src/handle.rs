//! How a server names a file: up to 64 bytes that mean something to it alone.

use nfs3_types::nfs3::{NFS3_FHSIZE, nfs_fh3};
use nfs3_types::xdr_codec::Opaque;

/// Kept in place, so that tables of millions need one piece of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    length: u8,
    bytes: [u8; NFS3_FHSIZE],
}

impl Handle {
    /// None: there are more bytes than a handle may have.
    pub fn new(bytes: &[u8]) -> Option<Handle> {
        let mut made = Handle { length: u8::try_from(bytes.len()).ok()?, bytes: [0; NFS3_FHSIZE] };
        made.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(made)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// As `nfs3_types` has it.
    pub(crate) fn owned(&self) -> nfs_fh3 {
        nfs_fh3 { data: Opaque::owned(self.bytes().to_vec()) }
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
