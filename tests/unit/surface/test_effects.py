"""Effects of surfaces that are known: exact ratios, exact ratios of ratios, and intervals that are not too narrow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from etude.present.sentences.surface import effect_text, interaction_text
from etude.surface.effects import interactions, main_effects
from support.golden import Golden
from support.made_surfaces import DISKS, FS, NFSDS, Z, power, surface


def test_effects_of_a_product_of_power_laws_are_exact_ratios() -> None:
    effects = {effect.factor: effect for effect in main_effects(surface((DISKS, NFSDS), power).filled)}
    assert [r and r.value for r in effects["disks"].ratios] == pytest.approx([1, 2**0.5, 3**0.5, 2])
    assert [r and r.value for r in effects["nfsds"].ratios] == pytest.approx([n**0.25 for n in NFSDS.levels])  # type: ignore[operator]
    assert list(effects) == ["nfsds", "disks"], "the largest first"


def test_a_product_of_power_laws_has_no_interaction(golden: Golden) -> None:
    (found,) = interactions(surface((DISKS, NFSDS), power).filled)
    assert found.ratio.value == pytest.approx(1.0)
    assert not found.ratio.differs
    golden(interaction_text(found))


def test_the_largest_interaction_is_the_ratio_of_ratios_at_its_corner() -> None:
    def response(disks: float, nfsds: float, fs: str) -> float:
        return power(disks, nfsds) * (1.8 if fs == "xfs" and disks == 4 else 1.0)

    first, *others = interactions(surface((DISKS, NFSDS, FS), response).filled)
    assert first.factors == ("disks", "fs")
    assert (first.first, first.second) == (("1", "4"), ("ext4", "xfs"))
    assert first.ratio.value == pytest.approx(1.8)
    assert first.ratio.low > 1
    assert all(each.ratio.value == pytest.approx(1.0) for each in others)


def test_measured_cells_err_each_by_itself_and_predictions_together() -> None:
    cells = len(NFSDS.levels)
    (measured,) = [e for e in main_effects(surface((DISKS, NFSDS), power).filled) if e.factor == "disks"]
    ratio = measured.ratios[3]
    assert ratio is not None
    assert math.log(ratio.high / ratio.value) == pytest.approx(Z * 0.01 * math.sqrt(2 / cells))
    guessed = surface((DISKS, NFSDS), power, predicted=lambda number: True, guess_sd=0.05)
    (all_guessed,) = [e for e in main_effects(guessed.filled) if e.factor == "disks"]
    ratio = all_guessed.ratios[3]
    assert ratio is not None
    assert math.log(ratio.high / ratio.value) == pytest.approx(Z * 0.05 * math.sqrt(2))


def test_only_settings_in_which_both_levels_are_known_are_compared() -> None:
    """Else a level that was tried only where all is quick would look quick."""
    failed = [(0, n) for n in range(4, 8)]
    (disks,) = [
        e for e in main_effects(surface((DISKS, NFSDS), power, failed=failed).filled) if e.factor == "disks"
    ]
    assert [r and r.value for r in disks.ratios] == pytest.approx([1, 2**0.5, 3**0.5, 2])
    everything = surface((DISKS, NFSDS), power, failed=[(0, n) for n in range(8)])
    (disks,) = [e for e in main_effects(everything.filled) if e.factor == "disks"]
    assert disks.ratios[1:] == (None, None, None)
    assert interactions(everything.filled) == ()


def test_an_effect_that_its_interval_does_not_show_says_so() -> None:
    effects = main_effects(surface((DISKS, FS), lambda disks, fs: 100.0 + (fs == "xfs"), sd=0.1).filled)
    assert all(
        "not significant" in effect_text(effect) or "changes nothing" in effect_text(effect)
        for effect in effects
    )


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        noise = {}

        def noisy(disks: float, nfsds: float, noise: dict[tuple[float, float], float] = noise) -> float:
            noise[disks, nfsds] = float(generator.normal()) * 0.05
            return power(disks, nfsds) * math.exp(noise[disks, nfsds])

        effects = {e.factor: e for e in main_effects(surface((DISKS, NFSDS), noisy, sd=0.05).filled)}
        ratio = effects["disks"].ratios[3]
        held += ratio is not None and ratio.low <= 2 <= ratio.high
    assert 0.92 <= held / 300 <= 0.98


def test_the_interval_of_the_largest_interaction_allows_for_the_choice() -> None:
    """21 pairs of levels are looked at: with none there, 95 % of surfaces show none."""
    generator = np.random.default_rng(9)
    shown = 0
    for _ in range(200):
        mapped = surface(
            (DISKS, NFSDS), lambda d, n: power(d, n) * math.exp(0.05 * generator.normal()), sd=0.05
        )
        (found,) = interactions(mapped.filled)
        shown += found.ratio.differs
    assert shown <= 16
