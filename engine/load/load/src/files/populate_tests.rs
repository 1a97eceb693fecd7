use std::os::unix::fs::symlink;

use etude_workload::Workload;

use super::*;

/// Below the directory of temporary files; removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("etude-populate-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn set() -> FileSet {
    FileSet::new(&Workload::preset("postmark").unwrap(), 1.0, 3).unwrap()
}

/// Whether exactly what should be there is.
fn right(root: &Path, set: &FileSet) -> bool {
    let before = count(root);
    missing(root, &Population::new(set.clone())).unwrap().is_empty() && count(root) == before
}

fn count(path: &Path) -> usize {
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap()).fold(0, |sum, entry| {
        sum + 1 + if entry.file_type().unwrap().is_dir() { count(&entry.path()) } else { 0 }
    })
}

#[test]
fn a_file_set_is_made_and_put_right_whatever_became_of_it() {
    let (scratch, set, data) = (Scratch::new("right"), set(), Data::new(1));
    let root = root_of(&scratch.0, "postmark", 3);
    populate(&root, &set, &data).unwrap();
    assert!(right(&root, &set));
    let present: Vec<usize> = (0..set.files()).filter(|index| set.file(*index).present).collect();
    let path = |nth: usize| root.join(set.path_of_file(present[nth]));
    let bytes = fs::read(path(2)).unwrap();
    // Kept, removed, too short, a directory in its place, a link to outside in its place, and one too much.
    let outside = scratch.0.join("outside");
    fs::write(&outside, "untouched").unwrap();
    let inode = path(0).metadata().unwrap().ino();
    fs::remove_file(path(1)).unwrap();
    fs::write(path(2), "short").unwrap();
    fs::remove_file(path(3)).unwrap();
    fs::create_dir(path(3)).unwrap();
    fs::write(path(3).join("below"), "").unwrap();
    fs::remove_file(path(4)).unwrap();
    symlink(&outside, path(4)).unwrap();
    fs::write(root.join("surplus"), "").unwrap();
    assert!(!right(&root, &set));
    populate(&root, &set, &data).unwrap();
    assert!(right(&root, &set));
    assert_eq!(path(0).metadata().unwrap().ino(), inode, "what was right is not made anew");
    assert_eq!(fs::read(path(2)).unwrap(), bytes);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched");
}

#[test]
fn what_cannot_be_made_is_one_line_and_nothing_is_written() {
    let (scratch, set, data) = (Scratch::new("refused"), set(), Data::new(1));
    let nowhere = root_of(&scratch.0.join("nowhere"), "postmark", 3);
    let (line, code) = populate(&nowhere, &set, &data).unwrap_err();
    assert!(code == 5 && line.contains("there is no such directory"), "{line}");
    let root = root_of(&scratch.0, "postmark", 3);
    symlink(&scratch.0, &root).unwrap();
    let (line, code) = populate(&root, &set, &data).unwrap_err();
    assert!(code == 5 && line.contains("is no directory"), "{line}");
    let (line, code) = populate(&root_of(Path::new("/proc/self"), "postmark", 3), &set, &data).unwrap_err();
    assert!(code == 5 && line.contains("0.0 MiB are free") && !line.contains('\n'), "{line}");
}

#[test]
fn the_room_in_a_directory_is_known() {
    assert_eq!(room_in(Path::new("/proc/self")).unwrap().bytes, Some(0));
    assert!(room_in(Path::new("/nowhere/at/all")).is_err());
}
