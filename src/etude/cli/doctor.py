"""List what makes numbers noisy on this machine, each with what it means. It changes nothing."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude doctor`."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the findings, noisy ones first."""
    from etude.testbed.doctor import examine

    findings = examine()
    if options.json:
        import json
        from dataclasses import asdict

        print(json.dumps([asdict(f) for f in findings], indent=1, ensure_ascii=False))
        return 0
    import sys

    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    styles = {"noisy": "yellow", "unknown": "dim", "good": "green"}
    for finding in sorted(findings, key=lambda f: ("noisy", "unknown", "good").index(f.verdict)):
        meaning = finding.meaning if finding.verdict == "good" else f"{finding.meaning} {finding.advice}"
        table.add_row(
            f"[{styles[finding.verdict]}]{finding.verdict}[/]", finding.name, finding.state, meaning
        )
    console.print(table)
    return 0
