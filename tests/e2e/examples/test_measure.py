"""commonsettings and commonfunctions: settings, hooks, and measuring a command."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.results.res import fields, parse_blocks, row_of_block
from support.laboratory import EXAMPLES, LIBRARY, Lab
from support.profiles import examples

pytestmark = [pytest.mark.quick, pytest.mark.beside]

BASE = {"thread", "epoch", "command", "user", "sys", "elapsed", "status"}


def test_a_measured_command_is_a_block_with_its_exit_status(lab: Lab) -> None:
    done = lab.bash("ap_measure sh -c 'echo said; exit 7'", check=7, APTHREAD="3", APEPOCH="5")
    assert done.stdout == "said\n"
    (row,) = lab.measurements()
    assert set(row) >= BASE
    assert (row["thread"], row["epoch"], row["status"]) == ("3", "5", "7")
    assert shlex.split(row["command"]) == ["sh", "-c", "echo said; exit 7"]


def test_end_hooks_add_fields_to_the_block_and_final_hooks_add_blocks(lab: Lab) -> None:
    aplib = lab.hooks(
        "mine",
        "mine_start() { mine_before=12; }\n"
        'mine_end() { echo "mine_size = $mine_before B"; echo "mine_words = $#"; }\n'
        "mine_final() { echo '[others]'; echo 'cron 0.1'; }\n"
        "ap_register start mine_start; ap_register end mine_end; ap_register final mine_final\n",
    )
    lab.bash("ap_measure echo a; ap_measure true", APLIB=aplib)
    first, second = lab.measurements()
    assert (first["mine_size"], first["mine_words"], second["mine_words"]) == ("12 B", "2", "1")
    names = [block.name for block in parse_blocks(lab.log.read_text())]
    assert names == ["measurement", "others", "measurement", "others"]
    assert lab.blocks("others")[0].lines == ("cron 0.1",)


def test_measure_hooks_run_in_their_order(lab: Lab) -> None:
    points = ("premeasure", "start", "end", "final")
    text = "".join(f"h_{p}() {{ echo {p} >&2; }}; ap_register {p} h_{p}\n" for p in points)
    done = lab.bash("ap_measure sh -c 'echo command >&2'", APLIB=lab.hooks("order", text))
    assert done.stderr.split() == ["premeasure", "start", "command", "end", "final"]


def test_hooks_of_one_kind_coexist_and_a_failing_one_costs_its_own_values_only(lab: Lab) -> None:
    aplib = lab.hooks(
        "three",
        "one() { echo 'one = 1'; return 3; }\n"
        "two() { echo 'two = 2'; echo $((1.5 + unset_name)); }\n"
        "three() { echo 'three = 3'; }\n"
        "for f in one two three; do ap_register end $f; done\n",
    )
    done = lab.bash("ap_measure true; echo goes on", APLIB=aplib)
    assert done.stdout == "goes on\n"
    (row,) = lab.measurements()
    assert (row["one"], row["two"], row["three"]) == ("1", "2", "3")
    one, two = (line for line in done.stderr.splitlines() if " hook " in line)
    assert {"one", "end", "3"} <= set(one.split())
    assert {"two", "end", "1"} <= set(two.split())


@pytest.mark.parametrize(
    "line", ["no field", "elapsed = 0", "sys = 0", "[measurement]", "9 = 9", "name =", "name= 1", ""]
)
def test_what_is_no_field_of_its_own_is_left_out_and_said(lab: Lab, line: str) -> None:
    hook = f"odd() {{ echo '{line}'; echo 'fine = 1'; }}; ap_register end odd\n"
    done = lab.bash("ap_measure true", APLIB=lab.hooks("odd", hook))
    (row,) = lab.measurements()
    assert row["fine"] == "1"
    assert row["elapsed"] != "0"
    assert f"left out: '{line}'" in done.stderr


@pytest.mark.parametrize("text", ["no header", "[measurement]", "[fine]\nx\n[measurement]\nelapsed = 1"])
def test_what_is_no_block_of_its_own_is_left_out_and_said(lab: Lab, text: str) -> None:
    hook = f"odd() {{ printf '%s\\n' '{text}'; }}; ap_register final odd\n"
    done = lab.bash("ap_measure true", APLIB=lab.hooks("odd", hook))
    assert len(lab.measurements()) == 1
    assert lab.blocks("fine") == []
    assert "left out" in done.stderr


def test_nothing_is_added_to_the_block_before_if_the_timer_wrote_none(lab: Lab) -> None:
    lab.program("silent", "true")
    aplib = lab.hooks("mine", "mine() { echo 'mine = 1'; }; ap_register end mine\n")
    done = lab.bash("APLIB= ap_measure true; APTIMER=silent; ap_measure echo", APLIB=aplib)
    (row,) = lab.measurements()
    assert row["mine"] == "1"
    assert lab.log.read_text().count("mine = 1") == 1
    assert any("silent" in line and "'echo'" in line for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    ("barrier", "waits"),
    [(None, [True, False]), ("first", [True, False]), ("all", [True, True]), ("none", [0, 0])],
)
def test_with_several_workers_the_first_command_waits_for_the_others(
    lab: Lab, barrier: str | None, waits: list[bool]
) -> None:
    lab.program("timer", 'echo "$@"')
    choice = {} if barrier is None else {"APBARRIER": barrier}
    around = {"THREADS": "2", "APIPCKEY": "5", "APTIMER": "timer -x", **choice}
    done = lab.bash("ap_measure a b; ap_measure c", **around)
    expected = [
        f"-x{' --barrier' if wait else ''} -- {words}"
        for wait, words in zip(waits, ["a b", "c"], strict=True)
    ]
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("around", [{"THREADS": "1", "APIPCKEY": "5"}, {"THREADS": "2"}])
def test_a_worker_alone_and_a_script_by_hand_wait_for_nobody(lab: Lab, around: dict[str, str]) -> None:
    lab.program("timer", 'echo "$@"')
    assert lab.bash("ap_measure a", APTIMER="timer", **around).stdout == "-- a\n"


def test_a_wrong_barrier_is_refused(lab: Lab) -> None:
    done = lab.bash("ap_measure true", check=1, THREADS="2", APIPCKEY="5", APBARRIER="some")
    assert "APBARRIER is 'some'" in done.stderr
    assert "all or none" in done.stderr


def test_a_line_is_measured_without_a_shell_unless_it_needs_one(lab: Lab) -> None:
    lines = ["tar  --of=a -b c", "A=b true", *(f"echo a{char}b" for char in "][\\'\"$`|&;<>()*?{}~#!\n")]
    lab.program("timer", 'printf "%s\\0" "$#"')
    args = " ".join(shlex.quote(line) for line in lines)
    done = lab.bash(f'for line in {args}; do ap_measure_line "$line"; done', APTIMER="timer")
    counts = done.stdout.split("\0")[:-1]
    assert counts == ["5", *["4"] * (len(lines) - 1)]


def test_a_default_counts_only_where_nothing_is_set(lab: Lab) -> None:
    done = lab.bash("for n in A B C; do set_default $n mine; done; env", A="theirs", B="")
    lines = done.stdout.splitlines()
    assert "A=theirs" in lines
    assert "B=" in lines
    assert "C=mine" in lines


def test_the_users_directories_come_first_for_settings_and_for_hooks(lab: Lab) -> None:
    text = (
        "set_default KNOB {0}; {0}() {{ [[ $1 != other ]] || return $AP_DECLINED; echo {0}; }}\n"
        "ap_register mkfs {0}\n"
    )
    aplib = ":".join(lab.hooks(name, text.format(name)) for name in ("zz_first", "aa_second"))
    run = "echo $KNOB; ap_hook mkfs ext4; ap_hook mkfs other; echo $?"
    done = lab.bash(run, APLIB=aplib)
    assert done.stdout.split() == ["zz_first", "zz_first", "100"]


def test_a_hook_that_declines_leaves_the_answer_to_the_next(lab: Lab) -> None:
    text = "{0}() {{ [[ $1 == {0} ]] || return $AP_DECLINED; echo {0}; return 7; }}; ap_register mkfs {0}\n"
    aplib = ":".join(lab.hooks(name, text.format(name)) for name in ("one", "two"))
    assert lab.bash("ap_hook mkfs two; echo $?", APLIB=aplib).stdout.split() == ["two", "7"]


def test_the_settings_of_the_host_count_before_those_of_the_system_and_of_commonsettings_d(lab: Lab) -> None:
    aplib = Path(lab.hooks("mine", "set_default KNOB general; set_default GENERAL yes\n"))
    for place, name in (("host", "$HOSTNAME"), ("os", "$(uname -s)")):
        script = f'mkdir {aplib}/{place}; echo "set_default KNOB {place}" >{aplib}/{place}/"{name}"'
        subprocess.run(["bash", "-c", script], check=True)
    assert lab.bash("echo $KNOB $GENERAL", APLIB=str(aplib)).stdout == "host yes\n"


def test_back_ups_beside_hooks_are_not_read(lab: Lab) -> None:
    aplib = lab.hooks("mine", "true\n")
    for name in ("mine~", "mine.bak", "mine.example", "mine.dpkg-old"):
        Path(aplib, "commonsettings.d", name).write_text("exit 9\n")
    lab.bash("true", APLIB=aplib)


def test_a_directory_that_is_not_there_is_not_passed_over(lab: Lab) -> None:
    done = lab.bash("true", check=1, APLIB="/nonexistent/hooks")
    assert any("APLIB" in line and "/nonexistent/hooks" in line for line in done.stderr.splitlines())


@pytest.mark.parametrize("text", ["if then fi\n", "false\n"])
def test_settings_that_fail_end_the_script_and_are_named(lab: Lab, text: str) -> None:
    done = lab.bash("echo on", check=1, APLIB=lab.hooks("wrong", text))
    assert "commonsettings.d/wrong: " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ap_register mkdisk true_", "no point 'mkdisk'"),
        ("ap_register mkfs absent", "absent of mkfs"),
    ],
)
def test_a_hook_that_could_never_be_asked_is_refused(lab: Lab, line: str, message: str) -> None:
    done = lab.bash("true", check=1, APLIB=lab.hooks("wrong", f"{line}\n"))
    assert message in done.stderr


def test_failure_hooks_hear_the_reason_once(lab: Lab) -> None:
    hook = 'tell() { echo "told: $1"; ap_fail again; }; ap_register failure tell\n'
    done = lab.bash("ap_fail 'disk full'", check=1, APLIB=lab.hooks("tell", hook))
    assert done.stderr.splitlines() == ["bash: disk full", "told: disk full", "bash: again"]


def test_a_line_of_a_block_that_looks_like_a_header_is_moved_in(lab: Lab) -> None:
    lab.bash("printf '%s\\n' 'a = 1' '[measurement]' | ap_log_block mine")
    assert lab.blocks("mine")[0].lines == ("a = 1", " [measurement]")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TESTROOT", "relative"),
        ("TESTROOT", "/"),
        ("APSCRATCH", "/a\tb"),
        ("APTHREAD", "x"),
        ("THREADS", "08"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(lab: Lab, name: str, value: str) -> None:
    done = lab.bash("echo on", check=1, **{name: value})
    assert name in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("open", "others may write"), ("link", "is no directory"), ("file", "cannot be made")],
)
def test_a_scratch_directory_that_others_could_change_is_refused(lab: Lab, wrong: str, message: str) -> None:
    if wrong == "open":
        lab.scratch.mkdir()
        lab.scratch.chmod(0o777)
    elif wrong == "link":
        (lab.path / "elsewhere").mkdir()
        lab.scratch.symlink_to("elsewhere")
    else:
        lab.scratch.write_text("")
    done = lab.bash("ap_scratch", check=1)
    assert "APSCRATCH: " in done.stderr
    assert message in done.stderr


def test_the_scratch_directory_is_for_its_owner_only(lab: Lab) -> None:
    lab.bash("ap_scratch; ap_scratch")
    assert lab.scratch.stat().st_mode & 0o777 == 0o700


def test_the_shipped_measurements_add_their_fields(lab: Lab) -> None:
    lab.bash(f"TESTDIR={lab.path}; ap_measure true", APLIB=str(EXAMPLES / "measure"))
    (row,) = lab.measurements()
    assert row["free_memory"].endswith(" B")
    assert "." not in row["free_memory_change"]
    assert len(lab.blocks("disks")) == 1
    assert isinstance(row_of_block(lab.blocks("measurement")[0]), dict)


def test_another_machine_tells_the_processor_time_of_a_program(lab: Lab) -> None:
    lab.program("ssh", 'shift; echo "$@" >>"$APLOG".ssh; exec bash -c "$*"')
    burn = "for ((i = 0; i < 300000; i++)); do :; done"  # some 0.5 s of processor time
    name = "printf 'a b) c' >/proc/self/comm"  # as a program may call itself
    ask = f"{name}; {burn}; ap_remote cputime 'a b) c'; ap_remote cputime absent; ap_remote unknown 'a b'"
    done = lab.bash(ask, check=1, APREMOTEHOST="h", APREMOTESHELL="ssh")
    burnt, absent = done.stdout.split()
    assert float(burnt) > 0
    assert absent == "0.00"
    assert "the command unknown" in done.stderr
    asked = (lab.path / "aplog.ssh").read_text().splitlines()
    assert asked[1:] == ["apremote.sh cputime absent", "apremote.sh unknown a\\ b"]


def test_a_hook_adds_a_command_that_another_machine_may_ask(lab: Lab) -> None:
    hook = (
        'mine() { [[ $1 == hello ]] || return $AP_DECLINED; echo "hello $2"; }; ap_register apremote mine\n'
    )
    done = lab.run("apremote.sh", "hello", "a b", APLIB=lab.hooks("mine", hook))
    assert done.stdout == "hello a b\n"


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=80))
def test_whatever_a_hook_prints_the_block_stays_readable(lab: Lab, text: str) -> None:
    lab.log.unlink(missing_ok=True)
    hooks = "h() { printf '%s\\n' \"$SAID\"; }; ap_register end h; ap_register final h"
    lab.bash(f"{hooks}; ap_measure true", SAID=text)
    (block,) = lab.blocks("measurement")
    row = row_of_block(block)
    assert isinstance(row, dict), row
    assert row["command"] == ["true"]
    assert row["exit_status"] == 0
    assert row["metrics"]["elapsed"][0] == float(fields(block)["elapsed"])


@pytest.mark.more
@pytest.mark.needs_program("shellcheck")
def test_shellcheck_finds_nothing_in_the_shipped_scripts() -> None:
    settings = (".ap", ".inc", ".example", ".toml", ".conf", ".yml")
    texts = (*settings, ".md", ".ipynb", ".sql", ".c", ".h", ".pl", ".py")
    files = [p for p in sorted(EXAMPLES.rglob("*")) if p.is_file()]
    scripts = [str(p) for p in files if p.suffix not in texts and p.name != "Makefile"]
    assert len(scripts) > 20
    command = ["shellcheck", "-x", "-P", str(LIBRARY), *scripts]
    done = subprocess.run(command, cwd=EXAMPLES.parent, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""


def test_no_line_of_the_shipped_scripts_is_longer_than_the_others_of_this_repository() -> None:
    long = [
        f"{path}:{number}"
        for path in sorted(EXAMPLES.rglob("*"))
        if path.is_file() and path.suffix not in (".md", ".ipynb")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert long == []
