//! The program for bpftrace: what it prints of the threads that are watched, a line each.
//!
//! The lines of a thread are numbered in the kernel. So they can be put in order, whichever CPU's buffer they came by,
//! and what is lost is known, thread by thread.

use std::fmt::Write as _;

use etude_calls::{Call, Kind, RangeLock};

use crate::PROCESSOR;

/// The most bytes that bpftrace keeps of a text, its final zero byte among them: more do not fit on the BPF stack, which
/// has 512 bytes for such a text twice and all else.
pub const STRING: usize = 192;

/// Who is watched, with all that they start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// A process that waits, from when it executes its program.
    FromExec(i32),
    /// A process that runs, from now.
    FromNow(i32),
}

/// What the kernel has counted of a thread: members of its task, as `/proc/PID/task/TID/io` shows them.
const COUNTED: &str = "curtask->ioac.syscr, curtask->ioac.syscw, curtask->ioac.rchar, curtask->ioac.wchar";

/// The program.
///
/// ```text
/// B pid ns                                               bpftrace itself, when it begins
/// T tid line pid ns begun parent COUNTED                 a thread is seen for the first time
/// F tid line pid ns child                                it starts another
/// S tid line argument text                               a text of the call with this line, which follows
/// D tid line argument bytes                              two descriptors, or a range, eight bytes at a time
/// C tid line pid ns ended number result arguments        a call
/// X tid line pid ns tid-before COUNTED file              it has executed a program
/// E tid line pid ns COUNTED live flags code group-code   it ends
/// ```
pub fn script(whom: Whom) -> String {
    let (watched, executes) = match whom {
        Whom::FromExec(pid) => {
            ("@watched[tid]".to_owned(), format!("@watched[args->old_pid] || args->old_pid == {pid}"))
        }
        Whom::FromNow(pid) => {
            (format!("@watched[tid] || pid == {pid}"), format!("@watched[args->old_pid] || pid == {pid}"))
        }
    };
    let recorded = one_of(|_| true);
    let arguments = (0..6).map(|n| format!("args->args[{n}]")).collect::<Vec<_>>().join(", ");
    let kept = (1..7).map(|n| format!("@call[tid].{n}")).collect::<Vec<_>>().join(", ");
    let texts = texts();
    format!(
        r#"
BEGIN {{ printf("B %d %llu", pid, nsecs); }}
tracepoint:sched:sched_process_fork /{watched}/ {{
    @watched[args->child_pid] = 1;
    @born[args->child_pid] = (nsecs, pid);
    @lines[tid] += 1; @total = count();
    printf("F %d %llu %d %llu %d", tid, @lines[tid], pid, nsecs, args->child_pid);
}}
tracepoint:sched:sched_process_exec /{executes}/ {{
    if (args->old_pid != (int32)tid) {{ delete(@watched[args->old_pid]); delete(@lines[args->old_pid]); }}
    @watched[tid] = 1;
    @lines[tid] += 1; @total = count();
    printf("X %d %llu %d %llu %d %llu %llu %llu %llu %s", tid, @lines[tid], pid, nsecs, args->old_pid, {COUNTED},
        str(args->filename));
}}
tracepoint:raw_syscalls:sys_enter /{watched}/ {{
    if (!@lines[tid]) {{
        @lines[tid] = 1; @total = count();
        printf("T %d 1 %d %llu %llu %d %llu %llu %llu %llu", tid, pid, nsecs, @born[tid].0, @born[tid].1, {COUNTED});
        delete(@born[tid]);
    }}
    $id = args->id;
    if ({recorded}) {{ @call[tid] = (nsecs, {arguments}); }}
}}
tracepoint:raw_syscalls:sys_exit /@call[tid].0/ {{
    $id = args->id;
    @lines[tid] += 1; @total = count();
{texts}
    printf("C %d %llu %d %llu %llu %ld %ld %llx %llx %llx %llx %llx %llx", tid, @lines[tid], pid, @call[tid].0, nsecs,
        $id, args->ret, {kept});
    delete(@call[tid]);
}}
tracepoint:sched:sched_process_exit /{watched}/ {{
    @lines[tid] += 1; @total = count();
    printf("E %d %llu %d %llu %llu %llu %llu %llu %d %d %d %d", tid, @lines[tid], pid, nsecs, {COUNTED},
        curtask->signal->live.counter, curtask->signal->flags, curtask->group_leader->exit_code,
        curtask->signal->group_exit_code);
    delete(@watched[tid]); delete(@lines[tid]); delete(@call[tid]); delete(@born[tid]);
}}
END {{ clear(@watched); clear(@lines); clear(@call); clear(@born); }}
"#
    )
}

/// What prints the texts of a call, by the places of its arguments.
fn texts() -> String {
    let mut out = String::new();
    for argument in 0..4 {
        let at = argument + 1;
        let here = |kinds: &[Kind]| {
            one_of(|call| call.row().arguments.get(argument).is_some_and(|k| kinds.contains(k)))
        };
        let (names, pairs) = (here(&[Kind::Path, Kind::Name]), here(&[Kind::Pair]));
        if !names.is_empty() {
            let print =
                format!(r#"printf("S %d %llu {argument} %s", tid, @lines[tid], str(uptr(@call[tid].{at})))"#);
            writeln!(out, "    if ({names}) {{ {print}; }}").expect("a string grows");
        }
        if !pairs.is_empty() {
            let print = format!(
                r#"printf("D %d %llu {argument} %llx", tid, @lines[tid], *(uint64*)uptr(@call[tid].{at}))"#
            );
            writeln!(out, "    if (args->ret == 0 && ({pairs})) {{ {print}; }}").expect("a string grows");
        }
    }
    let fcntl = Call::named("fcntl").expect("it is in the table");
    let ranges = one_of(|call| call == fcntl);
    let either = |name: &str, numbers: &mut dyn Iterator<Item = i64>| {
        numbers.map(|number| format!("{name} == {number}")).collect::<Vec<_>>().join(" || ")
    };
    let locks = |command: &i64| RangeLock::of(fcntl, &[0, *command as u64, 0, 0, 0, 0]).is_some();
    let commands = either("@call[tid].2", &mut (0..64).filter(locks));
    let results = either("args->ret", &mut (-64..=0).filter(|result| RangeLock::is_read(*result)));
    let words = [0, 8, 16].map(|at| format!("*(uint64*)uptr(@call[tid].3 + {at})")).join(", ");
    let print = format!(r#"printf("D %d %llu 2 %llx %llx %llx", tid, @lines[tid], {words})"#);
    writeln!(out, "    if (({ranges}) && ({commands}) && ({results})) {{ {print}; }}")
        .expect("a string grows");
    out
}

/// A condition: the call is one of these. The number is in a variable, or the compiler makes of it what the kernel's
/// verifier refuses.
fn one_of(wanted: impl Fn(Call) -> bool) -> String {
    let numbers = Call::all().filter(|call| wanted(*call)).filter_map(|call| call.number(PROCESSOR));
    numbers.map(|number| format!("$id == {number}")).collect::<Vec<_>>().join(" || ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_call_is_looked_at_and_no_other() {
        let script = script(Whom::FromExec(7));
        let condition = script.split("if ($id").nth(1).unwrap().split(" { @call").next().unwrap();
        let asked: Vec<u64> = condition
            .split("== ")
            .skip(1)
            .map(|word| word.split([' ', ')']).next().unwrap().parse().unwrap())
            .collect();
        let known = (0..512).filter(|number| Call::from_number(PROCESSOR, *number).is_some());
        let mut sorted = asked.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, known.collect::<Vec<_>>());
    }

    #[test]
    fn a_process_that_waits_is_watched_from_its_exec_and_one_that_runs_from_now() {
        assert!(!script(Whom::FromExec(7)).contains("pid == 7/ {\n    @watched[args->child_pid]"));
        assert!(script(Whom::FromNow(7)).contains("sys_enter /@watched[tid] || pid == 7/"));
    }
}
