"""What scripts do, step by step, in a world in which nothing takes time."""

from __future__ import annotations

import json

import pytest

from etude.errors import InputError
from etude.script.machine import Machine
from etude.script.parse import parse_text
from etude.script.program import ScriptError
from etude.script.state import RunningTest, State, reset_trial
from support.worlds import NotedWorld, play, reload, reloaded


def lines(story: list[str], *starts: str) -> list[str]:
    return [line for line in story if line.startswith(starts)]


def test_a_body_runs_once_a_trial_from_top_to_bottom() -> None:
    story = play("TEST a 2\nPRESETUP p\nSETUP s\nEXEC e\nCLEANUP c\nPOSTCLEANUP q\nDONE\n")
    assert lines(story, "P", "S", "E", "C") == [
        "PRESETUP p [a 1]",
        "SETUP s [a 1]",
        "EXEC e [a 1 x1]",
        "CLEANUP c [a 1]",
        "SETUP s [a 2]",
        "EXEC e [a 2 x1]",
        "CLEANUP c [a 2]",
        "POSTCLEANUP q [a 3]",
    ]
    assert story[-1].startswith("end of a: ")


def test_control_flow_within_a_test_is_run_in_each_trial() -> None:
    text = "VAR N=0\nTEST a 2\nFOREACH X u v\nVAREX N=$N + 1\nIF X = v\nEXEC %X% %N%\nELSE\nSETUP %X%\nFI\nDONE\nDONE\n"
    assert lines(play(text), "EXEC", "SETUP") == [
        "SETUP u [a 1]",
        "EXEC v 2 [a 1 x1]",
        "SETUP u [a 2]",
        "EXEC v 4 [a 2 x1]",
    ]


def test_loops_nest_and_close_innermost_first() -> None:
    story = play("FOREACH A x y\nFOR N=1 TO 4 FACTOR 2\nECHO %A%%N%\nDONE\nDONE\n")
    assert story == [f"ECHO {a}{n}" for a in "xy" for n in (1, 2, 4)]


def test_a_loop_over_nothing_is_not_run() -> None:
    script = "FOR N=3 TO 4 ADD 5\nECHO %N%\nDONE\nVAR L=\nFOREACH X %L%\nECHO %X%\nDONE\n"
    assert play(script) == ["ECHO 3"]


def test_while_looks_at_its_condition_anew() -> None:
    assert play("VAR N=3\nWHILE N > 0\nECHO %N%\nVAREX N=%N% - 1\nDONE\n") == ["ECHO 3", "ECHO 2", "ECHO 1"]


@pytest.mark.parametrize(("value", "said"), [("1", "one"), ("2", "two"), ("3", "more")])
def test_the_first_branch_that_holds_is_taken(value: str, said: str) -> None:
    text = f"VAR N={value}\nIF N = 1\nECHO one\nELSE IF N = 2\nECHO two\nELSE\nECHO more\nFI\n"
    assert play(text) == [f"ECHO {said}"]


def test_variables_and_the_environment_are_told_apart() -> None:
    text = "VAR A=1\nENV B=2\nENVEX C=%A% + 1\nECHO %A% %B% $B$ $C$ $HOME$ $mean $A\n"
    assert play(text) == ["ECHO 1 2 2 2 /home/me $mean $A"]


def test_what_the_command_line_sets_stays() -> None:
    state = State(fixed=["N"])
    state.scope.variables["N"] = "7"
    assert play("VAR N=1\nENV N=2\nECHO %N%\n", state=state) == ["ECHO 7"]


def test_an_undefined_variable_is_an_error_with_a_caret_under_it() -> None:
    with pytest.raises(ScriptError) as caught:
        play("ECHO hello\nECHO and %WHAT%\n")
    assert str(caught.value).startswith("script:2: ")
    assert "WHAT" in str(caught.value)
    shown, caret = caught.value.detail.splitlines()
    assert shown[caret.index("^")] == "%"


def test_a_wrong_argument_after_replacement_shows_what_came_of_it() -> None:
    with pytest.raises(ScriptError, match=r"script:2: .*after replacement: many"):
        play("VAR N=many\nTHREADS=%N%\n")


def test_threads_are_those_of_the_following_tests() -> None:
    story = play("THREADS=4\nTEST a:%THREADS% 1\nEXEC e\nDONE\nTHREADS 1\nTEST b 1\nEXEC e\nDONE\n")
    assert lines(story, "EXEC") == ["EXEC e [a:4 1 x4]", "EXEC e [b 1 x1]"]


def test_a_stop_program_is_asked_after_the_minimum_and_then_every_step() -> None:
    world = NotedWorld(enough=lambda test: test.kept >= 7)
    story = play("TEST a 3 2 judge --it\nEXEC e\nDONE\n", world)
    assert [line.split()[-1] for line in lines(story, "asked judge --it")] == ["3]", "5]", "7]"]
    assert story[-1].endswith(": seen enough")


def test_a_rule_that_names_no_metric_stops_behind_the_first_trial_and_cleans_up() -> None:
    world = NotedWorld()
    with pytest.raises(InputError):
        play("TEST a 5 1 judge misspelt\nSETUP s\nEXEC e\nCLEANUP c\nPOSTCLEANUP q\nDONE\nECHO on\n", world)
    assert [line.split()[0] for line in world.story] == [
        "SETUP",
        "EXEC",
        "CLEANUP",
        "trial",
        "checked",
        "POSTCLEANUP",
    ]


@pytest.mark.parametrize(
    ("limit", "trials", "why"),
    [
        ("MAX=5", 5, "maximum of 5"),
        ("TIME=4s", 4, "4 s"),
        ("", 1000, "maximum of"),
    ],
)
def test_a_test_that_never_has_enough_ends_nevertheless(limit: str, trials: int, why: str) -> None:
    story = play(f"TEST a 2 {limit} 1 judge\nEXEC e\nDONE\n", NotedWorld(enough=lambda test: False))
    assert len(lines(story, "EXEC")) == trials
    assert story[-1].startswith("end of a: ")
    assert why in story[-1]


def test_nothing_is_set_aside_unless_the_cache_is_to_be_warm() -> None:
    story = play("TEST a 2\nCACHE warm\nEXEC e\nDONE\n")
    assert lines(story, "EXEC") == ["EXEC e [a 0 x1 aside]", "EXEC e [a 1 x1]", "EXEC e [a 2 x1]"]


def test_a_failed_trial_is_cleaned_up_and_replaced() -> None:
    def fails(point: str, line: str, test: RunningTest | None) -> str | None:
        return "no" if test is not None and point == "EXEC" and test.trial == 2 else None

    story = play("TEST a 2\nSETUP s\nEXEC e\nEXEC f\nCLEANUP c\nDONE\n", NotedWorld(fails))
    assert lines(story, "EXEC", "CLEANUP", "warn") == [
        "EXEC e [a 1 x1]",
        "EXEC f [a 1 x1]",
        "CLEANUP c [a 1]",
        "EXEC e [a 2 x1]",
        "warning: no",
        "CLEANUP c [a 2]",
        "EXEC e [a 3 x1]",
        "EXEC f [a 3 x1]",
        "CLEANUP c [a 3]",
    ]


def test_a_test_whose_trials_keep_failing_is_given_up_and_the_next_one_runs() -> None:
    def fails(point: str, line: str, test: RunningTest | None) -> str | None:
        return "no" if line == "bad" else None

    story = play("TEST a 5\nEXEC bad\nDONE\nTEST b 1\nEXEC e\nDONE\n", NotedWorld(fails))
    assert lines(story, "EXEC") == [*(f"EXEC bad [a {n} x1]" for n in (1, 2, 3)), "EXEC e [b 1 x1]"]
    assert story[-1].startswith("stopped: given up")
    assert story[-1].endswith(": a")


def test_fastfail_stops_at_once_without_cleaning_up() -> None:
    def fails(point: str, line: str, test: RunningTest | None) -> str | None:
        return "no" if point == "EXEC" else None

    story = play("FASTFAIL tell me\nTEST a 5\nEXEC e\nCLEANUP c\nDONE\nECHO never\n", NotedWorld(fails))
    (failed,) = lines(story, "failed", "CLEANUP", "ECHO")
    assert failed.endswith(": no; tell me")
    assert lines(story, "trial") == [f"trial 1 of a: {json.dumps([{'line': 'e', 'trial': 1}])} no"]
    assert story[-1].startswith("stopped: no; FASTFAIL")


def test_a_failing_presetup_gives_the_test_up() -> None:
    def fails(point: str, line: str, test: RunningTest | None) -> str | None:
        return "no" if point == "PRESETUP" else None

    story = play("TEST a 5\nPRESETUP p\nEXEC e\nPOSTCLEANUP q\nDONE\n", NotedWorld(fails))
    assert not lines(story, "EXEC")
    assert len(lines(story, "POSTCLEANUP")) == 1


def test_checkpoint_returns_twice_as_fork_does() -> None:
    text = "TEST a 2\nEXEC e\nCHECKPOINT f\nIF RESTORE = 0\nECHO parent\nELSE\nECHO child\nFI\nDONE\n"
    world = NotedWorld()
    story = play(text, world)
    assert lines(story, "ECHO") == ["ECHO parent"] * 2
    path, data = world.saved[0]
    assert path == "f"
    again = play(text, NotedWorld(), reload(data))
    assert lines(again, "ECHO") == ["ECHO child", "ECHO parent"]
    # the rows of the trial in flight were in the state
    assert lines(again, "trial") == [
        f"trial {n} of a: {json.dumps([{'line': 'e', 'trial': n}])} ok" for n in (1, 2)
    ]


def test_stop_ends_everything() -> None:
    assert play("ECHO a\nSTOP\nECHO b\n") == ["ECHO a"]
    story = play("TEST a 9\nEXEC e\nSTOP\nDONE\n")
    assert lines(story, "trial") == [f"trial 1 of a: {json.dumps([{'line': 'e', 'trial': 1}])} ok"]


INTERLEAVED = """\
INTERLEAVE
FOREACH X a b c
VAR Y=%X%%X%
TEST %X% 3
EXEC %Y%
VAR Y=%Y%.
DONE
DONE
DONE
ECHO %X%
"""


def test_interleaved_tests_run_in_blocks_of_random_order_each_with_variables_of_its_own() -> None:
    story = play(INTERLEAVED)
    ran = [line.split()[1] for line in lines(story, "EXEC")]
    blocks = [ran[i : i + 3] for i in (0, 3, 6)]
    for number, block in enumerate(blocks):
        assert sorted(block) == [x * 2 + "." * number for x in "abc"]
    orders = {tuple(x[0] for x in play(INTERLEAVED, state=State(seed=s))[0:1]) for s in range(9)}
    assert len(orders) >= 1
    firsts = {lines(play(INTERLEAVED, state=State(seed=seed)), "EXEC")[0] for seed in range(20)}
    assert len(firsts) == 3
    assert story[-1] == "ECHO c"


def test_interleaved_tests_go_on_until_all_have_enough() -> None:
    world = NotedWorld(enough=lambda test: test.kept >= (6 if test.name == "b" else 2))
    story = play(
        "INTERLEAVE\nFOREACH X a b\nTEST %X% 2 1 judge\nEXEC e\nPOSTCLEANUP q\nDONE\nDONE\nDONE\n", world
    )
    assert len(lines(story, "EXEC e [a")) == len(lines(story, "EXEC e [b")) == 6
    assert [line.split()[2] for line in lines(story, "POSTCLEANUP")] == ["[a", "[b"]


def test_an_interleaved_test_that_keeps_failing_leaves_the_others_alone() -> None:
    def fails(point: str, line: str, test: RunningTest | None) -> str | None:
        return "no" if line == "ea" else None

    text = "INTERLEAVE\nFOREACH X a b\nTEST %X% 6\nEXEC e%X%\nDONE\nDONE\nDONE\n"
    story = play(text, NotedWorld(fails))
    assert len(lines(story, "EXEC ea")) == 3
    assert len(lines(story, "EXEC eb")) == 6


@pytest.mark.parametrize("at", ["SETUP s [a 2", "EXEC e [a 2", "CLEANUP c [a 2"])
def test_a_signal_ends_the_trial_cleans_up_and_leaves_a_state_to_go_on_from(at: str) -> None:
    text = "ECHO begin\nTEST a 4\nPRESETUP p\nSETUP s\nEXEC e\nCLEANUP c\nPOSTCLEANUP q\nDONE\nECHO end\n"
    world = NotedWorld(stop_at=at)
    program = parse_text(text)
    state = State()
    Machine(program, state, world).run()
    after = world.story[world.story.index(next(line for line in world.story if line.startswith(at))) + 1 :]
    expected = (
        ["CLEANUP", "trial", "POSTCLEANUP"] if not at.startswith("CLEANUP") else ["trial", "POSTCLEANUP"]
    )
    assert [line.split()[0] for line in after] == expected
    again = play(program, NotedWorld(), reloaded(state))
    assert again[0].startswith("PRESETUP"), "nothing is set up in a new session"
    assert again[-1] == "ECHO end"
    assert len(lines(again, "EXEC")) >= 2


def test_a_signal_in_a_system_line_leaves_it_to_be_run_again() -> None:
    world = NotedWorld(stop_at="SYSTEM")
    state = State()
    Machine(parse_text("SYSTEM one\nSYSTEM two\n"), state, world).run()
    assert world.story == ["SYSTEM one"]
    assert play("SYSTEM one\nSYSTEM two\n", state=reloaded(state)) == ["SYSTEM one", "SYSTEM two"]


def test_a_state_kept_between_trials_begins_the_trial_in_flight_anew() -> None:
    text = "TEST a 3\nPRESETUP p\nSETUP s\nEXEC e\nDONE\n"
    world = NotedWorld()
    play(text, world)
    state = reload(world.safe[2])
    reset_trial(state)
    assert lines(play(text, state=state), "PRE", "EXEC") == ["PRESETUP p [a 3]", "EXEC e [a 3 x1]"]


WHOLE = "TEST a 3\nPRESETUP p\nSETUP s\nEXEC e\nCLEANUP c\nPOSTCLEANUP q\nDONE\nECHO end\n"


def killed(text: str, states: int, trials: int) -> tuple[NotedWorld, State]:
    """What a kill leaves when so many states were written, and so many trials of test a: a world and its last state."""
    world = NotedWorld()
    play(text, world)
    state = reload(world.safe[states - 1])
    reset_trial(state)
    on_disk = {name: found[:trials] for name, found in world.on_disk.items()}
    return NotedWorld(on_disk=on_disk), state


def test_trials_that_are_on_disk_and_not_in_the_state_are_counted() -> None:
    world, state = killed(WHOLE, states=1, trials=2)
    assert lines(play(WHOLE, world, state), "PRE", "EXEC", "POST") == [
        "PRESETUP p [a 3]",
        "EXEC e [a 3 x1]",
        "POSTCLEANUP q [a 4]",
    ]


def test_a_test_whose_trials_are_all_on_disk_is_only_cleaned_up_after() -> None:
    world, state = killed(WHOLE, states=2, trials=3)
    assert play(WHOLE, world, state) == ["POSTCLEANUP q [a 4]", "end of a: as many as requested", "ECHO end"]


def test_the_stop_rule_is_asked_before_another_trial() -> None:
    text = WHOLE.replace("a 3", "a 2 MAX=9 1 judge")
    world, state = killed(text, states=2, trials=3)
    assert play(text, world, state)[0] == "asked judge [a 3]"
    assert not lines(world.story, "PRE", "EXEC")


def test_of_a_test_whose_end_is_on_disk_nothing_runs_again() -> None:
    world, state = killed(WHOLE, states=2, trials=3)
    world.ends["a"] = "as many as requested"
    assert play(WHOLE, world, state) == ["ECHO end"]


def test_a_test_that_had_ended_before_its_minimum_is_not_gone_on_with() -> None:
    """It was given up: its trials, counted again, would ask for another one."""
    world, state = killed(WHOLE, states=2, trials=1)
    world.ends["a"] = "given up"
    assert not lines(play(WHOLE, world, state), "EXEC")


def test_interleaved_tests_that_are_all_on_disk_are_only_cleaned_up_after() -> None:
    text = "INTERLEAVE\nFOREACH X a b\nTEST %X% 2\nPRESETUP p\nEXEC e\nPOSTCLEANUP q\nDONE\nDONE\nDONE\n"
    world, state = killed(text, states=1, trials=2)
    assert [line.split(" ", 1)[0] for line in play(text, world, state)] == ["POSTCLEANUP", "end"] * 2


def test_a_clean_up_that_fails_behind_a_kill_stops_nothing() -> None:
    text = f"FASTFAIL tell\n{WHOLE}"
    world, state = killed(text, states=2, trials=3)
    world.fails = lambda point, line, test: "not mounted" if point == "POSTCLEANUP" else None
    assert play(text, world, state)[-1] == "ECHO end"


def test_a_second_run_that_warms_the_caches_has_a_number_of_its_own() -> None:
    text = "TEST a 2\nCACHE warm\nEXEC e\nDONE\n"
    world, state = killed(text, states=1, trials=1)
    assert lines(play(text, world, state), "EXEC")[0] == "EXEC e [a 1 x1 aside]"


# --- QUIET ----------------------------------------------------------------------------------------


def test_quiet_alone_is_what_the_environment_asks_for_and_else_nothing() -> None:
    assert play("QUIET\nQUIET off\nECHO e\n") == ["ECHO e"]
    world = NotedWorld(environment={"APQUIET": "swap thp=never"})
    assert play("QUIET\nQUIET off\n", world) == ["QUIET swap thp=never", "QUIET off"]
    assert play("ENV APQUIET=usual\nQUIET\n") == ["QUIET usual"]


def test_quiet_that_fails_is_a_warning_and_stops_all_with_fastfail() -> None:
    def fails(point: str, line: str, test: RunningTest | None) -> str | None:
        return "not root" if point == "QUIET" else None

    assert play("QUIET swap\nECHO on\n", NotedWorld(fails)) == ["QUIET swap", "warning: not root", "ECHO on"]
    story = play("FASTFAIL\nQUIET swap\nECHO on\n", NotedWorld(fails))
    assert story[-1].startswith("stopped: not root; FASTFAIL")


def test_what_is_quiet_is_part_of_the_state() -> None:
    world = NotedWorld()
    play("QUIET swap\nQUIET aslr\nCHECKPOINT f\nQUIET off\nCHECKPOINT g\n", world)
    assert [json.loads(text)["quiet"] for _, text in world.saved] == [["swap", "aslr"], []]


def test_a_variable_that_doubles_in_a_loop_is_an_error_before_it_fills_the_memory() -> None:
    text = "VAR A=x\nVAR N=0\nWHILE N < 40\nVAR A=%A%%A%\nVAREX N=$N + 1\nDONE\n"
    with pytest.raises(ScriptError) as error:
        play(text)
    assert ":4" in str(error.value)
    assert len(str(error.value)) < 1000


def test_one_name_of_a_metric_has_one_pattern() -> None:
    body = "TEST a 2\nMETRIC m x=([0-9])\nMETRIC m {}=([0-9])\nEXEC e\nDONE\n"
    assert lines(play(body.format("x")), "EXEC") == ["EXEC e [a 1 x1]", "EXEC e [a 2 x1]"]
    with pytest.raises(ScriptError, match=r":3: .*m is read"):
        play(body.format("y"))
