"""bench/io_lab.py: its peers do what they say, what they print is read right, and the judgement follows its rule."""

import importlib
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.places import BENCH

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    io_lab = importlib.import_module("io_lab")
    rows = importlib.import_module("rows")

DD = """\
256+0 records in
256+0 records out
16777216 bytes (17 MB, 16 MiB) copied, 0.00293132 s, 5.7 GB/s
"""
DD_ONE_BYTE = "1+0 records in\n1+0 records out\n1 byte copied, 2.2604e-05 s, 44.2 kB/s\n"
FIO = """\
fio: this platform does not support process shared mutexes, forcing use of threads. Use the 'thread' option.
{
  "fio version" : "fio-3.33",
  "jobs" : [
    {
      "jobname" : "read",
      "error" : %(error)d,
      "read" : {
        "io_bytes" : 2147483648,
        "io_kbytes" : 2097152,
        "bw_bytes" : 16519104984,
        "bw" : 16131938,
        "runtime" : 130,
        "short_ios" : %(short)d
      }
    }
  ]
}
"""

rates = st.lists(st.floats(1e3, 1e8), min_size=2, max_size=40)
factors = st.floats(0.5, 2.0)


@pytest.fixture(scope="module")
def read_loop():
    return rows.peer("read_loop")


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "kib_s"),
    [(DD, 16384 / 0.00293132), (DD_ONE_BYTE, 1 / 1024 / 2.2604e-05)],
    ids=["many bytes", "one byte"],
)
def test_the_rate_of_dd_is_that_of_its_bytes_and_seconds(text, kib_s):
    assert io_lab.dd_kib_s(text) == pytest.approx(kib_s, rel=1e-12)


def test_the_rate_of_fio_is_that_of_its_bytes_and_milliseconds_after_any_warning():
    assert io_lab.fio_kib_s(FIO % {"error": 0, "short": 0}) == pytest.approx(2097152 / 0.130, rel=1e-12)


@pytest.mark.parametrize("wrong", [{"error": 2, "short": 0}, {"error": 0, "short": 1}])
def test_a_fio_that_failed_or_read_short_has_no_rate(wrong):
    with pytest.raises(ValueError, match="short reads"):
        io_lab.fio_kib_s(FIO % wrong)


@pytest.mark.parametrize("text", ["", "12.50 KBytes/sec\n13.00 KBytes/sec\n", "x 12.50 KBytes/sec\n"])
def test_what_is_not_one_rate_is_refused(text):
    assert io_lab.lab_kib_s("12.50 KBytes/sec\n") == 12.5
    with pytest.raises(ValueError, match="instead of one"):
        io_lab.lab_kib_s(text)


@given(rates, factors, factors)
def test_a_size_is_within_when_io_is_no_further_from_c_than_c_and_two_hundredths(c, io, again):
    values = {
        "c": c,
        "io": [io * rate for rate in c],
        "c_again": [again * rate for rate in c],
        "dd": c,
        "fio": c,
    }
    found = io_lab.judged(4096, values)
    assert found.io.median == pytest.approx(io)
    assert found.c_again.median == pytest.approx(again)
    slack = abs(again - 1) + 0.02 - abs(io - 1)
    if abs(slack) > 1e-9:
        assert found.within == (slack > 0)


@given(rates, st.data())
def test_dd_and_fio_are_compared_with_c_of_their_own_blocks(c, data):
    few = data.draw(st.integers(2, len(c)))
    beside = [3 * rate for rate in c[:few]]
    found = io_lab.judged(8, {"c": c, "io": c, "c_again": c, "dd": beside, "fio": beside})
    assert found.dd.median == pytest.approx(3)
    assert found.fio.high == pytest.approx(3)


def test_what_is_to_be_reached_is_judged_over_all_sizes_and_at_each():
    def size(buffer_bytes, io):
        values = {"c": [100.0] * 3, "io": [100 * io] * 3} | dict.fromkeys(
            ("c_again", "dd", "fio"), [100.0] * 3
        )
        return io_lab.judged(buffer_bytes, values)

    even = rows.spread([1.0, 1.0])
    whole = {"1 byte": (even, rows.spread([1.2, 1.2]), even), "16 MiB": (even, even, even)}
    judged = io_lab.rows([size(8, 1.03), size(2048, 1 / 1.03)], whole)
    assert [row.reached for row in judged] == [True, False, None, False, True]
    assert "0 of 2 sizes" in judged[1].value
    assert "8 B, 2 KiB" in judged[1].value
    assert [row.reached for row in io_lab.rows([size(8, 1.015)] * 3, whole)][:2] == [False, True]


@pytest.mark.parametrize("options", [[], ["-m"]], ids=["read", "mmap"])
def test_the_bare_loop_reads_a_file_and_prints_one_rate(read_loop, tmp_path, options):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    done = run(read_loop, *options, "-b", 64, "-t", 4096, file)
    assert done.returncode == 0
    assert io_lab.lab_kib_s(done.stdout) > 0
    quiet = run(read_loop, *options, "-q", "-b", 64, "-t", 4096, file)
    assert (quiet.returncode, quiet.stdout + quiet.stderr) == (0, "")


@pytest.mark.needs_program("strace")
def test_the_bare_loop_of_a_mapping_makes_no_call_in_its_loop(read_loop, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    calls = {}
    for options in ((), ("-m",)):
        done = run("strace", "-e", "trace=read", "-P", file, read_loop, *options, "-b", 64, "-t", 4096, file)
        calls[options] = done.stderr.count("read(")
    assert calls == {(): 64, ("-m",): 0}


def test_copies_from_a_mapping_are_judged_where_neither_rests():
    even, slow = rows.spread([1.0, 1.0]), rows.spread([0.8, 0.8])
    copies = {
        (512, False): (even, even, even),
        (512, True): (even, slow, slow),
        (4096, False): (even, slow, even),
        (8192, False): (even, slow, slow),
    }
    assert [row.reached for row in io_lab.mapped_rows(copies)] == [True, None, False, True]


@pytest.mark.parametrize(
    ("buffer", "total", "code"),
    [(64, 8192, 66), (48, 4096, 64), (0, 4096, 64)],
    ids=["the file is shorter", "a part of a buffer is left", "no buffer"],
)
def test_the_bare_loop_refuses_what_it_cannot_read(read_loop, tmp_path, buffer, total, code):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    done = run(read_loop, "-b", buffer, "-t", total, file)
    assert (done.returncode, done.stdout) == (code, "")


def test_programs_in_turn_run_each_once_a_round_in_orders_that_vary(tmp_path):
    log = tmp_path / "log"
    words = [["/bin/sh", "-c", f"printf {name} >> {log}"] for name in "abc"]
    done = run(rows.peer("spawn_turns"), 1, 20, *words[0], "--", *words[1], "--", *words[2])
    assert [len(line.split()) for line in done.stdout.splitlines()] == [3] * 20
    rounds = re.findall("...", log.read_text())
    assert len(rounds) == 21  # one before the first that counts
    assert {"".join(sorted(turns)) for turns in rounds} == {"abc"}
    assert len(set(rounds)) > 1


def test_a_program_that_fails_ends_the_turns(tmp_path):
    done = run(rows.peer("spawn_turns"), 1, 2, "/bin/true", "--", "/bin/false")
    assert done.returncode == 4
    assert "/bin/false failed" in done.stderr


@pytest.mark.more
@pytest.mark.needs_program("fio")
def test_the_page_has_a_line_a_size_and_says_where_it_was_measured(tmp_path):
    record = tmp_path / "page.md"
    options = ["--rounds", 2, "--sizes", 65536, "--no-fifo", "--record", record]
    done = run(sys.executable, BENCH / "io_lab.py", *options)
    assert record.exists(), done.stderr
    page = record.read_text(encoding="utf-8")
    assert page == done.stdout
    assert re.findall(r"^\| (\d+ \w*B) \| \d+ \| .* \| (?:yes|NO) \|$", page, re.MULTILINE) == ["64 KiB"]
    assert "python bench/io_lab.py --rounds 2" in page
    assert page.count("| mmap of 16 MiB") == 2 * len(io_lab.MAPPED_SIZES)
