"""Simulated surfaces are what their models say."""

import pickle

import numpy as np
import pytest

from etude.surface.simulated import (
    FILE_SERVER,
    OWN,
    REFERENCE,
    SURFACES,
    FileServer,
    SimulatedSurface,
    throughput,
)


def test_one_customer_never_waits():
    assert throughput([7.5 / 4] * 4 + [0.35], 1.0, 1) == pytest.approx(1e3 / (7.5 + 0.35 + 1.0))


def test_two_customers_of_two_equal_stations_are_as_the_product_form_has_them():
    """Demands 1 and 1, no think time: X(2) = G(1)/G(2) = 2/3 a ms."""
    assert throughput([1.0, 1.0], 0.0, 2) == pytest.approx(1e3 * 2 / 3)


def test_many_customers_are_limited_by_the_busiest_station():
    assert throughput([2.0, 0.5, 4.2], 0.3, 400) == pytest.approx(1e3 / 4.2, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "levels", "peak"),
    [
        ("DB_TP", {"disks": 1, "nfsds": 1}, 0.9e3 / 8.85),
        ("Web", {"disks": 4, "nfsds": 1}, 0.9e3 / 3.75),
        ("Mail", {"disks": 4, "nfsds": 32}, 0.9e3 / 4.2),
        ("DB_TP", {"disks": 1, "nfsds": 64}, 0.9e3 / 7.5 * 0.97),
        ("DB_TP-thrash", {"disks": 1, "nfsds": 64}, 0.9e3 / 7.5 * 0.88**3),
    ],
)
def test_reference_surfaces_are_what_their_formulas_say(name, levels, peak):
    assert REFERENCE[name].smooth(levels) == pytest.approx(peak, rel=2e-3)


def test_surfaces_that_are_called_monotone_rise_up_to_32_nfsds():
    for law in REFERENCE.values():
        if law.monotone:
            peaks = [law.smooth({"disks": 4, "nfsds": n}) for n in (1, 2, 4, 8, 16, 32)]
            assert np.all(np.diff(peaks) > 0)
    thrash = REFERENCE["DB_TP-thrash"].smooth
    assert thrash({"disks": 1, "nfsds": 100}) < 0.8 * thrash({"disks": 1, "nfsds": 8})


def test_roughness_follows_from_seed_and_cell_and_has_the_laws_spread():
    law = REFERENCE["DB_TP-thrash"]
    surface, again, other = (SimulatedSurface(law, seed) for seed in (1, 1, 2))
    assert surface.peak((1, 3)) == again.peak((1, 3)) != other.peak((1, 3))
    smooth = law.smooth({"disks": 2, "nfsds": 8})
    logs = np.log([SimulatedSurface(law, seed).peak((1, 3)) / smooth for seed in range(400)])
    assert np.std(logs) == pytest.approx(law.rough, rel=0.15)


def test_surfaces_of_our_own_have_three_factors_or_more_and_one_has_10000_cells():
    assert all(len(law.space.factors) >= 3 for law in OWN.values())
    assert OWN["wide"].space.size == 10_000


def test_a_cache_that_fits_its_working_set_is_a_cliff():
    levels = {"workers": 16, "quota": 2, "network": "loopback"}
    peaks = [OWN["cached"].smooth({**levels, "cache": mb}) for mb in (64, 128, 256, 512, 1024)]
    assert peaks[1] < 1.05 * peaks[0]
    assert peaks[3] > 3 * peaks[1]
    assert peaks[4] < 1.6 * peaks[3]


@pytest.mark.parametrize("name", SURFACES)
def test_surfaces_travel_between_processes_and_have_a_peak_everywhere(name):
    surface = pickle.loads(pickle.dumps(SimulatedSurface(SURFACES[name], 7)))
    assert surface.space.size == len(list(surface.space))
    for cell in list(surface.space)[:: max(surface.space.size // 40, 1)]:
        assert surface.peak(cell) > 1
    assert surface.curve.response_s(1.0) == pytest.approx(0.040)


def test_thrashing_begins_at_the_named_number_of_nfsds():
    calm, thrashing = (FileServer(7.5, 0.35, 0.0, 1.0, share, 8) for share in (0.0, 0.1))
    ratios = [thrashing({"disks": 2, "nfsds": n}) / calm({"disks": 2, "nfsds": n}) for n in (8, 16, 64)]
    assert ratios == pytest.approx([1.0, 0.9, 0.9**3])
    assert len(FILE_SERVER.factors) == 2
