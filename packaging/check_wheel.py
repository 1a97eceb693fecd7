"""Refuses a wheel that would not run elsewhere, or not wholly.

Its tag or the linking of a program is wrong, one of the engine's programs or of the shipped scripts is missing, or it
is too large.
"""

import re
import struct
import sys
import zipfile
from pathlib import Path

PROGRAMS = ("etude-engine", "aptime", "io-static", "io-dynamic")
STATIC = ("etude-engine", "aptime", "io-static")
PAGE = ("page.html.j2", "page.css", "charts.js")
LARGEST = 25 << 20
SHIPPED = ("ci/compare.sh", "lib/common.inc", "lib/fs-setup.sh", "postmark/figure1.ap")


def faults(wheel: Path) -> list[str]:
    """What is wrong with the wheel, a line each; none for a good one."""
    found = []
    *_, python, abi, platform = wheel.stem.split("-")
    if (python, abi) != ("py3", "none"):
        found.append(f"tag {python}-{abi}: it would not fit every Python 3")
    if platform == "any":
        found.append("platform any: the programs in it run on one platform only")
    if wheel.stat().st_size > LARGEST:
        found.append(f"{wheel.stat().st_size} bytes: more than {LARGEST}")
    with zipfile.ZipFile(wheel) as archive:
        scripts = {
            Path(item.filename).name: item for item in archive.infolist() if ".data/scripts/" in item.filename
        }
        for program in PROGRAMS:
            if program not in scripts:
                found.append(f"{program} is missing")
            elif not scripts[program].external_attr >> 16 & 0o111:
                found.append(f"{program} cannot be executed")
            elif loads_libraries(archive.read(scripts[program])) == (program in STATIC):
                found.append(
                    f"{program} is not linked {'statically' if program in STATIC else 'dynamically'}"
                )
        needed = max((glibc_needed(archive.read(item)) for item in scripts.values()), default=0)
        tagged = re.fullmatch(r"manylinux_2_(\d+)_\w+", platform)
        if needed and (tagged is None or int(tagged[1]) != needed):
            found.append(f"platform {platform}: its programs need glibc 2.{needed}, so manylinux_2_{needed}")
        names = archive.namelist()
        for name in SHIPPED:
            if not any(entry.endswith(f"share/etude/examples/{name}") for entry in names):
                found.append(f"examples/{name} is missing")
        found += [
            f"etude/present/page/assets/{name} is missing"
            for name in PAGE
            if f"etude/present/page/assets/{name}" not in names
        ]
        found += [f"{name} does not belong there" for name in archive.namelist() if name.endswith(".so")]
    return found


def loads_libraries(program: bytes) -> bool:
    """Whether an ELF program of 64 bits names an interpreter (elf(5): PT_INTERP), as all that load libraries do."""
    if program[:5] != b"\x7fELF\x02":
        return False
    order = "<" if program[5] == 1 else ">"
    (offset,) = struct.unpack_from(f"{order}Q", program, 32)
    size, count = struct.unpack_from(f"{order}HH", program, 54)
    kinds = [struct.unpack_from(f"{order}I", program, offset + size * index)[0] for index in range(count)]
    return 3 in kinds


def glibc_needed(program: bytes) -> int:
    """The newest 2.N of the GNU C library whose symbols a dynamic program uses; 0 for a static one, and for a script.

    Their versions stand in its table of names (elf(5): .dynstr) and nowhere else in such a program.
    """
    if not loads_libraries(program):
        return 0
    return max((int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", program)), default=0)


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    wrong = faults(wheel)
    for line in wrong:
        print(f"{wheel.name}: {line}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{wheel}: {wheel.stat().st_size / 1024:.0f} KiB")
