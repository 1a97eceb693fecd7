//! The files of a workload, for directories and for NFS: their order, the bytes in them, and who has to wait for whom.

pub(crate) mod gate;
pub(crate) mod incompressible_data;
pub(crate) mod population;
