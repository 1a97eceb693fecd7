"""Secrets are taken out of commands, names, rows and bundles; the plan keeps them, for its owner alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from etude.analysis.snapshot_differences import compare
from etude.cluster.distributed.part import new_part
from etude.cluster.distributed.request import document_of
from etude.cluster.pool.pool_config import PoolSpec
from etude.errors import CommandFailed, InputError, MachineRefuses
from etude.experiment.plan import digest, make_plan, plan_to_resume, to_document
from etude.experiment.run import resume, run
from etude.experiment.test import Test
from etude.masking import MASKED, Mask
from etude.present.bundle import gather
from etude.present.page import content_of
from etude.present.page import gather as read
from etude.present.page.content import rendered
from support.fakes import World, around

SECRETS = ("hunter2", "k-4711")
COMMAND = "a --password hunter2 db://me:hunter2@host me:hunter2@host key k-4711"


@pytest.mark.parametrize(
    ("pattern", "masked"),
    [
        (r"key (\S+)", ["fetch", "key", MASKED, "end"]),
        (r"k-\d+ end", ["fetch", "key", MASKED, MASKED]),
        (r"tch k", ["fe" + MASKED, MASKED + "ey", "k-4711", "end"]),
        (r"^k\S+", ["fetch", MASKED, MASKED, "end"]),
        (r"-\d|\d$", ["fetch", "key", f"k{MASKED}71{MASKED}", "end"]),
        (r"nothing", ["fetch", "key", "k-4711", "end"]),
    ],
)
def test_a_pattern_may_match_over_several_words(pattern: str, masked: list[str]) -> None:
    words = ["fetch", "key", "k-4711", "end"]
    mask = Mask([pattern])
    assert mask.words(words) == masked
    assert json.loads(mask.content(json.dumps({"command": words}).encode())) == {"command": masked}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("mysql --password=x -u me", f"mysql --password={MASKED} -u me"),
        ("curl --api-key x y", f"curl --api-key {MASKED} y"),
        ("curl http://me:x@h/", f"curl http://{MASKED}@h/"),
        ("psql me:x@h/db", f"psql {MASKED}@h/db"),
        ("rsync a git@host:b", "rsync a git@host:b"),
        ("docker run nginx:1.2@sha256:0a", "docker run nginx:1.2@sha256:0a"),
        ("tool --token --fast", "tool --token --fast"),
        ("MYSQL_PWD=x mysql", f"MYSQL_PWD={MASKED} mysql"),
        ("env PWD=/a OLDPWD=/b pwd", "env PWD=/a OLDPWD=/b pwd"),
    ],
)
def test_what_is_masked_without_a_pattern(text: str, masked: str) -> None:
    assert Mask().text(text) == " ".join(Mask().words(text.split())) == masked
    assert Mask().text(masked) == masked


@pytest.mark.parametrize("part", ["a", "a-", "a:b,", " --a-", "://", "key ", "@ "])
def test_long_text_takes_time_that_grows_with_its_length(part: str) -> None:
    text = f"token {part * 300_000}"
    assert Mask().content(text.encode()) == text.encode()


def test_a_pattern_masks_its_group_or_all_of_its_match() -> None:
    assert Mask(["key-(\\w+)"]).text("run key-ab \udcff key-cd") == f"run key-{MASKED} \udcff key-{MASKED}"
    assert Mask(["k.y"]).text("key-ab") == f"{MASKED}-ab"


@pytest.mark.parametrize("quote", "'\"")
def test_a_secret_of_several_words_is_masked_whole(quote: str) -> None:
    for text in (f"a --password {quote}x y{quote} b", f"a --password={quote}x y{quote} b"):
        assert "x" not in Mask().text(text)
        assert "y" not in Mask().text(text)
        assert Mask().text(text).endswith(" b")
    assert Mask().words(["a", "--password=x y", "b"]) == ["a", f"--password={MASKED}", "b"]


@pytest.mark.parametrize(
    ("holder", "name", "value", "masked"),
    [
        ("assignments", "API_KEY", "x y", MASKED),
        ("assignments", "url", "http://me:x@h/", f"http://{MASKED}@h/"),
        ("assignments", "KEYS", "100", "100"),
        ("assignments", "k", "4711", MASKED),
        ("environment", "MYSQL_PWD", "x", MASKED),
        ("variables", "AWS_SECRET_ACCESS_KEY", "x", MASKED),
        ("variables", "OLDPWD", "/home", "/home"),
        ("variables", "API_KEY", "", ""),
        ("metrics", "API_KEY", "x", "x"),
    ],
)
def test_variables_in_json_are_masked_by_their_names(holder: str, name: str, value: str, masked: str) -> None:
    mask, document = Mask(["k=(4711)"]), {"plan": {holder: {name: value}}}
    assert mask.data(document) == {"plan": {holder: {name: masked}}}
    assert json.loads(mask.content(json.dumps(document).encode())) == {"plan": {holder: {name: masked}}}


def test_json_stays_json() -> None:
    line = json.dumps({"command": ["a", "--password", 'x"y'], "value": 0.1}, separators=(",", ":")).encode()
    assert json.loads(Mask().content(line)) == {"command": ["a", "--password", MASKED], "value": 0.1}
    assert Mask().content(b'{"a": 1e3}\n') == b'{"a": 1e3}\n'


def test_the_command_line_that_others_see() -> None:
    words = [
        sys.executable,
        "-c",
        "from etude.masking import Mask; Mask().title(); print(open('/proc/self/cmdline').read())",
    ]
    said = subprocess.run([*words, "--password=hunter2", "end"], capture_output=True, text=True, check=True)
    assert "hunter2" not in said.stdout
    assert said.stdout.startswith("\0".join(words))


def files(directory: Path, *left_out: str) -> str:
    return "".join(
        f"{path}: {path.read_text()}\n"
        for path in directory.rglob("*")
        if path.is_file() and path.name not in left_out
    )


def test_only_the_plan_of_an_experiment_has_them(tmp_path: Path) -> None:
    def die(now: int, world: World) -> None:
        if now == 2:
            raise MachineRefuses("the engine died")

    plan = make_plan([COMMAND], trials=3, seed=1, masks=("k-\\d+",))
    world = World({"a": around(0.01)}, before=die)
    directory = tmp_path / "r"
    with pytest.raises(MachineRefuses):
        run(plan, directory=directory, make_engine=world.make_engine, command_line=["etude bench", COMMAND])
    assert (directory / "experiment.json").stat().st_mode & 0o077 == 0
    results = resume(directory, make_engine=World({"a": around(0.01)}).make_engine).results
    (name,) = results.names()
    assert sum(m.kept for m in results.measurements[name]) == 3, "the plan has the commands as they are run"
    document = json.loads((directory / "experiment.json").read_text())
    assert "hunter2" in json.dumps(document.pop("plan"))
    assert not [
        each for each in SECRETS if each in json.dumps(document) + files(directory, "experiment.json")
    ]
    assert (directory / "experiment.json").stat().st_mode & 0o077 == 0


def test_a_bundle_has_none_and_cannot_be_run_again(tmp_path: Path) -> None:
    plan, directory = make_plan([COMMAND], trials=2, seed=1), tmp_path / "r"
    run(plan, directory=directory, make_engine=World({"a": around(0.01)}).make_engine)
    found = {each.name: b"".join(each.read()) for each in gather([directory], masks=["k-\\d+"]).members}
    assert not [each for each in SECRETS if each in repr(found)]
    document = json.loads(found["results/r/experiment.json"])
    packed = tmp_path / "experiment.json"
    packed.write_text(json.dumps(document))
    with pytest.raises(InputError, match="masked"):
        plan_to_resume(document, str(packed))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two results whose commands, hooks and variables differ by secrets alone."""
    places = []
    for number, secret in enumerate(SECRETS):
        test = Test(
            "a",
            ("/bin/sh", "-c", f"a --password '{secret} {secret}'"),
            setup=f"login --token {secret}",
            prepare=f"get http://me:{secret}@h/",
            environment={"MYSQL_PWD": secret},
        )
        of_pattern = Test("b", ("b", "key", secret))
        plan = make_plan([test, of_pattern], trials=2, seed=1, masks=(r"key (\S+)",))
        place = tmp_path_factory.mktemp("results") / f"r{number}"
        world = World({"/bin/sh": around(0.01), "b": around(0.01)})
        line = ["etude bench", f"--password={secret}"]
        run(plan, directory=place, make_engine=world.make_engine, command_line=line)
        places.append(str(place))
    return places


@pytest.mark.parametrize("form", ["html", "markdown", "latex"])
def test_a_report_has_none(form: str, measured: list[str]) -> None:
    page = rendered(content_of(read(measured)), form)
    assert "login" in page
    assert [each for each in SECRETS if each in page] == []


def test_a_readme_has_none_of_the_plans_own_patterns(measured: list[str]) -> None:
    members = {
        each.name: b"".join(each.read()) for each in gather([Path(place) for place in measured]).members
    }
    assert [each for each in SECRETS if each in repr(members)] == []
    assert b"b key" in members["README.txt"]


def test_that_secrets_differ_is_seen_but_not_they(measured: list[str]) -> None:
    documents = [json.loads(Path(place, "experiment.json").read_text()) for place in measured]
    found = {each.what: each for each in compare(*documents).differs}
    assert {
        "plan.tests.0.command",
        "plan.tests.1.command",
        "plan.tests.0.setup",
        "plan.tests.0.prepare",
        "plan.tests.0.environment.MYSQL_PWD",
    } <= set(found)
    assert [each for each in SECRETS if each in repr(found)] == []
    assert all(each.then != each.now for each in found.values())


def test_over_a_pool_as_well(tmp_path: Path) -> None:
    plan = make_plan([COMMAND], trials=2, seed=1, masks=("k-\\d+",))
    document = document_of(
        "bench", plan.name, to_document(plan), digest(plan), PoolSpec("local"), [COMMAND], None
    )
    assert not [each for each in SECRETS if each in repr(document["command_line"])]
    part = new_part(tmp_path, {"kind": "blocks", "plan": document["plan"]})
    (task,) = part.place.iterdir()
    assert task.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("masks", [None, 3, ["("]])
def test_a_plan_whose_masks_cannot_be_read_is_its_owners(tmp_path: Path, masks: object) -> None:
    part = new_part(tmp_path, {"kind": "blocks", "plan": {"masks": masks}})
    (task,) = part.place.iterdir()
    assert task.stat().st_mode & 0o077 == 0


def test_a_hook_that_fails_is_named_without_them(tmp_path: Path) -> None:
    setup = "login --password hunter2"
    world = World({"a": around(0.01), setup: {"exit_status": 1}})
    plan = make_plan([Test("a", ("a",), setup=setup)], trials=2, seed=1)
    with pytest.raises(CommandFailed) as error:
        run(plan, directory=tmp_path / "r", make_engine=world.make_engine)
    document = json.loads((tmp_path / "r" / "experiment.json").read_text())
    assert "hunter2" not in str(error.value) + json.dumps(document["sittings"])
    assert MASKED in str(error.value)
