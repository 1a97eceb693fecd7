//! The file set of a workload on a server: in a directory of its own, made where it is missing and put right where it differs.

use std::collections::HashMap;
use std::time::Duration;

use etude_nfs::{Call, Client, Credentials, Export, Failure, Form, Handle, Info, Mounted, Space, answers};
use etude_workload::{FileSet, Object};

use crate::file_set::incompressible_data::{MOST, Pieces};
use crate::file_set::population::{Need, Room};
use crate::nfs::create_missing::Make;
use crate::nfs::existing_files::{Look, Surplus};
use crate::nfs::objects::Objects;
use crate::nfs::operation_calls::Limits;
use crate::nfs::pool::Pool;
use crate::nfs::population_jobs::work;

/// What a file takes is a multiple of it, about, and any directory or link as much.
const BLOCK: u64 = 4096;
/// Directories in each other that are removed.
const DEEPEST: usize = 64;
const PAGE_BYTES: u32 = 65536;

/// Where the load goes.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub export: Export,
    pub connections: usize,
    /// So long one answer is waited for, before the load.
    pub patience: Duration,
}

/// A server with the file set on it.
pub(crate) struct Prepared {
    pub objects: Objects,
    pub pool: Pool,
    pub data: Pieces,
    pub limits: Limits,
    /// It is unmounted with this.
    pub mounted: Mounted,
}

/// Mounts, looks what is there, and makes and puts right the rest; `progress` hears how many of how many are as they should be.
///
/// # Errors
/// One line: the server is away, refuses, or has no room for it.
pub(crate) fn prepare(
    settings: &Settings,
    name: &str,
    set: FileSet,
    seed: u64,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Prepared, String> {
    let Settings { export, connections, patience } = settings;
    let who = Credentials::own();
    let mut mounted = Mounted::new(export, &who, *patience)?;
    let directory = directory_name(name, seed);
    let says = |line: String| format!("{}/{directory}: {line}", export.text);
    let failed = |failure: Failure| says(failure.to_string());
    let above = mounted.root;
    let root = own_directory(&mut mounted.client, above, directory.as_bytes()).map_err(failed)?;
    let info = mounted.client.call(&Call::Fsinfo { root: &root }, answers::info).map_err(failed)?;
    let mut pool = Pool::new(mounted.address, who, *connections)
        .map_err(|error| format!("the machine does not allow it: {error}"))?;
    let mut objects = Objects::new(set);
    objects.know(Object::Directory(0), Some(root));
    let mut look = Look::new(&mut objects);
    let first = look.first();
    work(&mut pool, &mut look, first, *patience).map_err(says)?;
    let Look { sizes, surplus, .. } = look;
    for surplus in surplus {
        remove(&mut mounted.client, &surplus, DEEPEST).map_err(|failure| {
            says(format!("removing {:?}: {failure}", String::from_utf8_lossy(&surplus.name)))
        })?;
    }
    let space = mounted.client.call(&Call::Fsstat { root: &root }, answers::space).map_err(failed)?;
    enough(&objects, &sizes, &space).map_err(says)?;
    let limits = most(&info);
    let mut make = Make::new(&mut objects, Pieces::new(seed), limits.write as usize, progress);
    let first = make.first(&sizes);
    work(&mut pool, &mut make, first, *patience).map_err(says)?;
    let data = Pieces::new(seed);
    Ok(Prepared { objects, pool, data, limits, mounted })
}

/// Nothing of the user's has such a name.
pub(crate) fn directory_name(workload: &str, seed: u64) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = workload.chars().map(plain).take(64).collect();
    format!("etude-load-{name}-{seed}")
}

/// As the server allows, and we have data for.
fn most(info: &Info) -> Limits {
    let most = |found: u32| if found == 0 { 8192 } else { found.min(MOST as u32) };
    Limits { read: most(info.most_read_bytes), write: most(info.most_write_bytes) }
}

fn own_directory(client: &mut Client, export: Handle, name: &[u8]) -> Result<Handle, Failure> {
    let look = Call::Lookup { directory: &export, name };
    let found = match client.call(&look, answers::looked_up) {
        Err(Failure::Status("NFS3ERR_NOENT")) => {
            if let Some(made) = client.call(&Call::Mkdir { directory: &export, name }, answers::created)? {
                return Ok(made);
            }
            client.call(&look, answers::looked_up)?
        }
        found => found?,
    };
    match found {
        (_, Some(attributes)) if attributes.form != Form::Directory => Err(Failure::Status("NFS3ERR_NOTDIR")),
        (handle, _) => Ok(handle),
    }
}

/// Checks that the missing objects have room, with that of the run's own files.
fn enough(objects: &Objects, sizes: &HashMap<usize, u64>, space: &Space) -> Result<(), String> {
    let room = Room {
        bytes: (space.all_bytes > 0).then_some(space.free_bytes),
        nodes: (space.all_files > 0).then_some(space.free_files),
        block: BLOCK,
    };
    let (population, mut need) = (&objects.population, Need::default());
    for object in population.numbers.all() {
        let bytes = match object {
            Object::File(file) => sizes.get(&file).copied().unwrap_or(0),
            _ => 0,
        };
        let existing = objects.handle(object).map(|_| bytes.next_multiple_of(BLOCK));
        need.add(population, object, existing, BLOCK);
    }
    need.check(&room)
        .map_err(|line| format!("{line}; choose a smaller one (--set, a lower rate) or make room"))
}

/// Also all that is in it. Only what was found in a directory of the set comes here.
fn remove(client: &mut Client, surplus: &Surplus, depth: usize) -> Result<(), Failure> {
    let Surplus { directory, name, form } = surplus;
    let is_directory = match form {
        Form::Directory => true,
        // Perhaps the server did not say.
        Form::Other => {
            let found = client.call(&Call::Lookup { directory, name }, answers::looked_up)?;
            found.1.is_some_and(|attributes| attributes.form == Form::Directory)
        }
        _ => false,
    };
    if !is_directory {
        return client.call(&Call::Remove { directory, name }, answers::changed);
    }
    if depth == 0 {
        return Err(Failure::Status("NFS3ERR_NOTEMPTY"));
    }
    let (handle, _) = client.call(&Call::Lookup { directory, name }, answers::looked_up)?;
    // From the beginning each time: cookies need not outlive what is removed.
    loop {
        let mut inside = Vec::new();
        let page = Call::Readdirplus { directory: &handle, cookie: 0, verifier: [0; 8], bytes: PAGE_BYTES };
        client.call(&page, |body| {
            answers::entries(body, true, |entry| {
                if entry.name != b"." && entry.name != b".." {
                    let form = entry.attributes.map_or(Form::Other, |attributes| attributes.form);
                    inside.push(Surplus { directory: handle, name: entry.name.to_vec(), form });
                }
            })
        })?;
        if inside.is_empty() {
            return client.call(&Call::Rmdir { directory, name }, answers::changed);
        }
        inside.iter().try_for_each(|surplus| remove(client, surplus, depth - 1))?;
    }
}

#[cfg(test)]
mod tests {
    use etude_workload::Workload;

    use super::*;

    #[test]
    fn the_directory_is_named_for_the_workload_and_its_seed_alone() {
        assert_eq!(directory_name("web", 7), "etude-load-web-7");
        assert_eq!(directory_name("../a b/ü", 0), "etude-load-___a_b__-0");
        assert!(directory_name(&"x".repeat(1000), u64::MAX).len() < 255);
    }

    #[test]
    fn a_set_larger_than_the_space_is_refused_in_one_line_and_one_that_is_there_is_not() {
        let mut workload = Workload::preset("web").unwrap();
        workload.set("files=50").unwrap_or(());
        let mut objects = Objects::new(FileSet::new(&workload, 10.0, 1).unwrap());
        let none = Space { all_bytes: 1, free_bytes: 0, all_files: 0, free_files: 0 };
        let files = Space { all_bytes: u64::MAX, free_bytes: u64::MAX, all_files: 9, free_files: 3 };
        let line = enough(&objects, &HashMap::new(), &none).unwrap_err();
        assert!(line.contains("and 0.0 MiB are free") && !line.contains('\n'), "{line}");
        let line = enough(&objects, &HashMap::new(), &files).unwrap_err();
        assert!(line.contains("and 3 are free"), "{line}");
        let handle = Handle::new(b"there");
        for object in objects.population.numbers.all() {
            objects.know(object, handle);
        }
        let sizes = (0..objects.population.set.files())
            .map(|file| (file, objects.population.set.file(file).bytes))
            .collect();
        assert_eq!(enough(&objects, &sizes, &none), Ok(()));
        assert_eq!(enough(&objects, &sizes, &files), Ok(()));
    }
}
