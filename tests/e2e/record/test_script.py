"""`etude script` on the command line: scripts in, scripts out, and the examples of docs/howto/scripts.md."""

import re
import subprocess
from pathlib import Path

import pytest

from support.places import DOCS
from support.real import ETUDE
from support.recordings import record

pytestmark = [pytest.mark.quick, pytest.mark.beside]

PAGE = (DOCS / "howto" / "scripts.md").read_text()
EXAMPLES = re.findall(r"^```script\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COPY = EXAMPLES[0]
OTHER = 'etude script 1\n0: start(1)\n1: mkdir("d", 0755) = 0 <0.000001000>\n0: stat("d") = -1 ENOENT\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two scripts, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cp.script").write_text(COPY)
    (tmp_path / "tar.script").write_text(OTHER)
    return tmp_path


def script(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ETUDE, "script", *words], input=text, capture_output=True, text=True, check=False)


def made(*words: str, text: str | None = None) -> str:
    """The new script, which is one."""
    done = script(*words, text=text)
    assert (done.returncode, done.stderr) == (0, "")
    checked = script("check", "-", text=done.stdout)
    assert (checked.returncode, checked.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_page_are_scripts(example: str) -> None:
    assert script("check", "-", text=example).returncode == 0
    assert script("check", "cp.script").stdout.strip() in PAGE


def test_the_commands_of_the_page_run_as_they_are_printed(here: Path) -> None:
    (here / "four.script").unlink(missing_ok=True)
    (here / "tar.trace").touch()
    (here / "trace.log").write_text("fio version 2 iolog\na add\na open\na read 0 4096\na close\n")
    ran = 0
    for line in re.findall(r"^    \$ etude (script .*)$", PAGE, re.MULTILINE):
        if "tar.trace" in line or "wrong.script" in line:
            continue
        done = subprocess.run(
            ["sh", "-c", re.sub(r"(^| )(?=script )", rf"\1{ETUDE} ", line.replace("| etude ", "| "))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        assert not done.stderr or line.startswith(("script import", "script export")), line
        ran += 1
    assert ran >= 10
    assert (here / "four.script").read_text().count("fork(") == 4


def test_a_cut_is_that_of_the_page() -> None:
    (wanted,) = (example for example in EXAMPLES if "lseek" in example)
    assert made("cut", "--from", "0.000008", "--to", "0.000011", "cp.script") == wanted


def test_a_cut_short_trace_has_an_exit_status_of_its_own_and_a_script(tmp_path: Path) -> None:
    assert record("true", at=tmp_path / "it.trace").status == 0
    whole = (tmp_path / "it.trace").read_bytes()
    cut = tmp_path / "cut.trace"
    cut.write_bytes(whole[:-5])
    done = script(str(cut), "-q", "-o", str(tmp_path / "cut.script"))
    assert (done.returncode, done.stderr.count("\n")) == (9, 1)
    assert script(str(cut), "-q", "--partial").returncode == 0
    assert script("check", str(tmp_path / "cut.script")).returncode == 0


def test_what_is_wrong_is_said_with_its_line_and_a_mark(here: Path) -> None:
    (here / "wrong.script").write_text('etude script 1\nopenat(3, "a b", O_RDONLI) = 3\n')
    done = script("check", "wrong.script")
    assert (done.returncode, done.stdout) == (3, "")
    said = PAGE[PAGE.index("    $ etude script check wrong.script\n") :].splitlines()[1:4]
    assert done.stderr.splitlines() == [line[4:] for line in said]


def test_a_descriptor_that_is_not_open_is_said_with_its_line() -> None:
    done = script("check", "-", text="etude script 1\nclose(9) = -1 EBADF\n\nread(7, 10) = 10\n")
    assert done.returncode == 1
    assert done.stderr.startswith("etude script: -:4: descriptor 7 ")
    assert re.findall(r"(\d+) ([a-z]+)", done.stdout) == [
        *(("2", "steps"), ("2", "calls"), ("1", "thread"), ("1", "process"), ("0", "needed")),
        *(("000000000", "s"), ("2", "calls")),
    ]


def test_a_part_of_the_calls_takes_as_long_as_all() -> None:
    part = made("filter", "--calls", "write", "cp.script")
    assert "read(" not in part
    assert "compute(0.000006000)" in part
    assert made("cut", "--files", "*.c", "cp.script").splitlines()[2:] == ["compute(0.000012000)"]


def test_rounds_clean_up_after_themselves_or_have_files_of_their_own() -> None:
    text = made("repeat", "3", "cp.script")
    assert text.count('unlinkat(AT_FDCWD, "/out", 0) = 0') == 2
    assert text.count("close(3)") == 2
    own = made("repeat", "--own", "2", "cp.script")
    assert 'file "2/in" 8192' in own
    assert "unlink" not in own
    gone = 'etude script 1\nfile "a" 1\nunlink("a") = 0\n'
    done = script("repeat", "2", "-", text=gone)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert '"a" is not' in done.stderr


def test_scripts_side_by_side_are_in_directories_of_their_own() -> None:
    text = made("merge", "cp.script", "tar.script")
    assert '1: openat(AT_FDCWD, "a/in", O_RDONLY) = 3' in text
    assert '3: mkdir("b/d", 0755) = 0' in text
    assert '1: openat(AT_FDCWD, "in", O_RDONLY) = 3' in made("merge", "--shared", "cp.script", "tar.script")
    assert made("clone", "3", "cp.script").count('/in", O_RDONLY') == 3


def test_sizes_and_gaps_are_scaled() -> None:
    text = made("scale", "--sizes", "2", "--align", "512", "--gaps", "10", "cp.script")
    assert 'file "in" 16384' in text
    assert "read(3, 8192) = 8192" in text
    assert "compute(0.000050000)" in text


def test_an_output_can_be_the_input_and_is_whole_or_not_at_all(here: Path) -> None:
    assert script("scale", "--gaps", "0", "cp.script", "-o", "cp.script").returncode == 0
    assert "compute" not in (here / "cp.script").read_text()
    before = (here / "cp.script").read_text()
    assert script("repeat", "0", "cp.script", "-o", "cp.script").returncode == 2
    assert (here / "cp.script").read_text() == before
    done = script("clone", "2", "cp.script", "-o", "nosuch/out")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert sorted(path.name for path in here.iterdir()) == ["cp.script", "tar.script"]
    assert script("clone", "2", "cp.script", "-o", "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["nosuch"], 3, "nosuch: no such file"),
        (["cut", "cp.script"], 2, "--from, --to or --files is missing"),
        (["cut", "--from", "x", "cp.script"], 2, '--from "x": expected a duration'),
        (["cut", "--from", "2", "--to", "1", "cp.script"], 2, "nothing lies between"),
        (["cut", "--files", "[", "cp.script"], 2, "[ without ]"),
        (["filter", "cp.script"], 2, "--calls or --classes is missing"),
        (["filter", "--calls", "raed", "cp.script"], 2, '--calls "raed"'),
        (["filter", "--classes", "x", "cp.script"], 2, "data, metadata"),
        (["repeat", "cp.script"], 2, "expected a whole number"),
        (["clone", "0", "cp.script"], 2, "cloned 0 times"),
        (["merge", "cp.script"], 2, "expected 2 to 26"),
        (["scale", "--align", "512", "cp.script"], 2, "--align needs --sizes"),
        (["scale", "--sizes", "-1", "cp.script"], 2, "above 0"),
        (["scale", "--own", "cp.script"], 2, "--own"),
        (["check", "nosuch"], 3, "nosuch: cannot be read"),
        (["--events"], 2, "--events needs a value"),
        (["--events", "cp.script"], 3, "cp.script"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], code: int, text: str) -> None:
    done = script(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert text in done.stderr
    assert done.stderr.startswith("etude script: ")


NASTY = "n\x1b]0;t\x07\x9b\u2028\u202e"


@pytest.mark.parametrize(
    "words",
    [
        *(["script", verb, name] for verb in ("check", "filter") for name in (NASTY, f"no{NASTY}")),
        *(["script", "--events", NASTY], ["trace", "events", NASTY], ["residency", "look", NASTY]),
        *(["compile", NASTY, "-o", "n.roll"], ["prepare", NASTY, "n"], ["replay", NASTY, "n"]),
        *(["fragments", name] for name in (NASTY, f"no{NASTY}")),
    ],
    ids=lambda words: ascii(" ".join(words)),
)
def test_a_name_steers_no_terminal(words: list[str], here: Path) -> None:
    (here / NASTY).write_text(COPY.replace("\n", f"\n# {NASTY}\n", 1))
    done = subprocess.run([ETUDE, *words], capture_output=True, text=True, check=False)
    assert [line for line in (done.stdout + done.stderr).split("\n") if not line.isprintable()] == []


def test_help_says_how() -> None:
    done = script("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "etude script cut" in done.stdout
