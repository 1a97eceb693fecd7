//! Cached data: looking without disturbing it (docs/howto/residency.md), and evicting it (docs/howto/chill.md).
//!
//! Read `look.rs` for how a data set is looked at, `control_loop.rs` for how far chilling goes and when it ends.

mod chill;
mod command;
mod confinement;
mod control_loop;
mod evict;
mod held;
mod listing;
mod look;
mod machine;
mod open_if_cached;
mod readings;
mod resident;
mod walk;
mod watch;

pub use command::{chill_main, residency_main};

use etude_options::Failed;
