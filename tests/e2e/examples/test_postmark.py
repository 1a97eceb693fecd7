"""postmark.sh: its counts, and the check that they are the same in each trial."""

import re

import pytest

from support.laboratory import Lab

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("postmark")]

SMALL = {"POSTMARK_NUMBER": "20", "POSTMARK_TRANSACTIONS": "50", "POSTMARK_SUBDIRECTORIES": "2"}


@pytest.fixture
def bench(lab: Lab) -> Lab:
    lab.root.mkdir(parents=True)
    lab.scratch.chmod(0o700)
    return lab


def postmark(lab: Lab, check: int | None = 0, **changes: str) -> str:
    return lab.run("postmark.sh", check=check, **(SMALL | changes)).stderr


def test_the_counts_are_fields_of_the_measurement(bench: Lab) -> None:
    done = bench.run("postmark.sh", **SMALL)
    (row,) = bench.measurements()
    assert row["command"] == "postmark"
    assert row["status"] == "0"
    created = int(row["files_created"])
    assert created >= 20
    assert row["files_deleted"] == row["files_created"]
    assert int(row["files_read"]) + int(row["files_appended"]) == 50
    assert row["data_read"].endswith(" B")
    assert float(row["data_written"].split()[0]) > 20 * 500
    assert f"{created} created" in done.stdout


REPORT = """Files:
\t748 created (748 per second)
\t\tCreation alone: 500 files (500 per second)
\t232 read (232 per second)
\t268 appended (268 per second)
\t748 deleted (748 per second)

Data:
\t1.50 megabytes read (1.50 megabytes per second)
\t2.00 kilobytes written (2.00 kilobytes per second)
"""


def test_the_counts_are_those_of_the_report_and_not_its_rates(bench: Lab) -> None:
    (bench.path / "report").write_text(REPORT)
    bench.program("postmark", f"cat {bench.path}/report")
    postmark(bench)
    (row,) = bench.measurements()
    counts = {name: value for name, value in row.items() if name.startswith(("files_", "data_"))}
    assert counts == {
        "files_created": "748",
        "files_read": "232",
        "files_appended": "268",
        "files_deleted": "748",
        "data_read": "1572864 B",
        "data_written": "2048 B",
    }


def test_trials_of_one_test_have_the_same_counts(bench: Lab) -> None:
    for epoch in ("1", "2", "3"):
        postmark(bench, APEPOCH=epoch)
    rows = [
        {k: v for k, v in row.items() if k.startswith(("files_", "data_"))} for row in bench.measurements()
    ]
    assert rows[0] == rows[1] == rows[2] != {}


@pytest.mark.parametrize(
    "change", [{"POSTMARK_SEED": "7"}, {"POSTMARK_NUMBER": "21"}, {"POSTMARK_SIZE_HIGH": "90000"}]
)
def test_counts_that_differ_from_an_earlier_trial_are_a_failure(bench: Lab, change: dict[str, str]) -> None:
    postmark(bench)
    said = postmark(bench, check=1, APEPOCH="2", **change)
    assert "postmark.sh: " in said
    assert len(re.findall(r"\bcreated \d+", said)) == 2  # before, and now


def test_another_test_and_another_run_may_do_other_work(bench: Lab) -> None:
    postmark(bench)
    postmark(bench, APTEST="other/one", POSTMARK_SEED="7")
    postmark(bench, APTEST="other%2Fone", POSTMARK_SEED="9")
    (bench.path / "run2").mkdir()
    postmark(bench, APRESULTS=str(bench.path / "run2"), POSTMARK_SEED="7")
    kept = sorted(path.name for path in (bench.results / ".postmark").glob("*.counts"))
    assert kept == ["other%252Fone.1.counts", "other%2Fone.1.counts", "test.1.counts"]


def test_workers_have_directories_and_seeds_of_their_own(bench: Lab) -> None:
    for thread in ("1", "2"):
        postmark(bench, THREADS="2", APTHREAD=thread)
    texts = [(bench.results / ".postmark" / f"test.{n}.configuration").read_text() for n in (1, 2)]
    assert "set seed 42\n" in texts[0]
    assert "set seed 43\n" in texts[1]
    assert sorted(path.name for path in bench.root.iterdir()) == ["postmark-1", "postmark-2"]


def test_what_postmark_complains_of_is_a_failure(bench: Lab) -> None:
    said = postmark(bench, check=1, POSTMARK_READ="x")  # it would go on with another size, and end with 0
    assert said.startswith("postmark.sh: postmark: Error: ")
    assert said.count("\n") == 1


def test_postmark_that_ends_with_a_failure_is_one(bench: Lab) -> None:
    bench.program("postmark", "exit 3")
    assert "postmark ended with 3" in postmark(bench, check=1)


def test_a_report_without_counts_is_a_failure(bench: Lab) -> None:
    bench.program("postmark", "echo cannot open")
    said = postmark(bench, check=1)
    assert "postmark reported nothing" in said
    assert not (bench.results / ".postmark" / "test.1.counts").exists()


def test_paths_may_hold_blanks(bench: Lab) -> None:
    place = bench.path / "a place"
    place.mkdir()
    (bench.path / "the results").mkdir()
    postmark(bench, TESTDIR=str(place), APRESULTS=str(bench.path / "the results"))
    assert bench.measurements()[0]["status"] == "0"


def test_without_a_directory_to_work_in_it_says_so(lab: Lab) -> None:
    said = postmark(lab, check=1)
    assert "fs-setup.sh" in said
    assert "TESTDIR" in said
