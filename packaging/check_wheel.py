"""Refuses a wheel that would not run elsewhere: wrong tag, or without the engine's programs or the shipped scripts."""

import sys
import zipfile
from pathlib import Path

PROGRAMS = ("etude-engine", "aptime")
PAGE = ("page.html.j2", "page.css", "charts.js")
SHIPPED = ("lib/common.inc", "lib/fs-setup.sh", "postmark/figure1.ap")


def faults(wheel: Path) -> list[str]:
    """What is wrong with the wheel, a line each; none for a good one."""
    found = []
    *_, python, abi, platform = wheel.stem.split("-")
    if (python, abi) != ("py3", "none"):
        found.append(f"tag {python}-{abi}: it would not fit every Python 3")
    if platform == "any":
        found.append("platform any: the programs in it run on one platform only")
    with zipfile.ZipFile(wheel) as archive:
        scripts = {
            Path(item.filename).name: item for item in archive.infolist() if ".data/scripts/" in item.filename
        }
        for program in PROGRAMS:
            if program not in scripts:
                found.append(f"{program} is missing")
            elif not scripts[program].external_attr >> 16 & 0o111:
                found.append(f"{program} cannot be executed")
        names = archive.namelist()
        for name in SHIPPED:
            if not any(entry.endswith(f"share/etude/examples/{name}") for entry in names):
                found.append(f"examples/{name} is missing")
        found += [
            f"etude/report/page/assets/{name} is missing"
            for name in PAGE
            if f"etude/report/page/assets/{name}" not in names
        ]
        found += [f"{name} does not belong there" for name in archive.namelist() if name.endswith(".so")]
    return found


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    wrong = faults(wheel)
    for line in wrong:
        print(f"{wheel.name}: {line}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{wheel}: {wheel.stat().st_size / 1024:.0f} KiB")
