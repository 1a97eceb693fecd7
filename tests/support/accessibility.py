"""Accessibility of a page that is open in Chromium: the findings of axe-core, the keyboard, motion, contrast."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from support.chromium import Page
from support.places import ROOT

REQUIREMENT = ROOT / "packaging" / "axe.txt"
PLACE = ROOT / "build" / "axe"
NARROW = 360
"""Width of a small telephone, pixels."""


@cache
def axe() -> str:
    """The script of axe-core, installed once from packaging/axe.txt; the test is skipped where it cannot be had."""
    PLACE.mkdir(parents=True, exist_ok=True)
    done = PLACE / "axe.txt"
    with (PLACE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # of several processes of tests one installs
        if not done.exists() or done.read_bytes() != REQUIREMENT.read_bytes():
            pip = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--upgrade",
                "--no-deps",
                "--no-compile",
            ]
            command = [*pip, "--require-hashes", "--target", PLACE, "-r", REQUIREMENT]
            installed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            if installed.returncode:
                pytest.skip(f"axe-core cannot be had: {installed.stderr.strip()[-300:]}")
            done.write_bytes(REQUIREMENT.read_bytes())
    (script,) = PLACE.glob("*/axe.min.js")
    return script.read_text(encoding="utf-8")


def findings(page: Page) -> list[tuple[str, str, str]]:
    """Impact, rule and element of each fault that axe-core finds, of all its rules and best practices."""
    page.ask(f"{axe()};0")
    found: list[dict[str, Any]] = page.ask(
        "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.flatMap(({id, nodes}) =>"
        " nodes.map(({impact, target, any, all, none}) => ({id, impact, target: `${target.flat().join(' ')}: ` +"
        " [...any, ...all, ...none].map(({message}) => message).join('; ')}))))"
    )
    return [(each["impact"], each["id"], each["target"]) for each in found]


@dataclass(frozen=True)
class Stop:
    """Where Tab stops."""

    place: int
    """Its number among the page's controls, in the order of the page; -1 for something else."""
    element: str
    """The beginning of its HTML."""
    name: str
    ringed: bool
    """It, or its label, has an outline."""
    seen: bool
    """It, or its label, is in view, and nothing covers its middle."""


CONTROLS = """
(() => {
  const shown = (element) => element.checkVisibility({visibilityProperty: true});
  const all = document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']");
  return [...all].filter(shown).map((element, place) => {
    const found = element.cloneNode().outerHTML;
    element.dataset.control = place;
    return found;
  });
})()
"""
"""Numbers what can be used, and what scrolls, as it is shown before the page is scrolled."""
AT = """
(() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  if (!at || at === document.body || at === document.documentElement) return null;
  const labels = [...at.labels ?? []];
  const seen = (element) => {
    const [box] = [...element.getClientRects()].sort((a, b) => b.width * b.height - a.width * a.height);
    if (!box) return false;
    const x = (Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2;
    const y = (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2;
    const top = element.getRootNode().elementFromPoint(x, y);
    return Boolean(top && (element.contains(top) || top.contains(element)));
  };
  const ringed = (element) => {
    const {outlineStyle, outlineWidth} = getComputedStyle(element);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
  };
  const others = (at.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id));
  const texts = [...others, ...labels, at].map((element) => element?.textContent ?? "");
  const name = [at.ariaLabel, ...texts, at.title].find((text) => text?.trim()) ?? "";
  return {
    place: Number(at.dataset.control ?? -1),
    element: at.outerHTML.slice(0, 200),
    name: name.trim(),
    ringed: [at, ...labels].some(ringed),
    seen: [at, ...labels].some(seen),
  };
})()
"""
MOVING = """
[...document.querySelectorAll("*")].filter((element) => {
  const {transitionDuration, animationName, scrollBehavior} = getComputedStyle(element);
  return transitionDuration.split(", ").some((each) => parseFloat(each) > 0) || animationName !== "none"
    || scrollBehavior === "smooth";
}).map((element) => element.cloneNode().outerHTML)
"""
"""Elements that move, or are scrolled to slowly."""


def stops(page: Page, most: int = 2000) -> list[Stop]:
    """Where Tab stops, from the page's beginning until the focus leaves it; AssertionError if it never does."""
    found: list[Stop] = []
    while len(found) < most:
        page.key("Tab")
        at = page.ask(AT)
        if at is None:
            return found
        found.append(Stop(**at))
    raise AssertionError(f"after {most} stops the focus is still in the page: {found[-3:]}")


def check_keyboard(page: Page) -> None:
    """Every control is reached by Tab, in the order of the page, and is named, seen and ringed."""
    controls = page.ask(CONTROLS)
    reached = stops(page)
    places = {stop.place for stop in reached}
    assert [each for place, each in enumerate(controls) if place not in places] == []
    assert [stop for stop in reached if stop.place < 0] == []
    assert [stop.place for stop in reached] == list(range(len(controls)))
    assert [stop for stop in reached if not (stop.name and stop.ringed and stop.seen)] == []


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2 between two colours, such as `#0072b2`."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
