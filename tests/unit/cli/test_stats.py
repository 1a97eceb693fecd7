"""`etude stats`: any results in, a defended verdict out; and an answer as exit code."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from etude.cli.main import main
from etude.results.model import Measurement
from support.builders import measurement, results_directory
from support.fakes import World
from support.golden import Golden
from support.places import DATA
from support.profiles import examples

SAMPLES = DATA / "readers"
Captured = pytest.CaptureFixture[str]
Stats = Callable[..., str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stats(capsys: Captured) -> Stats:
    """What a call prints, lines joined where the screen is too narrow; it must end with the code."""

    def call(*words: object, code: int = 0) -> str:
        capsys.readouterr()
        try:
            ended: object = main(["stats", *map(str, words)])
        except SystemExit as exit:
            ended = exit.code
        assert ended == code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return out if code in (0, 1, 8) else err

    return call


def flat(text: str) -> str:
    return " ".join(text.split())


def table(path: str, columns: dict[str, Sequence[object]]) -> str:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def noisy(n: int = 20, mean: float = 1.0, cv: float = 0.01, seed: int = 1) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).normal(mean, cv * mean, n)]


def script(directory: str, **levels: float) -> str:
    """Results of a script with tests in turn."""
    rows = {
        name: [measurement(name, trial=n, elapsed_s=x) for n, x in enumerate(noisy(12, level, seed=7), 1)]
        for name, level in levels.items()
    }
    results_directory(Path(directory), rows, plan={"kind": "script", "primary": "elapsed"})
    return directory


@pytest.mark.parametrize("sample", sorted(p.name for p in SAMPLES.iterdir() if p.suffix != ".md"))
def test_every_sample_of_every_reader_has_statistics(sample: str, stats: Stats) -> None:
    out = stats(SAMPLES / sample)
    assert re.search(r": \d+ trials?\b|summaries|95 %", out)


def test_a_summary_has_intervals_quartiles_and_what_it_is_worth(stats: Stats, golden: Golden) -> None:
    out = stats(table("t.csv", {"elapsed (ms)": noisy(20, 12.0)}))
    row = next(line for line in out.splitlines() if line.lstrip().startswith("elapsed"))
    values = noisy(20, 12.0)
    assert re.search(r"elapsed +20 +20 +1[12]\.\d+ ms", row)
    assert f"{100 * np.std(values, ddof=1) / np.mean(values):.2f} %" in row
    golden(out)


def test_digits_are_those_that_the_interval_leaves(stats: Stats) -> None:
    wide = stats(table("w.csv", {"elapsed": noisy(10, 1.0, 0.3)}), "--no-warn", "not-normal")
    narrow = stats(table("n.csv", {"elapsed": noisy(10, 1.0, 0.0003)}))
    mean = r"elapsed +10 +\d+ +([\d.]+) (?:s|ms)"
    assert [len(re.sub(r"\D", "", re.search(mean, text)[1]).lstrip("0")) for text in (wide, narrow)] == [3, 6]  # type: ignore[index]


def test_percentiles_trimmed_mean_and_error_bars_are_there_on_request(stats: Stats, golden: Golden) -> None:
    file = table("t.csv", {"elapsed": noisy(40)})
    out = stats(file, "--percentiles", "p50,p90,p99.9", "--trim", "10%", "--error-bars", "min-max")
    assert re.search(r"elapsed, p50 .* \(95 %: ", out)
    assert re.search(r"elapsed, p90 .* \(95 %: ", out)
    assert re.search(r"elapsed, p99.9 .*: –: .* 1000 ", out)
    assert re.search(r"elapsed: .* 4 of 40 .* \(95 %: ", out)
    assert "min … max" in out
    golden(out)


def test_a_mean_that_does_not_fit_is_refused_with_the_reason(stats: Stats, golden: Golden) -> None:
    file = table("t.csv", {"speed (MB/s)": noisy(10, 50.0)})
    assert re.search(r"speed +10 .* \(h\)", stats(file)), "the harmonic mean of a rate, and marked as such"
    stats(file, "--mean", "harmonic")
    err = stats(file, "--mean", "arithmetic", code=2)
    assert err.startswith("etude: --mean arithmetic: speed")
    golden(err)


def test_two_tests_of_a_foreign_file_are_compared_as_unpaired(stats: Stats, golden: Golden) -> None:
    rows = {"test": ["a"] * 12 + ["b"] * 12, "elapsed": noisy(12) + noisy(12, 1.3, seed=2)}
    words = [table("t.csv", rows), "--same-within", "2%"]
    (found,) = json.loads(stats(*words, "--json"))["comparisons"]
    ratio = found["ratio"]
    assert (found["base"], found["other"], found["differs"]) == ("a", "b", True)
    assert (ratio["method"], ratio["count"]) == ("unpaired", 12)
    assert 1.27 < ratio["low"] < 1.3 < ratio["high"] < 1.33
    assert ratio["p"] < 1e-4
    assert ratio["smallest_found"] == pytest.approx(0.011, abs=0.001)
    assert 0.27 < found["difference"]["low"] < found["difference"]["high"] < 0.33
    assert found["shift"]["method"] == "Mann-Whitney"
    assert (found["equivalence"]["verdict"], found["equivalence"]["margin"]) == ("different", 0.02)
    golden(stats(*words))


def test_what_cannot_be_told_apart_is_called_not_distinguishable(stats: Stats, golden: Golden) -> None:
    rows = {"test": ["a"] * 12 + ["b"] * 12, "elapsed": noisy(12) + noisy(12, 1.0, seed=2)}
    (found,) = json.loads(stats(table("t.csv", rows), "--json"))["comparisons"]
    assert not found["differs"]
    assert found["ratio"]["low"] < 1 < found["ratio"]["high"]
    assert found["ratio"]["p"] > 0.05
    out = stats("t.csv", "--test", "student", "--test", "by-variance", "--test", "permutation")
    assert out.count("  Student's t") == 2
    assert "F test" in out
    assert "  Permutation " in out
    golden(out)


def test_further_tests_say_that_they_take_dependent_trials_for_independent(stats: Stats) -> None:
    slow = [1.0 + 0.001 * math.sin(n / 5) for n in range(60)]
    of = {"independent": [*noisy(30), *noisy(30, seed=2)], "dependent": slow}
    said = {}
    for name, elapsed in of.items():
        file = table(f"{name}.csv", {"test": ["a"] * 30 + ["b"] * 30, "elapsed": elapsed})
        said[name] = flat(stats(file, "--test", "student", "--test", "bootstrap")).count("as if independent")
    assert said == {"independent": 0, "dependent": 2}


def test_further_tests_of_several_comparisons_count_them_all(stats: Stats) -> None:
    rows = {"test": ["a"] * 12 + ["b"] * 12 + ["c"] * 12}
    rows["elapsed"] = [*noisy(12), *noisy(12, 1.008, seed=2), *noisy(12, 1.0, seed=3)]
    alone = table("alone.csv", {name: values[:24] for name, values in rows.items()})
    words = ("--reference", "a", *(f"--test={name}" for name in ("student", "permutation", "bootstrap")))
    one, both = (stats(file, *words) for file in (alone, table("both.csv", rows)))
    p = [
        float(flat(out).split("Permutation")[1].split("p = ")[1].split()[0].rstrip(",."))
        for out in (one, both)
    ]
    assert p[1] == pytest.approx(2 * p[0], rel=0.1)
    ends = [
        [
            float(end)
            for end in re.findall(r"95 %[^:]*: ([\d.]+)–([\d.]+)", flat(out).split("Bootstrap")[1])[0]
        ]
        for out in (one, both)
    ]
    assert ends[1][1] - ends[1][0] > ends[0][1] - ends[0][0]


@pytest.mark.parametrize("option", ["--same-within=2%", "--test=student"])
def test_an_option_that_nothing_answers_is_named(stats: Stats, option: str, capsys: Captured) -> None:
    alone = table("t.csv", {"test": ["a"] * 12, "elapsed": noisy(12)})
    assert "Note: --" in stats(alone, option)
    capsys.readouterr()
    json.loads(stats(alone, option, "--json"))
    compared = table("u.csv", {"test": ["a"] * 12 + ["b"] * 12, "elapsed": noisy(24)})
    assert "Note: --" not in stats(compared, option, "--reference", "a")
    old, new = script("old", a=1.0), script("new", a=1.1)
    across = flat(stats(old, new, option, "--between-sessions", "3%"))
    assert f"Note: {option.partition('=')[0]}: " in across


def test_of_several_later_results_each_sentence_names_its_own(stats: Stats) -> None:
    results = [script(name, a=level) for name, level in (("old", 1.0), ("new", 1.1), ("newer", 1.3))]
    out = flat(stats(*results, "--between-sessions", "3%"))
    assert "new: a " in out
    assert "newer: a takes" in out
    assert "new: a takes" not in flat(stats(*results[:2], "--between-sessions", "3%"))


def test_tests_in_turn_are_compared_when_a_reference_is_named_and_p_is_adjusted(
    stats: Stats, golden: Golden
) -> None:
    directory = script("r", a=1.0, b=1.1, c=1.2)
    assert "takes" not in stats(directory)
    found = json.loads(stats(directory, "--reference", "a", "--json"))["comparisons"]
    assert [(each["base"], each["other"]) for each in found] == [("a", "b"), ("a", "c")]
    assert [each["ratio"]["ratio"] for each in found] == pytest.approx([1.1, 1.2])
    assert all(each["adjusted_p"] < 1e-4 for each in found)
    out = stats(directory, "--reference", "a")
    assert out.count("Bonferroni") == 2
    err = stats(directory, "--reference", "nosuch", code=2)
    assert "test 'nosuch'" in err
    assert "a, b, c" in err
    golden(out + err)


def test_files_are_compared_only_as_far_as_sittings_are_known(stats: Stats, golden: Golden) -> None:
    files = [table(f"{n}.csv", {"elapsed": noisy(10, level, seed=n)}) for n, level in ((1, 1.0), (2, 1.5))]
    lines = stats(*files).splitlines()
    assert "refused" in lines[0]
    (refused,) = (line for line in lines if "is not compared" in line)
    assert refused.startswith("2 (2.csv) is not ")
    assert "--between-sessions" in refused
    lines = stats(*files, "--between-sessions", "3%").splitlines()
    (told,) = (line for line in lines if " takes " in line)
    assert re.match(r"2 takes 1\.\d+ × .*\(95 %: ", told)
    assert "3.0 %" in told
    bound = "elapsed > baseline * 1.1"
    answer = stats(*files, "--between-sessions", "3%", "--fail-if", bound, code=1).splitlines()[-1]
    assert answer.startswith(f"{bound}? ")
    assert ": yes: " in answer
    err = stats(*files, "--fail-if", bound, code=2)
    assert f"--fail-if '{bound}': " in err
    golden("\n".join([refused, told, answer, err]))


def test_a_bound_that_the_interval_holds_passes_or_fails_as_told(stats: Stats) -> None:
    file = table("1.csv", {"elapsed": noisy(10)})
    bound = (file, "--fail-if", "elapsed < 1")
    assert len([line for line in stats(*bound).splitlines() if "undecided" in line]) == 2
    stats(*bound, "--undecided", "fail", code=8)
    stats(*bound, "--fail-if", "elapsed > 0.1", "--undecided", "fail", code=1)
    stats(*bound, "--predicate", "$count > 100", "--undecided", "fail", code=1)


def test_a_bound_on_too_few_trials_of_a_table_is_undecided(stats: Stats) -> None:
    file = table("few.csv", {"elapsed": noisy(7)})
    bound = (file, "--fail-if", "elapsed > 10")
    assert "7 trials" in stats(*bound, code=0)
    stats(*bound, "--undecided", "fail", code=8)


def test_several_sittings_widen_the_interval_of_a_mean(stats: Stats) -> None:
    rows: list[Measurement] = []
    for sitting, level in ((1, 1.0), (2, 1.2), (3, 0.9)):
        rows += [
            measurement(trial=10 * sitting + n, elapsed_s=x, sitting=sitting, boot_id=f"boot{sitting}")
            for n, x in enumerate(noisy(10, level))
        ]
    directory = results_directory(Path("r"), {"a": rows}, plan={"kind": "script", "primary": "elapsed"})
    assert "over 3 boots" in stats(directory)
    document = json.loads(stats(directory, "--json"))
    metric = document["tests"][0]["metrics"]["elapsed"]
    assert (metric["levels"]["over"], metric["levels"]["groups"]) == ("boot", 3)
    assert metric["high"] - metric["low"] > 0.5, "three boots know little"


def test_a_predicate_is_answered_by_the_exit_code(stats: Stats) -> None:
    file = table("t.csv", {"elapsed": noisy(10), "user": noisy(10, 1.0, 0.5)})
    stats(file, "--predicate", "$delta < 0.05 * $mean", code=1)
    stats(file, "--predicate", "$delta < 0.05 * $mean", "--metric", "elapsed")
    assert "--predicate, column" in stats(file, "--predicate", "$delta <", code=2)
    assert "metric 'nosuch': " in stats(file, "--metric", "nosuch", code=2)


def test_json_is_strict_and_says_all(stats: Stats) -> None:
    rows = {
        "test": ["a"] * 12 + ["b"] * 12,
        "elapsed": noisy(12) + noisy(12, 1.3, seed=2),
        "hits (%)": noisy(24),
    }

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads(stats(table("t.csv", rows), "--json"), parse_constant=refuse)
    (c,) = document["comparisons"]
    assert c["ratio"]["method"] == "unpaired"
    assert c["ratio"]["p"] < 1e-6
    assert c["shift"]["low"] < c["shift"]["shift"] < c["shift"]["high"]
    assert [s["metric"] for s in c["secondary"]] == ["hits"]
    assert document["tests"][0]["metrics"]["hits"]["which"] == "arithmetic"


def test_several_files_are_one_json_value_in_which_the_last_has_what_was_compared(stats: Stats) -> None:
    files = [table(f"{name}.csv", {"test": ["a"] * 9, "elapsed": noisy(9)}) for name in "xyz"]
    found = json.loads(stats(*files, "--json", "--between-sessions", "3%"))
    assert [document["results"] for document in found] == files
    assert [len(document["across"]) for document in found] == [0, 0, 2]


def test_many_tests_have_a_line_each(stats: Stats) -> None:
    rows = {"test": [f"t{n % 12}" for n in range(120)], "elapsed": noisy(120)}
    out = stats(table("t.csv", rows))
    assert len(re.findall(r"^ t\d+ +10 ", out, re.MULTILINE)) == 12
    assert out.count("n_eff") == 1
    assert stats("t.csv", "--all").count("n_eff") == 12


def test_a_warning_can_be_moved_and_left_out(stats: Stats) -> None:
    file = table("t.csv", {"elapsed": [*noisy(30), 3.0]})
    assert "outlier" in stats(file)
    assert "outlier" not in stats(file, "--no-warn", "outliers")
    assert "--no-warn nosuch: " in stats(file, "--no-warn", "nosuch", code=2)
    assert "nosuch" in stats(file, "--threshold", "nosuch=3", code=2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\x00\x01\xff\xfe" * 50, ""),
        (b"elapsed,user\n", ""),
        (b'{"results": [{"command": "x"', ""),
        (b"[measurement]\nthread = 1\n", ""),
        (b"just words\nand more\n", ""),
    ],
)
def test_what_cannot_be_read_is_one_line(content: bytes, says: str, stats: Stats) -> None:
    Path("bad").write_bytes(content)
    err = stats("bad", code=3)
    assert err.startswith("etude: bad")
    assert len(err.splitlines()) == 1
    assert says in err


def kinds(text: str) -> list[str]:
    """Of the warnings of a verdict in JSON."""
    return [finding["kind"] for finding in json.loads(text)["findings"]]


def test_one_trial_equal_values_and_what_is_no_number(stats: Stats) -> None:
    assert re.search(r"elapsed +1 +1 +2\.000 s +– ", stats(table("one.csv", {"elapsed": [2.0]})))
    assert "all-equal" in kinds(stats(table("same.csv", {"elapsed": [2.0] * 10}), "--json"))
    assert re.search(r"elapsed +3 ", stats(table("nan.csv", {"elapsed": [1.0, "nan", "inf", 2.0, 3.0]})))
    assert "2 of 5 cells" in stats("nan.csv", "-v")
    assert "missing-values" in kinds(stats("nan.csv", "--json"))


def test_a_file_with_text_columns_and_other_metrics_in_another(stats: Stats, golden: Golden) -> None:
    first = table("1.csv", {"name of host": ["x"] * 5, "elapsed": noisy(5)})
    second = table("2.csv", {"speed (MB/s)": noisy(5)})
    assert "elapsed" in stats(first, "--all")
    (metrics,) = (line for line in stats(first, second).splitlines() if line.startswith("Not compared"))
    assert metrics.startswith("Not compared: 2.csv: ")
    assert {"elapsed;", "speed"} <= set(metrics.split())
    third = table("3.csv", {"test": ["x", "y"], "elapsed": [1.0, 2.0]})
    (names,) = (line for line in stats(first, third).splitlines() if line.startswith("Not compared"))
    assert names.startswith("Not compared: 1.csv: ")
    assert "(1)" in names
    assert "(x, y)" in names
    golden(f"{metrics}\n{names}")


def test_a_very_wide_file_is_refused(stats: Stats) -> None:
    Path("wide.csv").write_text(
        ",".join(f"c{n}" for n in range(200_000)) + "\n" + ",".join("1" * 200_000) + "\n"
    )
    assert stats("wide.csv", code=3).count("\n") == 1


def test_summaries_only_have_the_interval_that_can_be_computed(stats: Stats) -> None:
    benchmark = {
        "name": "b",
        "fullname": "b",
        "stats": {
            "rounds": 10,
            "mean": 1.0,
            "stddev": 0.1,
            "median": 1.0,
            "min": 0.9,
            "max": 1.2,
            "q1": 0.95,
            "q3": 1.05,
        },
    }
    Path("p.json").write_text(
        json.dumps(
            {
                "machine_info": {},
                "commit_info": {},
                "benchmarks": [benchmark],
                "version": "4.0.0",
                "datetime": "",
            }
        )
    )
    out = stats("p.json")
    assert "Only summaries" in out
    half = 2.262157 * 0.1 / math.sqrt(10)
    assert f"{1 - half:.4f} s … {1 + half:.3f} s" in out


def test_results_of_another_etude_are_refused(stats: Stats) -> None:
    script("r", a=1.0)
    document = json.loads(Path("r/experiment.json").read_text()) | {"version": 99}
    Path("r/experiment.json").write_text(json.dumps(document))
    assert "use a newer Étude" in stats("r", code=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12), st.booleans())
@example([3.485118425750166e260, 3.485118425750166e260, 3.4851184257489775e260, 2.2e-16, 2.2e-16], True)
def test_any_numbers_have_statistics(stats: Stats, values: list[float], two: bool) -> None:
    columns: dict[str, Sequence[object]] = {"elapsed": values}
    if two:
        columns = {"test": ["a", "b"] * len(values), "elapsed": [v for v in values for _ in "ab"]}
    stats(table("t.csv", columns), "--percentiles", "--trim", "20%")


def test_rows_that_use_a_trials_number_again_are_trials_of_their_own(stats: Stats) -> None:
    columns = {"test": ["a"] * 8, "trial": [1, 2, 3, 4] * 2, "elapsed": [1.0, 1.01, 0.99, 1.02] * 2}
    out = stats(table("t.csv", columns))
    assert re.search(r"elapsed +8 +\d+ +1\.0", out), "summed up they would be four of two seconds"
    flats = flat(stats(table("s.csv", {"test": ["a"] * 8, "sitting": [1] * 4 + [2] * 4, **columns})))
    assert re.search(r"elapsed 8 ", flats)
    assert "over 2 sessions" in flats


def test_a_transform_that_changes_nothing_changes_no_statistics(stats: Stats) -> None:
    rows = {
        name: [
            measurement(name, trial=n, elapsed_s=x, kept=n > 0, why=None if n else "first run")
            for n, x in enumerate(noisy(13, level, seed=9))
        ]
        for name, level in (("a", 1.0), ("b", 1.1))
    }
    tests = [{"name": n, "directory": n, "role": "test", "parameters": {}, "group": 1} for n in rows]
    results_directory(Path("r"), rows, plan={"kind": "script", "primary": "elapsed"}, tests=tests)
    plain = stats("r").replace("measured over 1.1 s; ", "")
    plain = plain.replace("; measured within 1.1 s", "")  # a table has no times of starts
    assert "12 pairs" in plain
    transformed = stats("r", "--echo", "here").replace("here\n", "", 1)
    assert [line for line in transformed.splitlines() if not line.startswith("Note: ")] == plain.splitlines()
    mean = float(np.mean(noisy(13, 1.0, seed=9)[1:]))
    aggregated = stats("r", "--aggregate", "test:elapsed=mean")
    assert f"{1000 * mean:.1f} ms" in aggregated or f"{mean:.3f} s" in aggregated, (
        "what is excluded is in no figure"
    )


def test_names_that_are_no_utf_8_stay_apart(stats: Stats) -> None:
    lines = [b"test,elapsed"] + [b"gr\xf6,1"] * 3 + [b"gr\xe4,2"] * 3
    Path("latin.csv").write_bytes(b"\n".join(lines) + b"\n")
    out = stats("latin.csv")
    assert "gr\\xf6: 3 trials" in out
    assert "gr\\xe4: 3 trials" in out


def test_the_mean_in_a_sentence_is_the_one_that_fits(stats: Stats) -> None:
    rows = {"test": ["a"] * 3 + ["b"] * 3, "speed (MB/s)": [10.0, 40.0, 16.0, 20.0, 21.0, 22.0]}
    assert "15.26 MiB/s (harmonic mean)" in stats(table("t.csv", rows))
    (found,) = json.loads(stats("t.csv", "--json"))["comparisons"]
    assert found["which"] == "harmonic"
    assert found["difference"] is None, "rates do not add up"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--trim", "50%"], "--trim: 50%: "),
        (["--trim", "10"], "--trim: 10 "),
        (["--between-sessions", "-1"], "--between-sessions: '-1': "),
        (["--same-within", "0"], "--same-within: '0': "),
        (["--metric", "nope"], "metric 'nope': "),
    ],
)
def test_shares_that_cannot_be_meant(words: list[str], says: str, stats: Stats) -> None:
    assert says in stats(table("t.csv", {"elapsed": noisy(5)}), *words, code=2)


def test_many_values_are_permuted_in_parts(stats: Stats) -> None:
    rows = {"test": ["a"] * 3000 + ["b"] * 3000, "elapsed": noisy(6000)}
    assert "Permutation of studentised" in stats(table("t.csv", rows), "--test", "permutation")


@pytest.mark.parametrize(
    ("member", "code"),
    [
        ({"machine": [1]}, 3),
        ({"machine": {"before": "x"}}, 3),
        ({"sittings": [{"sitting": 1, "torn": 5}]}, 3),
        ({"sittings": [{"sitting": 1, "machine": []}]}, 3),
        ({"machine": {"before": {"memory": "x"}}}, 3),
        ({"machine": {"before": {"directory": {"mount_point": [1]}}}}, 3),
        ({"machine": {"before": {"cpu": {"caches": [{}, 1]}}}}, 0),
    ],
)
def test_an_edited_machine_is_refused_or_harmless(member: dict[str, Any], code: int, world: World) -> None:
    assert main(["bench", "-o", "r", "-r", "6", "a"]) == 0
    experiment = Path("r/experiment.json")
    experiment.write_text(json.dumps(json.loads(experiment.read_text()) | member))
    assert main(["stats", "r"]) == code
    assert main(["report", "r", "-o", "page.html"]) == code


def test_the_old_name_of_an_option_is_taken_with_a_note(capsys: Captured) -> None:
    path = table("a.csv", {"test": ["a"] * 3, "elapsed (s)": [1.0, 1.1, 1.2]})
    told = []
    for option in ("--between-sessions", "--between-sittings"):
        assert main(["stats", "--json", option, "3%", path]) == 0
        told.append(capsys.readouterr())
    assert told[0].out == told[1].out
    assert (told[0].err, "--between-sessions" in told[1].err) == ("", True)
