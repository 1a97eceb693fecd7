use std::sync::Arc;

use etude_replay::{Roll, Score, compile};
use etude_script::What;

use super::*;
use crate::options::Pace;

/// Goes away with its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("etude-places-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const READS: &str = "openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000001>\nread(3, 100) = 100 <0.000001>\n";
const WRITES: &str = "openat(AT_FDCWD, \"a\", O_RDWR) = 3 <0.000001>\npwrite64(3, 100, 0) = 100 <0.000001>\n";

fn piece(calls: &str, bytes: u64) -> Piece {
    let text = format!("etude script 1\nfile \"a\" {bytes}\n{calls}");
    let parsed = etude_script::parse("test", text.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let roll = Roll::read(compile(&parsed.script, Vec::new()).unwrap().0).unwrap();
    let score = Score::of(&roll, 1.0).unwrap();
    Piece {
        name: "some/thing".into(),
        roll: Arc::new(roll),
        score,
        run_s: 1.0,
        natural_rate: 1.0,
        multiple: 1.0,
        left_out: None,
    }
}

fn asked(directory: &Directory) -> RollAsked {
    let (directory, pace) = (directory.0.clone(), Pace::Multiple(1.0));
    RollAsked { roll: "some.roll".into(), directory, pace, only: Vec::new(), own: false }
}

fn make(directory: &Directory, piece: &Piece, many: u64) -> Result<Places, Failed> {
    Places::make(&asked(directory), piece, many, &sys::signalfd(&[]).unwrap())
}

#[test]
fn passes_that_change_files_have_each_a_place_of_their_own_which_goes_away() {
    let (directory, piece) = (Directory::new("own"), piece(WRITES, 1000));
    let mut places = make(&directory, &piece, 3).unwrap();
    let files: Vec<PathBuf> = (0..3).map(|pass| places.of(pass).join("a")).collect();
    assert!(files.iter().all(|file| fs::metadata(file).unwrap().len() == 1000));
    assert!(files[0] != files[1] && files[1] != files[2]);
    // What a run that was killed has left is put right.
    fs::remove_file(&files[1]).unwrap();
    make(&directory, &piece, 3).unwrap();
    assert_eq!(fs::metadata(&files[1]).unwrap().len(), 1000);
    places.clear().unwrap();
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
}

#[test]
fn a_place_that_is_only_read_is_used_again_by_the_same_roll_alone() {
    let directory = Directory::new("again");
    let places = make(&directory, &piece(READS, 1000), 1).unwrap();
    assert_eq!(places.of(0), places.of(7));
    fs::write(places.of(0).join("trace"), "of the run before").unwrap();
    assert_eq!(make(&directory, &piece(READS, 1000), 1).unwrap().prepared_s, 0.0);
    assert!(places.of(0).join("trace").exists());
    make(&directory, &piece(READS, 2000), 1).unwrap();
    assert!(!places.of(0).join("trace").exists());
}

#[test]
fn passes_share_what_they_only_read_unless_each_is_to_have_its_own() {
    let directory = Directory::new("shared");
    let calls = format!("{WRITES}openat(AT_FDCWD, \"b\", O_RDONLY) = 4 <0.000001>\n");
    let mut piece = piece(&calls, 1000);
    let b = Needed { path: b"b"[..].into(), what: What::File { bytes: 50_000, allocated: None, seen: true } };
    Arc::get_mut(&mut piece.roll).unwrap().needed.push(b);
    let inode = |places: &Places, pass, name| fs::metadata(places.of(pass).join(name)).unwrap().ino();
    let places = make(&directory, &piece, 3).unwrap();
    assert_eq!(
        (places.own, places.shared),
        (Files { many: 1, bytes: 1000 }, Files { many: 1, bytes: 50_000 })
    );
    assert_eq!(inode(&places, 0, "b"), inode(&places, 2, "b"));
    assert_ne!(inode(&places, 0, "a"), inode(&places, 2, "a"));
    let own = RollAsked { own: true, ..asked(&directory) };
    let places = Places::make(&own, &piece, 3, &sys::signalfd(&[]).unwrap()).unwrap();
    assert_eq!((places.own.bytes, places.shared.many), (51_000, 0));
    assert_ne!(inode(&places, 0, "b"), inode(&places, 2, "b"));
}

#[test]
fn nothing_that_others_have_made_is_touched() {
    let directory = Directory::new("others");
    let theirs = directory.0.join("etude-load-roll-some-thing");
    fs::create_dir_all(theirs.join("pass-1")).unwrap();
    let (line, code) = make(&directory, &piece(WRITES, 1000), 2).err().unwrap();
    assert!(code == 5 && line.contains("was not made by etude load"), "{line}");
    assert!(theirs.join("pass-1").exists());
}

#[test]
fn files_that_do_not_fit_are_not_begun_with() {
    let directory = Directory::new("room");
    let (line, code) = make(&directory, &piece(WRITES, 1 << 40), 1000).err().unwrap();
    assert!(code == 5 && line.contains("1000 passes") && line.contains("are free"), "{line}");
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
}
