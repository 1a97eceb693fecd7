//! What any sound script becomes can be read.

use etude_replay::{Roll, compile};
use etude_script::parse;

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
