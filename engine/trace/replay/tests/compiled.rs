//! What any sound script becomes can be read.

use etude_replay::{Roll, compile};
use etude_script::parse;
use etude_trace::parts::{HEAD, Kind, head, put};

fn compiled(steps: &str) -> Result<Roll, String> {
    let script = parse("s", format!("etude script 1\n{steps}").as_bytes()).unwrap().script;
    let (bytes, _) = compile(&script, Vec::new()).map_err(|error| error.to_string())?;
    Ok(Roll::read(bytes).unwrap())
}

#[test]
fn threads_may_have_any_numbers() {
    let roll = compiled("0: fork(70000)\n70000: start(9)\n9: sync() = 0\n0: wait(70000)\n").unwrap();
    let processes: Vec<u32> = roll.head.threads.iter().map(|of| of.process).collect();
    assert_eq!(processes, [0, 2, 2]);
}

#[test]
fn a_name_that_is_too_long_for_the_kernel_is_kept() {
    let rmdir = |length| compiled(&format!("rmdir(\"{}\") = -1 ENAMETOOLONG\n", "x".repeat(length)));
    assert_eq!(rmdir(5000).unwrap().names[0].as_bytes().len(), 5000);
    assert_eq!(rmdir(70_000).unwrap_err(), "has a name of more than 65536 bytes");
}

#[test]
fn a_small_roll_is_not_large_in_memory() {
    let script = parse("s", b"etude script 1\nsync() = 0\n").unwrap().script;
    let (whole, _) = compile(&script, Vec::new()).unwrap();
    let refused = |parts: &[(Kind, &[u8])]| {
        let mut frames = whole[..whole.len() - HEAD - 2].to_vec();
        for (kind, part) in parts {
            let payload = zstd::bulk::compress(part, 1).unwrap();
            frames.extend([&head(*kind, &payload)[..], &payload].concat());
        }
        Roll::read(frames).unwrap_err()
    };
    let numbers = |numbers: &[u64]| {
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| put(&mut bytes, *number));
        bytes
    };
    let many = [numbers(&[1 << 23]), vec![0; 1 << 24]].concat();
    assert_eq!(refused(&[(*b"name", &many)]), "has names that are nonsense");
    // A path of 64 KiB that is needed over and over.
    let one = 1 << 16;
    let text = [&vec![b'x'; one as usize][..], &[0]].concat();
    let long = [numbers(&[1, 0]), text.clone()].concat();
    let rows = 4096;
    let needed = [numbers(&[rows]), vec![2; rows as usize], vec![0; 3 * rows as usize]].concat();
    let both = refused(&[(*b"name", &long), (*b"need", &needed)]);
    assert_eq!(both, "has needed files that are nonsense");
    let names = 600;
    let large = [numbers(&[names]), vec![0; names as usize], text.repeat(names as usize)].concat();
    assert!(refused(&[(*b"name", &large), (*b"name", &large)]).contains("more than a roll can hold"));
}
