//! Kinds of operations and what they act on.

/// What an operation does. The names are those of NFS version 3 (RFC 1813, section 3.3); each has its system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Kind {
    Getattr,
    Setattr,
    Lookup,
    Access,
    Readlink,
    Read,
    Write,
    Create,
    Remove,
    Readdir,
    Readdirplus,
    Fsstat,
    Commit,
    Mkdir,
    Rmdir,
    Symlink,
    Rename,
}

impl Kind {
    /// All of them, in the order of their index.
    pub const ALL: [Kind; 17] = [
        Kind::Getattr,
        Kind::Setattr,
        Kind::Lookup,
        Kind::Access,
        Kind::Readlink,
        Kind::Read,
        Kind::Write,
        Kind::Create,
        Kind::Remove,
        Kind::Readdir,
        Kind::Readdirplus,
        Kind::Fsstat,
        Kind::Commit,
        Kind::Mkdir,
        Kind::Rmdir,
        Kind::Symlink,
        Kind::Rename,
    ];

    /// In small letters: `getattr`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Getattr => "getattr",
            Kind::Setattr => "setattr",
            Kind::Lookup => "lookup",
            Kind::Access => "access",
            Kind::Readlink => "readlink",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Create => "create",
            Kind::Remove => "remove",
            Kind::Readdir => "readdir",
            Kind::Readdirplus => "readdirplus",
            Kind::Fsstat => "fsstat",
            Kind::Commit => "commit",
            Kind::Mkdir => "mkdir",
            Kind::Rmdir => "rmdir",
            Kind::Symlink => "symlink",
            Kind::Rename => "rename",
        }
    }

    /// Its place in [`Kind::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What an operation acts on: the number of a file, a directory or a link of the [`FileSet`](crate::FileSet). Directory 0
/// is the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Object {
    File(usize),
    Directory(usize),
    Link(usize),
}

/// One request: what one NFS call, or one system call, asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Operation {
    pub kind: Kind,
    pub object: Object,
    /// Read and write: where in the file, in bytes. Rename: the number of the file whose name the object gets; nothing
    /// has that name then. Of all other kinds 0.
    pub offset: u64,
    /// Read and write: how many bytes. Readdir and readdirplus: for how many bytes of entries there is room. Of all
    /// other kinds 0; a commit is of the whole file.
    pub bytes: u32,
    /// A write that must be durable when it is answered.
    pub stable: bool,
    /// It changes whether its object is there, or empties it (a setattr that is ordered cuts the file to 0 bytes; others change mode or times alone):
    /// operations on that object before and after must not overtake it.
    pub ordered: bool,
}
