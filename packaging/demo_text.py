"""Prints about eight megabytes of real text: sources of the Python library, in a fixed order."""

import sys
import sysconfig
from pathlib import Path

WANTED_BYTES = 8_000_000


def main() -> None:
    written = 0
    library = Path(sysconfig.get_path("stdlib"))
    while written < WANTED_BYTES:
        before = written
        for path in sorted(library.glob("*.py")) + sorted(library.glob("[a-z]*/*.py")):
            if written >= WANTED_BYTES:
                break
            written += sys.stdout.buffer.write(path.read_bytes())
        if written == before:
            sys.exit(f"no Python sources in {library} to make the demonstration's text from")


if __name__ == "__main__":
    main()
