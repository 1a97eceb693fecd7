"""The surface of docs/howto/surfaces.md: a simulated file server over disks and daemons, half of its cells measured.

python bench/surface/example.py [DIRECTORY]: prints what it says; draws its figures into that directory.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from etude.figures.save import save
from etude.figures.style import Style
from etude.figures.surface import figures_of
from etude.present.sections.surface import surface_section
from etude.present.terminal import show
from etude.surface.factors import Factor, Space
from etude.surface.samples import KnownResponses, Sample, known_samples
from etude.surface.surface_result import SurfaceResult
from etude.surface.surrogates.selection import SelectedSurrogate

SPACE = Space(
    (
        Factor("disks", "linear", (1.0, 2.0, 3.0, 4.0)),
        Factor("nfsds", "log", (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)),
    )
)
MEASURED_SD = 0.03
Z = 1.959963984540054


def server(disks: float, nfsds: float) -> float:
    """Requests/s: a disk bears 170, a daemon keeps 60 going; the lower of both, with a soft knee."""
    return float(((170 * disks) ** -4 + (60 * nfsds) ** -4) ** -0.25)


def mapped(seed: int = 3) -> SurfaceResult:
    """About half of the cells measured with an error of 3 %, the others predicted."""
    generator = np.random.default_rng(seed)
    samples = []
    for cell in SPACE:
        if sum(cell) % 2 == 0 or cell in ((0, 7), (3, 0)):
            disks, nfsds = (float(f.levels[n]) for f, n in zip(SPACE.factors, cell, strict=True))
            value = server(disks, nfsds) * math.exp(MEASURED_SD * generator.normal())
            away = math.exp(Z * MEASURED_SD)
            trials = int(generator.integers(5, 12))
            bounds = (value, value / away, value * away, 0.95)
            samples.append(Sample(cell, "measured", *bounds, 240.0 * trials, trials))
    found = known_samples(samples)
    fit = SelectedSurrogate().fit(SPACE, found)
    assert fit is not None
    others = [cell for cell in SPACE if cell not in found.cells]
    predicted = fit.predict(others), fit.name, _left_out(found)
    return SurfaceResult(SPACE, "peak rate", "1/s", "higher", tuple(samples), *predicted)


def _left_out(found: KnownResponses) -> tuple[float, ...]:
    """Relative errors of predicting each measured cell from all others."""
    errors = []
    for at, cell in enumerate(found.cells):
        fit = SelectedSurrogate().fit(SPACE, found.without(at))
        if fit is not None:
            errors.append(math.expm1(float(fit.predict([cell]).log[0] - found.log[at])))
    return tuple(errors)


if __name__ == "__main__":
    surface = mapped()
    show(surface_section(surface, target=400.0, drawn=False))
    for directory in sys.argv[1:]:
        for name, figure in figures_of(surface).items():
            file = "surface.png" if name == "surface" else f"surface-{name}.png"
            save(figure, str(Path(directory, file)), Style())
