"""Two identical short commands, compared 100 times: how many intervals of the ratio contain 1?

python bench/identical.py [COUNT] [COMMAND]
"""

from __future__ import annotations

import sys

from rows import progress
from verdicts import etude_differs

if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    command = sys.argv[2] if len(sys.argv) > 2 else "grep -r zzz /usr/include/linux"
    contain = 0
    for number in range(count):
        differs, _ = etude_differs(command, number, "--ignore-failure")
        contain += not differs
        progress(f"{contain} of {number + 1} contain 1")
    progress("")
    print(
        f"{command!r} against itself: {contain} of {count} intervals contain 1 (90 or more are asked of 100)"
    )
    sys.exit(contain < 0.9 * count)
