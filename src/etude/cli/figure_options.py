"""Values of options that `etude plot` and `graphit` share."""

from __future__ import annotations

import argparse
import math
import re

PLACES = ("top", "bottom", "center", "left", "right")


def key_place(text: str) -> str:
    """`top right`, `right top`, `outside`, `off` …, as Gnuplot's key is placed."""
    words = ["center" if word == "centre" else word for word in text.lower().split()]
    if words in (["best"], ["off"], ["outside"], ["above"], ["below"]):
        return words[0]
    if not 1 <= len(words) <= 2 or not set(words) <= set(PLACES):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no place of a key; expected such as 'top right', 'bottom left', outside or off"
        )
    vertical = next((word for word in words if word in ("top", "bottom")), "center")
    horizontal = next((word for word in words if word in ("left", "right")), None)
    if horizontal is None:
        horizontal = "center" if words.count("center") else "right"
    return f"{vertical} {horizontal}"


def number(text: str) -> float:
    """Any finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def font_size(text: str) -> float:
    """Points from 3 to 72."""
    value = number(text.removesuffix("pt"))
    if not 3 <= value <= 72:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 3 to 72 points")
    return value


def picture_size(text: str) -> tuple[float, float]:
    """`5x3.5`: inches."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)", text)
    size = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
    if not all(1 <= side <= 40 for side in size):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected width and height in inches, 1 to 40, such as 3.3x2.4"
        )
    return size
