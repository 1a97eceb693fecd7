"""Options of the verbs about the machine, other hosts and the shell."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.results.model import CACHE_WAYS

DOCTOR = """\
List what makes numbers noisy on this machine, each with what it means. It changes nothing."""


def doctor_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude doctor`."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


QUIET = """\
Make the machine quiet, put it back exactly as it was, or show its status.

WHAT is `usual` (the default of `on`), names of operations, NAME=VALUE for those with a choice, and cpus=LIST for
CPUs that are kept free. The previous state is on disk before anything changes; off restores it, also after a crash.
Operations, and what each changes: docs/howto/quiet.md.
"""


QUIET_WAYS = ("on", "off", "status")


def quiet_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude quiet`."""
    add = parser.add_argument
    add(
        "way",
        choices=QUIET_WAYS,
        metavar="on|off|status",
        help="make the machine quiet; put all back; show the status (changes nothing)",
    )
    add("what", nargs="*", metavar="WHAT", help="usual, NAME, NAME=VALUE, cpus=LIST")
    add(
        "--except",
        dest="without",
        action="append",
        default=[],
        metavar="NAME",
        help="leave out this operation",
    )
    add("--dry-run", action="store_true", help="on: print what would change, and change nothing")
    add("--json", action="store_true", help="one JSON object on standard output (docs/howto/quiet.md)")


COOL = """\
Bring the caches into a state, and report how much of a data set is in memory before and after.

WAY is warm (read the data set), chill (evict the caches by memory pressure), drop (the kernel's
drop_caches), remount (of the file systems that the data set lies on), or remount+chill; none only looks. status mounts
again what a remount that was killed has left unmounted, as the next session of root does, and names it. Nothing here
restarts the machine: CACHE reboot in a script and etude bench --cool reboot do (docs/howto/reboot.md).
"""


COOL_STATUS = "status"


def cool_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude cool`."""
    ways = [*(way for way in CACHE_WAYS if not way.startswith("reboot")), COOL_STATUS]
    parser.add_argument("way", choices=ways, metavar="WAY", help=", ".join(ways))
    parser.add_argument("data", nargs="*", metavar="PATH", help="files and directories: the data set")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object on standard output (docs/reference/formats.md)"
    )


HOSTS = """\
Check the hosts of a file: whether each can be reached and used for measuring, and how far its clock is off."""


def hosts_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude hosts`."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="the hosts file, in TOML (docs/howto/remote.md)"
    )


BOOT_RESUME = """\
Resume scripts after a restart of the machine: install, remove, or show the service that does so at boot.

Which scripts are resumed, when resuming is refused, and how to resume by hand: docs/howto/reboot.md.
"""


BOOT_RESUME_WHAT = ("install", "remove", "status", "resume")


def boot_resume_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude boot-resume`."""
    parser.add_argument(
        "what",
        choices=BOOT_RESUME_WHAT,  # resume is what happens at boot
        metavar="install|remove|status",
        help="install: have systemd (or /etc/rc.local) resume at boot a script that restarts the machine, or was "
        "cut short; remove: undo that; status: whether it is installed (exit code 1: it is not), what waits for "
        "the next boot, and what the boot loader offers",
    )
    parser.add_argument("--json", action="store_true", help="print the status as JSON")


COMPLETION = """\
Completions for bash, zsh or fish: verbs, their options, the values of these; files for all else.

The output is a script for the shell. In ~/.bashrc or ~/.zshrc it is evaluated as in the example.
"""


COMPLETION_SHELLS = ("bash", "zsh", "fish")


def completion_options(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `etude completion`."""
    parser.add_argument(
        "shell", choices=COMPLETION_SHELLS, metavar="SHELL", help=", ".join(COMPLETION_SHELLS)
    )
