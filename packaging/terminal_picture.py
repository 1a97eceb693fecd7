"""Run a command on a terminal and keep what it leaves on the screen as a picture.

python packaging/terminal_picture.py OUT.svg COLUMNS -- COMMAND [ARGUMENT …]
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import sys
import termios

from rich.console import Console
from rich.text import Text

# Rich's own template without the fonts that it would fetch from the net.
FONT_FACES = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)


def on_terminal(command: list[str], columns: int) -> str:
    """All that a command wrote to a terminal of that many columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            break
    os.waitpid(pid, 0)
    return shown.decode()


def left_on_screen(text: str) -> str:
    """What remains once lines that were drawn over are gone: cursor-up and erase-line are obeyed."""
    screen: list[str] = [""]
    row = 0
    for part in re.split(r"(\x1b\[\d*[AK]|\x1b\[2K|\x1b\[\?25[hl]|\r\n|\n|\r)", text):
        if part in ("\r\n", "\n"):
            row += 1
            screen += [""] * (row + 1 - len(screen))
        elif match := re.fullmatch(r"\x1b\[(\d*)A", part):
            row = max(0, row - int(match[1] or 1))
        elif part in ("\r", "\x1b[K", "\x1b[2K"):
            screen[row] = ""
        elif not part.startswith("\x1b[?25"):
            screen[row] += part
    return "\n".join(line.rstrip() for line in screen).strip("\n")


def main() -> None:
    """Write the picture."""
    out, columns, dashes, *command = sys.argv[1:]
    if dashes != "--":
        sys.exit(__doc__)
    text = "$ " + shlex.join(command) + "\n" + left_on_screen(on_terminal(command, int(columns)))
    console = Console(record=True, width=int(columns), file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.from_ansi(text))
    svg = FONT_FACES.sub("", console.export_svg(title="Étude"))
    with open(out, "w", encoding="utf-8") as file:
        file.write(svg)
    print(re.sub(r"\x1b\[[0-9;]*m", "", text))


if __name__ == "__main__":
    main()
