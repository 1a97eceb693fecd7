"""What docs/howto/examples.md and docs/howto/hooks.md say of the shipped scripts is so."""

import re
from pathlib import Path

import pytest

from support.laboratory import EXAMPLES, LIBRARY, Lab

pytestmark = pytest.mark.beside

DOCS = EXAMPLES.parent / "docs"
HOOKS = (DOCS / "howto" / "hooks.md").read_text()
TABLES = (DOCS / "howto" / "examples.md").read_text()


def scripts() -> list[Path]:
    return [path for path in sorted(LIBRARY.rglob("*")) if path.is_file() and path.suffix != ".example"]


def defaults() -> list[tuple[str, str]]:
    """What scripts set if it is not set."""
    found = [m for p in scripts() for m in re.findall(r"^ *set_default ([A-Z_]+) (.*)$", p.read_text(), re.M)]
    return sorted({(name, value.strip("'\"")) for name, value in found})


def test_every_knob_is_documented_with_its_default() -> None:
    trial = {"APEPOCH", "APTHREAD", "THREADS"}  # the runner's, docs/reference/language.md
    known = dict(defaults())
    assert len(known) > 30
    rows = [line for line in TABLES.splitlines() if line.startswith("|")]
    remote = {"APREMOTESHELL", "APREMOTESCRIPT"}  # docs/howto/hooks.md
    for name in known.keys() - trial - remote:
        row = next((row for row in rows if f"`{name}`" in row), None)
        assert row is not None, name
        value = known[name].removeprefix("/var/tmp/etude-$(id -un)") or "/var/tmp/etude-USER"
        words = row.replace("`", "").replace("nothing", "")
        assert value == "" or known[name] == "" or value in words, (name, value, row)


def test_every_script_and_every_example_is_named() -> None:
    for path in LIBRARY.iterdir():
        if path.suffix in (".sh", ".inc") and path.name != "ok.sh":
            assert f"`{path.name}" in TABLES, path.name
    for path in EXAMPLES.rglob("*.ap"):
        assert f"etude run examples/{path.relative_to(EXAMPLES)}" in TABLES, path.name


def test_every_point_for_hooks_is_documented(lab: Lab) -> None:
    points = lab.bash("echo $AP_POINTS").stdout.split()
    rows = re.findall(r"^\| `(\w+)` \| .* \| (one|all) \|", HOOKS, re.M)
    assert sorted(name for name, _ in rows) == sorted(points)


def documented(name: str) -> str:
    """The example of that name, as a file of hooks."""
    blocks = re.findall(r"^```bash\n# mylib/commonsettings\.d/(\w+).*?\n(.*?)^```", HOOKS, re.M | re.S)
    return dict(blocks)[name]


@pytest.mark.serial
@pytest.mark.needs_root
def test_the_documented_file_system_works(lab: Lab) -> None:
    around = {"APLIB": lab.hooks("ramfs", documented("ramfs"))}
    lab.run("fs-setup.sh", "ramfs", **around)
    assert lab.mounts() == [str(lab.root)]
    lab.run("fs-cleanup.sh", "ramfs", **around)
    assert lab.left() == []


def test_the_documented_measurements_work(lab: Lab) -> None:
    aplib = ":".join(lab.hooks(name, documented(name)) for name in ("tracesize", "nfsdtime"))
    lab.program("ssh", 'while [[ $1 != server ]]; do shift; done; shift; APLIB= exec bash -c "$*"')
    lab.bash(f"TESTDIR={lab.path}; ap_measure cp /dev/null trace", APLIB=aplib, APREMOTEHOST="server")
    (row,) = lab.measurements()
    assert row["trace_size"] == "0 B"
    assert row["server_cpu"] == "0.00 s"
