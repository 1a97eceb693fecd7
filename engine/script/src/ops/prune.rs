//! What a script does not need.

use crate::model::Script;
use crate::world::{World, key};

/// Leaves out of what is needed all that no step meets. What lies beside in a directory that is listed stays: its
/// names are read.
pub fn prune(script: &mut Script) {
    let mut world = World::new(script);
    // Where a name stood at the beginning: steps may rename it.
    let start: Vec<_> = script.needed.iter().map(|needed| world.names.find(&key(&needed.path))).collect();
    let above: Vec<_> = script
        .needed
        .iter()
        .map(|needed| {
            let path = key(&needed.path);
            let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            world.names.find(&path[..end])
        })
        .collect();
    script.steps.iter().for_each(|step| drop(world.step(step)));
    let wanted: Vec<bool> = start
        .iter()
        .zip(&above)
        .map(|(node, above)| {
            let used = node.is_none_or(|node| world.names.node(node).used);
            used || above.is_some_and(|above| world.names.node(above).listed)
        })
        .collect();
    let mut wanted = wanted.into_iter();
    script.needed.retain(|_| wanted.next().unwrap_or(true));
}
