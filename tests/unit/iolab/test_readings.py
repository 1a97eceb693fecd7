"""What a sweep says is what the formulas of its machine say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import etude
from etude.iolab.comparisons import p_over_sizes
from etude.iolab.costs import costs_of
from etude.iolab.lab import reading_of
from etude.iolab.points import Over, Points, Swept
from etude.present.sentences.io_buffers import OF_PAGES_READ
from etude.present.sentences.io_lab import explanation_of
from support.golden import Golden
from support.profiles import examples

CALL_S, PEAK = 100e-9, 8e9  # of the laboratory in conftest.py
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
RAW = re.compile(r"\d\.\d{5,}|\d{6,}|\d[eE][+-]?\d|\bnan\b|\binf\b|-\d")
"""A number as Python writes it, not as people do."""


def sentence(findings: tuple[str, ...], pattern: str) -> re.Match[str]:
    """The one finding that has the pattern."""
    found = [match for text in findings if (match := re.search(pattern, text))]
    assert len(found) == 1, (pattern, findings)
    return found[0]


def value(number: str, unit: str) -> float:
    return float(number.replace(",", "")) * UNITS[unit]


def size(text: str) -> float:
    return value(*text.split())


def test_the_peak_the_plateau_and_the_cost_of_a_call_are_those_of_the_machine(laboratory: Any) -> None:
    found = etude.io.explain(laboratory.sweep(buffers="64..1M", curves=["touched"], trials=5)).findings
    peak = sentence(found, r"^touched: .* at (\S+ \S+), (\S+) (\S+)/s; .* from (\S+ \S+) to")
    assert size(peak[1]) >= 128 << 10
    assert value(peak[2], peak[3]) == pytest.approx(PEAK, rel=0.05)
    assert 8 << 10 < size(peak[4]) < 64 << 10, "CALL_S is 5 % of 16 KB at PEAK"
    call = sentence(found, r"^touched: .*call costs (\S+) (\S+) .*half .* (\S+ \S+)\.$")
    assert value(call[1], call[2]) == pytest.approx(CALL_S, rel=0.1)
    assert size(call[3]) == pytest.approx(CALL_S * PEAK, rel=0.1)


def test_the_knee_is_where_the_rate_falls_and_is_named_after_the_cache_there(laboratory: Any) -> None:
    found = etude.io.explain(laboratory.sweep(buffers="64..16M", curves=["touched"], trials=5)).findings
    bends = [
        match
        for text in found
        if (match := re.search(r"touched: bends at (\S+ \S+) \(.*\); (.+) lies? there", text))
    ]
    assert len(bends) == 1, "that CALL_S * PEAK is 800 B bends no residual"
    assert bends[0][1] == "1 MiB"
    assert bends[0][2] == "L2 (1 MiB)"
    steep = sentence(found, r"\b1 MiB to 2 MiB \((\S+) times\)")
    assert float(steep[1]) == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize("name", ["untouched", "touched"])
def test_a_machine_without_a_cache_has_costs_and_no_bend(name: str) -> None:
    """Seven in ten such curves had a bend near a cache or a TLB before its costs were taken out of it."""
    noise, total, bends = np.random.default_rng(8), 16 * 2.0**20, 0
    for _ in range(15):

        def rates(size: float) -> Any:
            pages = size / 4096 if name == "untouched" else 0.0
            seconds = total / size * 400e-9 + total / (25 * 2.0**30) + np.ceil(pages) * 0.6e-6
            return total / seconds / (1.0 + 0.05 * noise.standard_normal(10))

        curve = points(name, [2.0**n for n in range(3, 25)], rates)
        found = costs_of(curve, swept(curve))
        assert found is not None
        assert found.call_s is not None
        assert found.call_s.value == pytest.approx(400e-9, rel=0.1)
        bends += bool(found.bends)
    assert bends <= 1


def test_no_page_costs_more_time_than_there_is() -> None:
    """As measured on a busy machine: a page of 1.3 ms explained the curve together with a bend that took it away."""
    rates = [
        8.7,
        19.6,
        39.6,
        55.6,
        163,
        346,
        697,
        1784,
        3877,
        4259,
        9479,
        8726,
        11854,
        10167,
        11624,
        9066,
        8374,
        5697,
    ]
    spreads = [28, 35, 48, 47, 33, 38, 56, 30, 27, 40, 26, 24, 35, 24, 30, 17, 22, 19]
    at = {2.0**n: (r * 1e6, s / 100) for n, r, s in zip(range(3, 21), rates, spreads, strict=True)}
    curve = points("untouched", list(at), lambda b: at[b][0] * (1 + at[b][1] * np.linspace(-1, 1, 5)))
    command = ["io-static", "read", "-t", "4M"]
    plan = {"tests": [{"command": command, "parameters": {"curve": "untouched"}}]}
    found = costs_of(curve, replace(swept(curve), experiment={"plan": plan}))
    assert found is not None
    assert found.call_s is not None
    assert found.call_s.value == pytest.approx(800e-9, rel=0.3)
    assert found.page_share is None or found.page_share < 1.0
    assert all(1 / bend.after < 3.0 for bend in found.bends)


def test_a_point_that_varies_is_named_with_how_much(golden: Golden) -> None:
    curve = points("touched", [2.0**n for n in range(9, 17)], lambda size: [1e9, 1.001e9, 0.999e9, 1e9])
    curve.samples[3][:] = [0.7e9, 0.8e9, 1.2e9, 1.3e9]
    found = explanation_of(reading_of(swept(curve))).findings
    assert sentence(found, r"\b4 KiB \(45 %\)")
    golden("\n".join(found))


def test_untouched_parts_from_touched_where_its_pages_cost_five_per_cent(laboratory: Any) -> None:
    results = laboratory.sweep(buffers="4K..1M", totals="4M", curves=["untouched", "touched"], trials=10)
    found = etude.io.explain(results).findings
    parting = sentence(
        found, r"^touched is (\S+) times .*\b1 MiB \(95 %: .*; .* 5 % from .* the medians from (\S+ \S+)\)"
    )
    assert float(parting[1]) == pytest.approx(1.40, abs=0.03), "0.21 ms of zeroes to 0.52 ms"
    assert 100 << 10 < size(parting[2]) < 170 << 10, "131 KB of zeroes cost 26 µs"
    page = sentence(found, r"^untouched: .* 4 KiB .* costs (\S+) (\S+) \(")
    assert value(page[1], page[2]) == pytest.approx(4096 * 0.2e-9, rel=0.1)
    assert not [text for text in found if "huge page" in text], "no curve has shown what one costs"


FRESH = r"^{}: a fresh page of \S+ \S+ of the buffer costs "
OF_16_MIB = {"plan": {"tests": [{"command": ["io", "-t", "16M"]}]}}
QUICKER = r"^{} is .* as untouched at 16 MiB \(95 %: .*\); .*more than 5 %"


@pytest.mark.parametrize(
    ("page_s", "huge_page_s", "falls", "fresh", "quicker"),
    [
        (0.6e-6, 0.1e-3, False, ["untouched", "huge"], ["touched", "huge"]),
        (0.6e-6, 1.2e-3, False, ["untouched", "huge"], ["touched"]),
        (0.0, 0.0, False, [], []),
        (0.0, 0.0, True, [], []),
        (0.0, 1.2e-3, True, ["huge"], []),
    ],
    ids=[
        "huge is quicker",
        "huge is slower",
        "pages cost nothing",
        "all fall alike",
        "all fall, huge pages cost",
    ],
)
def test_pages_are_named_as_a_cause_only_where_no_curve_contradicts(
    page_s: float, huge_page_s: float, falls: bool, fresh: list[str], quicker: list[str]
) -> None:
    """Curves that all fall slowly beyond 1 MiB, as in a cache, have a cost that grows with the buffer as pages do."""
    noise, total = np.random.default_rng(1), 16 * 2.0**20

    def curve(name: str, page_bytes: float, each_s: float) -> Points:
        def rates(size: float) -> Any:
            copied = total / PEAK * (1.0 + (1.0 / (1.0 + (2.0**21 / size) ** 1.5) if falls else 0.0))
            seconds = total / size * CALL_S + copied + np.ceil(size / page_bytes) * each_s
            return total / seconds / (1.0 + 0.02 * abs(noise.standard_normal(10)))

        return points(name, [2.0**n for n in range(6, 25)], rates)

    curves = [
        curve("untouched", 4096, page_s),
        curve("touched", 4096, 0.0),
        curve("huge", 2.0**21, huge_page_s),
    ]
    found = explanation_of(reading_of(Swept("buffer", "bandwidth", tuple(curves), None, OF_16_MIB))).findings

    def named(pattern: str) -> list[str]:
        names = ("untouched", "touched", "huge")
        return [name for name in names if any(re.search(pattern.format(name), text) for text in found)]

    assert (named(FRESH), named(QUICKER)) == (fresh, quicker)


def test_fresh_pages_alone_cannot_take_more_than_all_of_the_time() -> None:
    def rates(size: float) -> Any:
        return np.array([0.99, 1.0, 1.0, 1.01]) * PEAK / (2.0 - 1.0 / (1.0 + (size / 2.0**21) ** 1.5))

    curve = points("untouched", [2.0**n for n in range(6, 25)], rates)
    found = costs_of(curve, Swept("buffer", "bandwidth", (curve,), None, OF_16_MIB))
    assert found is not None
    assert found.page_share is None


def test_what_slows_large_buffers_is_no_cost_of_their_fresh_pages() -> None:
    """Copying is 1.5 times as slow above 1 MiB: a curve by itself gave 86 % of the time where 70 % are of pages."""
    page_s, total, sizes = 1.88e-6, 16 * 2.0**20, [2.0**n for n in range(10, 24)]
    held = alone = 0
    for seed in range(40):
        noise = np.random.default_rng(seed)

        def curve(name: str, each_s: float, noise: np.random.Generator = noise) -> Points:
            def rates(size: float) -> Any:
                copied = total / 14e9 * (1.5 if size > 2.0**20 else 1.0)
                seconds = total / size * 0.43e-6 + copied + size / 4096 * each_s
                return total / seconds / noise.lognormal(0.0, 0.1, 7)

            return points(name, sizes, rates)

        own, touched = curve("untouched", page_s), curve("touched", 0.0)
        found, by_itself = (
            costs_of(own, Swept("buffer", "bandwidth", curves, None, OF_16_MIB))
            for curves in ((own, touched), (own,))
        )
        assert found is not None
        assert found.page_s is not None
        held += found.page_s.interval.low <= page_s <= found.page_s.interval.high
        assert found.page_share == pytest.approx(0.7, abs=0.1)
        assert by_itself is not None
        wide = by_itself.page_s and by_itself.page_s.interval
        alone += wide is not None and wide.low <= page_s <= wide.high
    assert held >= 36
    assert alone <= 20, "without a touched curve the fit takes both for one"


HUGE = [
    *(
        [5, 5, 6, 7, 6],
        [11, 10, 12, 11, 10],
        [21, 22, 22, 32, 21],
        [51, 37, 53, 47, 37],
        [96, 104, 98, 152, 76],
    ),
    *([175, 189, 193, 222, 160], [417, 364, 355, 403, 412], [690, 918, 875, 824, 642]),
    *([892, 1166, 1699, 1684, 1114], [2085, 2002, 4496, 1988, 2125], [5927, 2426, 736, 5705, 2240]),
    *([6791, 2469, 1563, 6743, 2757], [2720, 2718, 2790, 7045, 2644], [3024, 10549, 11094, 10073, 8580]),
    *([9447, 2845, 11865, 10780, 9049], [1736, 1701, 1056, 9697, 11748], [10094, 2995, 2986, 11658, 1274]),
    *([2988, 4943, 9774, 9341, 1201], [3089, 2777, 10087, 11157, 2887], [2859, 694, 2794, 10531, 1811]),
    *([2773, 2475, 352, 2481, 468], [287, 186, 151, 188, 156]),
]
"""Rates of a busy machine, MB/s, by five trials, from 8 B on; calls of 64 B to 1 KiB took 1.2 to 1.4 µs each."""


def test_costs_that_take_more_than_the_time_of_a_size_are_none() -> None:
    """All sizes together gave 1.39 to 1.54 µs a call, and 1.9 to 14 ms a page, of which 8 MiB, in 6.8 ms, has four."""
    sizes = [8 * 2.0**n for n in range(len(HUGE))]
    curve = points("huge", sizes, lambda size: 1e6 * np.array(HUGE[sizes.index(size)]))
    found = costs_of(curve, Swept("buffer", "bandwidth", (curve,), None, OF_16_MIB))
    assert found is not None
    assert (found.call_s, found.page_s) == (None, None)


def test_of_a_sweep_that_writes_it_is_not_said_that_fresh_pages_are_filled(
    laboratory: Any, golden: Golden
) -> None:
    curves = ["untouched", "touched"]
    results = laboratory.sweep(buffers="4K..64K", curves=curves, trials=2, operation="write")
    found = etude.io.explain(results).findings
    assert OF_PAGES_READ in found
    golden(OF_PAGES_READ)


def test_memory_is_told_from_the_device_by_the_storage_beside_it(laboratory: Any) -> None:
    found = etude.io.explain(laboratory.sweep(buffers="64K..1M", curves=["touched"], trials=5)).findings
    told = sentence(found, r"storage gives (\S+) (\S+)/s; .* (\S+) times")
    assert value(told[1], told[2]) == pytest.approx(1e9, rel=0.03)
    assert float(told[3]) == pytest.approx(8.0, abs=0.3)
    assert "no proof" not in told.string


def test_a_storage_as_fast_as_memory_proves_nothing(golden: Golden) -> None:
    curve = points("touched", [4096, 8192], lambda size: [1.2e9, 1.3e9, 1.25e9])
    found = explanation_of(reading_of(swept(curve, storage=np.full(3, 1e9)))).findings
    assert sentence(found, r"\b1\.2 times .*\bno proof\b")
    golden("\n".join(found))


def test_static_and_dynamic_cross_five_and_one_per_cent_where_the_machine_has_it(laboratory: Any) -> None:
    found = etude.io.explain(laboratory.sweep(totals="1..128M", trials=20)).findings
    first, last = (
        sentence(found, rf"^{size}: static .* which is (\S+) times") for size in ("1 B", "128 MiB")
    )
    assert float(first[1]) == pytest.approx(1.6, abs=0.01), "0.8 ms to 0.5 ms"
    assert float(last[1]) == pytest.approx(1.004, abs=0.01)
    more = sentence(found, r"^dynamic takes (\S+) (\S+) more")
    assert value(more[1], more[2]) == pytest.approx(0.3e-3, rel=0.1)
    five = sentence(found, r"below 5 % between (\S+ \S+) and (\S+ \S+) \(.* at (\S+ \S+)\)")
    assert size(five[3]) == pytest.approx(9.7 * 2**20, rel=0.25), "0.3 ms of 6 ms"
    assert size(five[1]) <= size(five[3]) <= size(five[2])
    one = sentence(found, r"below 1 % .* at (\S+ [A-Z]iB)")
    assert 24 << 20 < size(one[1]) < 128 << 20, "0.3 ms of 30 ms, 55 MiB, if no trial varied"


def test_a_difference_that_stays_is_told_with_the_last_size(laboratory: Any, golden: Golden) -> None:
    found = etude.io.explain(laboratory.sweep(totals="1..64K", trials=3)).findings
    assert sentence(found, r"\bnot\b.* 5 % .*\b64 KiB\.$")
    base, other = (
        points(name, [2.0**20, 2.0**21, 2.0**22], lambda size, factor=factor: factor(size))
        for name, factor in (
            ("static", lambda size: [1.0, 1.01, 1.02]),
            ("dynamic", lambda size: [1.02, 1.03, 1.04] if size == 2**21 else [1.2, 1.21, 1.22]),
        )
    )
    found = explanation_of(reading_of(swept(base, other, over="total"))).findings
    assert sentence(found, r"\bnot\b.* 5 % .*\b4 MiB\.$")
    golden("\n".join(found))


def test_a_second_curve_that_is_quicker_is_read_by_how_much_the_first_is_slower(golden: Golden) -> None:
    curves = [
        points(
            name,
            [2.0**10, 2.0**15, 2.0**20],
            lambda size, plus=plus: [plus + size * 1e-6 + n * 1e-6 for n in range(5)],
        )
        for name, plus in (("dynamic", 0.010), ("static", 0.005))
    ]
    found = explanation_of(reading_of(swept(*curves, over="total"))).findings
    assert sentence(found, r"^static .* 5\.000 ms less")
    assert sentence(found, r"below 5 % .* \S+ KiB")
    golden("\n".join(found))


def test_a_difference_that_grows_is_told_as_a_range(golden: Golden) -> None:
    curves = [
        points(name, [2.0**10, 2.0**20], lambda size, factor=factor: [0.001 + size * factor] * 5)
        for name, factor in (("a", 1e-6), ("b", 2e-6))
    ]
    found = explanation_of(reading_of(swept(*curves, over="total"))).findings
    assert sentence(found, r"^b .* 1\.024 ms more .* 1\.049 s more")
    golden("\n".join(found))


def test_p_values_stand_beside_the_size_of_the_difference(laboratory: Any) -> None:
    found = etude.io.explain(laboratory.sweep(totals="1..1M", trials=12)).findings
    for which in ("the first 10 trials", "all trials"):
        told = sentence(found, rf"\b{which} .* 0\.05 .*\b21 of 21\b.*\b1 MiB\b.* by (\S+) %")
        assert float(told[1]) == pytest.approx(35, abs=3), "0.3 ms to 0.84 ms"


def test_the_first_ten_are_the_first_ten(golden: Golden) -> None:
    same, later = [1.0, 1.01] * 5, [1.0, 1.01] * 20
    curves = (
        points(name, [1024, 2048], lambda size, rest=rest: same + rest)
        for name, rest in (("static", later), ("dynamic", [1.1 * value for value in later]))
    )
    found = explanation_of(reading_of(swept(*curves, over="total"))).findings
    assert sentence(found, r"\bfirst 10 .*\b0 of 2\b")
    assert sentence(found, r"\ball .*\b2 of 2\b.*\b2 KiB\b.* 9\.\d %")
    golden("\n".join(found))


def test_ten_trials_are_tested_once(laboratory: Any) -> None:
    found = etude.io.explain(laboratory.sweep(totals="1..8", trials=10)).findings
    assert len([text for text in found if text.startswith("By ")]) == 1


def test_equal_programs_differ_at_no_size_or_few() -> None:
    noise = np.random.default_rng(3)
    curves = [
        points(name, [2.0**n for n in range(20)], lambda size: 1.0 + 0.01 * noise.standard_normal(20))
        for name in ("static", "dynamic")
    ]
    found = explanation_of(reading_of(swept(*curves, over="total"))).findings
    assert int(sentence(found, r"\ball .*\b(\d+) of 20\b")[1]) <= 3
    assert sentence(found, r"^No difference .* p = ")
    assert not [text for text in found if "below 5 %" in text or " more" in text or " less" in text]


def test_no_difference_of_equal_programs_is_shown_in_nineteen_of_twenty_sweeps() -> None:
    noise, shown = np.random.default_rng(4), 0
    sizes = np.array([2.0**n for n in range(12)])
    for _ in range(100):
        a, b = (
            points(name, list(sizes), lambda size: 1.0 + 0.01 * noise.standard_normal(10)) for name in "ab"
        )
        shown += p_over_sizes(a, b, sizes) < 0.05
    assert shown <= 7


def test_a_crossing_whose_interval_is_open_is_not_settled(golden: Golden) -> None:
    """The last size may lie on either side of 5 %: nothing says that the difference falls below it there."""
    sizes = [2.0**20, 2.0**22, 2.0**24, 2.0**26]
    base = points("static", sizes, lambda size: [1.0, 1.001] * 5)
    other = points(
        "dynamic", sizes, lambda size: [1.2, 1.21] * 5 if size < 2**25 else [1.02] * 6 + [1.08] * 4
    )
    found = explanation_of(reading_of(swept(base, other, over="total"))).findings
    assert sentence(found, r"^Where .* 5 % is undecided: .* at \S+ MiB, but [^0-9]*\.$")
    golden("\n".join(found))


def test_one_size_and_one_curve_are_read_without_a_complaint(laboratory: Any, golden: Golden) -> None:
    one = etude.io.explain(laboratory.sweep(buffers="4K", curves=["touched"], trials=2))
    assert [text.split()[0] for text in one.findings] == ["Around"]
    alone = etude.io.explain(
        laboratory.run(etude_sweep(laboratory, totals="1..4", curves=["static"]), "alone")
    )
    assert len(alone.findings) == 1
    golden(alone.findings[0])


def test_a_reading_is_text_with_its_caveats_below(laboratory: Any) -> None:
    reading = etude.io.explain(laboratory.sweep(buffers="64..4K", curves=["touched"], trials=3))
    assert str(reading).splitlines()[0] == reading.findings[0]
    assert str(reading).count("\nNote: ") == len(reading.caveats) > 2


@settings(max_examples=examples(25))
@given(data=st.data(), over=st.sampled_from(("buffer", "total")))
def test_no_sentence_has_a_number_as_python_writes_it(data: st.DataObject, over: Over) -> None:
    """Whatever was measured: also of programs that take no time, and samples that do not vary."""
    sizes = sorted(data.draw(st.sets(st.sampled_from([2.0**n for n in range(28)]), min_size=1, max_size=9)))
    some = st.floats(1e6, 1e9) if over == "buffer" else st.floats(1e-2, 10.0)
    curves = []
    for name in data.draw(st.sampled_from((("untouched", "touched", "huge"), ("static", "dynamic"), ("a",)))):
        rows = [data.draw(st.lists(some, min_size=2, max_size=6)) for _ in sizes]
        curves.append(Points(name, np.array(sizes), tuple(np.array(row) for row in rows)))
    storage = np.array(data.draw(st.lists(some, min_size=2, max_size=3))) if over == "buffer" else None
    for text in explanation_of(reading_of(swept(*curves, over=over, storage=storage))).findings:
        assert not RAW.search(text), text


def points(name: str, sizes: list[float], formula: Any) -> Points:
    return Points(name, np.array(sizes, float), tuple(np.array(formula(size), float) for size in sizes))


def swept(*curves: Points, over: Over = "buffer", storage: Any = None) -> Swept:
    return Swept(over, "bandwidth" if over == "buffer" else "elapsed", curves, storage, {})


@pytest.mark.parametrize(
    ("seen", "virtual"),
    [
        ({"hypervisor_flag": True, "product": "Standard PC"}, True),
        ({"hypervisor": "xen"}, True),
        ({"hypervisor_flag": False, "product": "Standard PC"}, False),
        (None, False),
    ],
)
@pytest.mark.parametrize("over", ["buffer", "total"])
def test_a_virtual_machine_is_named_among_the_caveats(seen: Any, virtual: bool, over: Over) -> None:
    curve = points("static", [1024, 2048], lambda size: [1.0, 1.1])
    experiment = {"machine": {"before": {"virtualisation": seen}}}
    found = explanation_of(reading_of(Swept(over, "elapsed", (curve,), None, experiment))).caveats
    named = [caveat for caveat in found if "this is a virtual machine" in caveat]
    assert len(named) == virtual
    assert not virtual or ("Standard PC" in named[0] or "xen" in named[0])


def etude_sweep(laboratory: Any, **options: Any) -> Any:
    from etude.iolab.sweeps import make_sweep

    return make_sweep(laboratory.directory, trials=2, **options)
