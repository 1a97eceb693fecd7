"""JUnit XML: a suite a run, a case a test with its metrics as properties; a comparison that says worse is a failure."""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from etude.export.document import Document, Exported, Point, Run, by_test

_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(document: Document) -> Exported:
    """`time` of a case is the mean of elapsed, s; a comparison is worse where its whole interval says so."""
    root = xml.Element("testsuites", name="etude")
    for run in document.runs:
        groups = [group for group in by_test(document.points) if group[0].run == run]
        _suite(root, run, groups)
    if document.compared:
        _comparisons(root, document)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    xml.indent(root, " ")
    body = xml.tostring(root, encoding="unicode")
    return Exported(f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n')


def _suite(root: xml.Element, run: Run, groups: list[tuple[Point, ...]]) -> None:
    suite = xml.SubElement(root, "testsuite", name=_text(run.source), tests=str(len(groups)), failures="0")
    lost = [group for group in groups if not any(point.figures for point in group)]
    suite.set("errors", str(len(lost)))
    suite.set("skipped", "0")
    suite.set("time", repr(sum(_seconds(group) for group in groups)))
    if run.measured:
        suite.set("timestamp", run.measured.strftime("%Y-%m-%dT%H:%M:%S"))
    if run.machine:
        suite.set("hostname", _text(run.machine.name))
    facts = {"commit": run.commit, "branch": run.branch, "tags": ",".join(run.tags)} | dict(
        run.machine.facts if run.machine else ()
    )
    _properties(suite, {name: text for name, text in facts.items() if text})
    for group in groups:
        case = xml.SubElement(
            suite,
            "testcase",
            name=_text(group[0].test),
            classname=_text(run.source),
            time=repr(_seconds(group)),
        )
        _properties(case, _metrics(group))
        if group in lost:
            reason = _text(group[0].reason or "no included trial has a value")
            xml.SubElement(case, "error", message=reason, type="no included trial").text = reason


def _comparisons(root: xml.Element, document: Document) -> None:
    worse = sum(c.worse is True for c in document.compared)
    suite = xml.SubElement(root, "testsuite", name="comparisons", tests=str(len(document.compared)))
    suite.set("failures", str(worse))
    suite.set("errors", "0")
    suite.set("skipped", "0")
    suite.set("time", "0")
    for c in document.compared:
        name = _text(f"{c.other} against {c.base}: {c.metric}")
        case = xml.SubElement(suite, "testcase", name=name, classname="comparisons", time="0")
        ratio = {"ratio": c.ratio, "low": c.low, "high": c.high}
        _properties(case, {member: repr(value) for member, value in ratio.items()})
        said = _text("\n".join(c.sentences))
        if c.worse:
            message = f"worse: ratio {c.ratio:.4g}, {c.low:.4g} to {c.high:.4g}"
            xml.SubElement(case, "failure", message=message, type="worse").text = said
        else:
            xml.SubElement(case, "system-out").text = said


def _properties(above: xml.Element, values: dict[str, str]) -> None:
    if values:
        inner = xml.SubElement(above, "properties")
        for name, value in values.items():
            xml.SubElement(inner, "property", name=_text(name), value=_text(value))


def _metrics(group: tuple[Point, ...]) -> dict[str, str]:
    found = {f"parameter.{name}": value for name, value in group[0].parameters}
    for point in group:
        if point.figures is None:
            continue
        found[f"{point.metric}.unit"] = point.unit
        members = {"mean": point.figures.mean, "low": point.figures.low, "high": point.figures.high}
        members |= {"median": point.figures.median, "count": point.figures.count}
        found |= {
            f"{point.metric}.{name}": repr(value) for name, value in members.items() if value is not None
        }
    return found


def _seconds(group: tuple[Point, ...]) -> float:
    figures = next((p.figures for p in group if p.metric == "elapsed" and p.unit == "s"), None)
    return max(figures.mean, 0.0) if figures is not None and figures.mean is not None else 0.0


def _text(text: str) -> str:
    """XML has no way to write some control characters, nor halves of pairs: U+FFFD stands for them."""
    return _NO_CHARACTER.sub("\ufffd", text)
