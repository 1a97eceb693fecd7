"""The page of causes: contributions lead from one time to the other, functions have the times of both tests."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.figures.data import Bars
from etude.present.flame_graph import flame_graph, folded
from etude.present.sections.why_page import waterfall, why_page
from etude.units.formatting import quantity
from etude.why.causes import Frame
from etude.why.contributions import count_differences, difference, split
from etude.why.stacks import MeanStack, mean_stacks
from support.made_why import HOSTILE, PAIRS, made

NAMES = st.text(max_size=5) | st.sampled_from(HOSTILE)
TITLE = re.compile(r"<title>([^<]*) \(A ([^<]*), B ([^<]*), ([^<]*)\)</title>")


def titles(stacks: list[MeanStack]) -> list[tuple[str, str, str]]:
    found = TITLE.findall(flame_graph(stacks).svg)
    return [(unescape(name), a, b) for name, a, b, _ in found]


def test_contributions_lead_from_the_first_time_to_the_second() -> None:
    found = made()
    divided = split(*found.runs)
    (panel,) = waterfall(found, divided).panels
    boxes = sorted(
        (b for layer in panel.layers if isinstance(layer, Bars) for b in layer.boxes), key=lambda b: b.x
    )
    first, *steps, last = boxes
    assert len(divided.left_out) < PAIRS / 4
    means = [
        1e3 * fmean(run.elapsed_s for n, run in enumerate(side) if n not in divided.left_out)
        for side in found.runs
    ]
    assert (first.top, last.top) == pytest.approx(means)
    at = first.top
    for box in steps:
        assert box.bottom == pytest.approx(at)
        assert (box.low or 0.0) <= box.top <= (box.high or 0.0)
        at = box.top
    assert at == pytest.approx(last.top)
    assert len(steps) == len(divided.listed) + 1


def test_a_function_has_the_times_of_all_that_it_calls() -> None:
    a, b, c = (Frame(name, "/bin/p") for name in ("main", "f", "f(int)"))
    stacks = [
        MeanStack("p", (a, b), (0.010, 0.0)),
        MeanStack("p", (a, b, a), (0.0, 0.030)),
        MeanStack("p", (a, c), (0.005, 0.005)),
    ]
    assert sorted(titles(stacks)) == sorted(
        (name, quantity(x, "s"), quantity(y, "s"))
        for name, x, y in [
            ("all", 0.015, 0.035),
            ("p", 0.015, 0.035),
            ("main", 0.015, 0.035),
            ("f", 0.010, 0.030),
            ("main", 0.0, 0.030),
            ("f(int)", 0.005, 0.005),
        ]
    )


def test_a_stack_that_one_test_lacks_is_drawn() -> None:
    stacks = [
        MeanStack("p", (Frame(name, ""),), times) for name, times in (("f", (0.2, 0.0)), ("g", (0.0, 0.1)))
    ]
    assert {name for name, *_ in titles(stacks)} == {"all", "p", "f", "g"}


@settings(max_examples=30)
@given(
    st.lists(
        st.builds(
            MeanStack,
            st.text(max_size=4),
            st.lists(
                st.builds(Frame, st.text(max_size=5) | st.sampled_from(HOSTILE), st.just("")), max_size=4
            ).map(tuple),
            st.tuples(st.floats(0.001, 9), st.floats(0, 9)),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_names_are_drawn_with_the_whole_time(stacks: list[MeanStack]) -> None:
    sums = [quantity(sum(round(s.times_s[side] * 1e9) for s in stacks) * 1e-9, "s") for side in range(2)]
    assert ("all", *sums) in titles(stacks)


def test_names_cannot_leave_the_page() -> None:
    found = made()
    counts = count_differences(*found.calls)
    text = why_page(found, difference(*found.plain_s), split(*found.runs), counts)
    assert len(re.findall("<script", text)) == len(re.findall("</script", text)) == 2
    assert "<img src=x" not in text
    names = {unescape(name) for name, *_ in TITLE.findall(text)}
    assert {folded(s)[-1] for s in mean_stacks(*([r.stacks for r in side] for side in found.runs))} <= names


def test_without_stacks_and_without_a_timeline_there_is_a_page_still() -> None:
    found = made(stacks=False)
    text = why_page(found, difference(*found.plain_s), split(*found.runs), [])
    assert 'class="flame"' not in text
    assert 'id="flame-graph"' in text
    assert 'id="table-all-calls"' in text
    assert 'id="table-processes"' in text
    other = replace(found, lacking=("no program perf",))
    text = why_page(other, difference(*found.plain_s), split(*found.runs), [])
    assert 'id="table-processes"' not in text
    assert text.count("no program perf") == 2
    assert 'id="causes"' not in why_page(other, difference(*found.plain_s), None, [])
