"""`etude boot-resume`: resume scripts after a restart of the machine."""

from __future__ import annotations

import argparse
import json as text
import sys
from dataclasses import asdict

from etude.errors import UsageError
from etude.machine.boot import record, unit
from etude.machine.boot.resume import boot_status, replace_process, resume
from etude.machine.boot.unit import Status
from etude.present.terminal import Terminal


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.json and options.what != "status":
        raise UsageError("--json is for status")
    if options.what == "resume":
        return _resume()
    if options.what == "install":
        _tell(unit.install())
        for doubt in unit.untrusted_programs():
            Terminal().say(f"Note: what runs as root at boot can be changed by others: {doubt}")
        return 0
    if options.what == "remove":
        unit.remove()
        print("Nothing is resumed at boot any more.")
        return 0
    return _status(json=options.json)


def _resume() -> int:
    if not record.path().exists():
        print("Nothing waits for a boot.")
        return 0
    replace_process(resume(lambda line: Terminal(sys.stderr).say(f"etude: {line}")))
    return 0


def _status(*, json: bool) -> int:
    found = boot_status()
    if json:
        document = asdict(found)
        if document["waits"]:
            del document["waits"]["environment"]  # it may hold what is to be read by root alone
        print(text.dumps(document, indent=1, ensure_ascii=False))
    else:
        _tell(found.unit)
        for line in found.lines():
            Terminal().say(line)
    return 0 if found.unit.installed else 1


def _tell(status: object) -> None:
    assert isinstance(status, Status)
    if status.installed:
        Terminal().say(f"Resumes at boot: {status.file} ({status.by}).")
    else:
        why = f": {status.file} {status.why}" if status.why else ""
        Terminal().say(f"Does not resume at boot{why}. etude boot-resume install")
