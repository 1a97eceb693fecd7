"""`etude doctor`: what makes numbers noisy on this machine."""

from __future__ import annotations

import argparse

from etude.machine.checks import examine
from etude.present.sections.machine import doctor_blocks
from etude.present.terminal import Terminal, show
from etude.present.to_json import print_json


def run(options: argparse.Namespace) -> int:
    """Print the findings, noisy ones first."""
    findings = examine()
    if options.json:
        print_json(findings)
    else:
        screen = Terminal()
        show(doctor_blocks(findings, single_lines=screen.width is None), screen)
    return 0
