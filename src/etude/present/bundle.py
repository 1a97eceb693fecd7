"""The contents of a bundle for publication: results, scripts, machines, versions, verdicts, and their explanation."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.claims.run import STATE
from etude.claims.stored_claims import SOURCES, has_claims, packed_inputs, read_stored
from etude.errors import EtudeError, InputError, UsageError
from etude.masking import Mask, mask_of, mask_of_all
from etude.present.appendix import appendix
from etude.present.export import to_json
from etude.present.sentences import details
from etude.present.sentences import verdict as verdict_text
from etude.present.sentences.bundle_readme import Packed, readme
from etude.results.anonymous import Anonymizer, Identity, identity_of
from etude.results.bundle import FORMAT, INDEX, VERSION, Member, member_of
from etude.results.columns import sources_of
from etude.results.reader import check_lines, has_ended, read_experiment
from etude.results.regular import open_regular
from etude.results.results import machine_member
from etude.results.trials import ROLES
from etude.results.writer import directory_name
from etude.version import __version__

KNOWN = (
    "experiment.json",
    "monitor-*.jsonl",
    "system.log",
    "*.res",
    "*/results.jsonl",
    "*/blocks.jsonl",
    "*/hooks.log",
    "bisect.log",
)
"""Files that Étude writes into a results directory; a script's state is not published: it holds the environment."""
LOGS = "*/logs/*"
PARTS = (".pool", "builds")
"""The parts of an experiment over a pool, and builds of commits: directories that are not packed."""
Change = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Contents:
    """All that is packed, and what whoever packs it must know."""

    root: str
    members: tuple[Member, ...]
    time_s: int
    """End of the last session."""
    left_out: tuple[str, ...]
    """Files of the results directories that are not packed."""
    identity: Identity


def gather(
    directories: Sequence[Path], *, logs: bool = True, anonymous: bool = False, masks: Sequence[str] = ()
) -> Contents:
    """The members of a bundle of these results directories, without secrets (`masks`: patterns of further ones).

    Raises:
        InputError: one holds no results of Étude.
    """
    if any(map(has_claims, directories)):
        return _of_claims(directories, logs=logs, anonymous=anonymous, masks=masks)
    documents = [read_experiment(directory) for directory in directories]
    for directory, document in zip(directories, documents, strict=True):
        _check_whole(directory, document)
    identity = identity_of(documents, os.path.expanduser("~"))
    names_of = Anonymizer(identity).of if anonymous else _same
    sources = [str(directory / "experiment.json") for directory in directories]
    mask_of_bundle = mask_of_all(zip(sources, documents, strict=True), masks)
    names = _names(directories, lambda text: names_of(mask_of_bundle.content(text)))
    members: list[Member] = []
    left_out: list[str] = []
    packed = []
    for directory, name, document, source in zip(directories, names, documents, sources, strict=True):
        secrets = mask_of(document["plan"], source, masks)
        change = _both(secrets, names_of)
        files, others = _files(directory, logs)
        members += [_copy(directory / file, f"results/{name}/{file}", change) for file in files]
        left_out += [str(directory / other) for other in others]
        scripts = _scripts(document, name)
        machine = _machine(document, name)
        verdict, sentences = _verdict(directory, name)
        members += [_masked(member, change) for member in (*scripts, *machine, *verdict)]
        # Without secrets before the README's lines are broken, which parts an option from its word.
        told = tuple(map(secrets.text, sentences))
        packed.append(Packed(name, secrets.data(document), tuple(m.name for m in scripts), told, len(files)))
    time_s = max(map(_ended_s, documents))
    own = [
        member_of("versions.json", _json(_versions(names, documents))),
        member_of(INDEX, _json(_index(names, documents, logs, anonymous, time_s))),
        member_of("README.txt", readme(packed, names[0], time_s, logs=logs, anonymous=anonymous)),
    ]
    change = _both(mask_of_bundle, names_of)
    members += [_masked(member, change) for member in own]
    return Contents(f"{names[0]}-bundle", tuple(members), time_s, tuple(left_out), identity)


def _of_claims(directories: Sequence[Path], *, logs: bool, anonymous: bool, masks: Sequence[str]) -> Contents:
    """Results of claims: every experiment, the claims file, its inputs as they are, the verdicts and the appendix."""
    if len(directories) > 1:
        raise UsageError("results of claims are packed alone: name no other directory")
    (directory,) = directories
    stored = read_stored(directory)
    measured = list(stored.measured().values())
    if not measured:
        raise InputError(f"{directory}: nothing was measured; run etude claims run first")
    contents = gather(measured, logs=logs, anonymous=anonymous, masks=masks)
    inputs, outside = packed_inputs(stored)
    change = _both(
        mask_of({}, str(directory / STATE), masks), Anonymizer(contents.identity).of if anonymous else _same
    )
    own = [
        member_of(f"{SOURCES}/{stored.file.path.name}", stored.state.text),
        member_of(STATE, (directory / STATE).read_text("utf-8")),
        member_of("appendix.md", appendix(stored, "md")),
    ]
    copies = [Member(f"{SOURCES}/{name}", partial(_whole, path)) for name, path in inputs.items()]
    return replace(
        contents,
        root=f"{directory.resolve().name}-bundle",
        members=(*contents.members, *(_masked(each, change) for each in own), *copies),
        left_out=(*contents.left_out, *outside),
    )


def _whole(path: Path) -> Iterator[bytes]:
    with _opened(path) as file:
        while part := file.read(1 << 20):
            yield part


def _check_whole(directory: Path, document: Mapping[str, Any]) -> None:
    """Raise InputError for results that have lost lines since they were complete."""
    if document.get("plan", {}).get("kind") in ("peak", "surface") or not has_ended(document):
        return
    for source in sources_of(directory, document, ROLES):
        try:
            with open_regular(source.file) as file:
                lines = sum(1 for _ in file)
        except OSError as error:
            raise InputError(f"{source.file}: cannot be read: {error.strerror}") from None
        check_lines(source.file, lines, source.test)


def _same(text: bytes) -> bytes:
    return text


def _both(secrets: Mask, names_of: Change) -> Change:
    return lambda text: names_of(secrets.content(text))


def _text(change: Change, text: str) -> str:
    return change(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _names(directories: Sequence[Path], change: Change) -> list[str]:
    names: list[str] = []
    for directory in directories:
        name = directory.resolve().name
        names.append(directory_name(_text(change, name), names))
    return names


def _files(directory: Path, logs: bool) -> tuple[list[str], list[str]]:
    """Files that are packed, and those that are not: unknown to Étude, or no plain files."""
    known: set[str] = set()
    for pattern in (*KNOWN, *((LOGS,) if logs else ())):
        known |= {
            str(path.relative_to(directory)) for path in directory.glob(pattern) if _is_plain(path, directory)
        }
    there = set()
    for place, folders, names in os.walk(directory):
        here = Path(place).relative_to(directory)
        for part in PARTS if here == Path() else ():
            if (
                part in folders and not (directory / part / "results.jsonl").exists()
            ):  # a test may have this name
                folders.remove(part)
                there.add(str(here / part))
        if not logs and here.name == "logs":
            continue
        there |= {
            str(here / name) for name in (*names, *(f for f in folders if (Path(place) / f).is_symlink()))
        }
    return sorted(known), sorted(there - known)


def _is_plain(path: Path, directory: Path) -> bool:
    """True if it is a file, and neither it nor a directory on the way is a link."""
    steps = [path, *path.parents[: len(path.relative_to(directory).parts) - 1]]
    return path.is_file() and not any(step.is_symlink() for step in steps)


def _copy(path: Path, name: str, change: Change) -> Member:
    return Member(_text(change, name), lambda: map(change, _parts(path)))


def _parts(path: Path) -> Iterator[bytes]:
    """Its lines; of one JSON document all."""
    with _opened(path) as file:
        if path.suffix == ".json":
            yield file.read()
        else:
            yield from file


def _opened(path: Path) -> Any:
    try:
        return open_regular(path, follow=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _masked(member: Member, change: Change) -> Member:
    def parts() -> Iterator[bytes]:
        whole = b"".join(member.read())
        return map(change, [whole] if member.name.endswith(".json") else whole.splitlines(keepends=True))

    return Member(_text(change, member.name), parts)


def _scripts(document: Mapping[str, Any], name: str) -> list[Member]:
    """A script and what it includes, as files: below its own directory as they lay there, all others in `library`."""
    plan = document["plan"]
    files = plan.get("text")
    if plan.get("kind") != "script" or not isinstance(files, dict):
        return []
    place = machine_member(document, "directory", "path") or ""
    main = str(plan.get("script"))
    names = set(
        re.findall(r"^\s*(?:OPT)?INCLUDE\s+(\S+)", "\n".join("\n".join(t) for t in files.values()), re.M)
    )
    members: dict[str, Member] = {}
    for number, (file, lines) in enumerate(files.items()):
        path = main if number == 0 else os.path.normpath(os.path.join(place, file))
        told = f"scripts/{name}/{_place(path, os.path.dirname(main), names)}"
        stem, number = told, 2
        while told in members:
            told, number = f"{stem}-{number}", number + 1
        members[told] = member_of(told, "".join(f"{line}\n" for line in lines))
    return list(members.values())


def _place(path: str, home: str, names: Iterable[str]) -> str:
    """The path at which its INCLUDE finds a file: beside the script, or in `library` under the name that it is included
    by."""
    below = os.path.relpath(path, home)
    if not below.startswith(".."):
        return below
    fitting = [name for name in names if path.endswith(f"/{name}") and ".." not in name.split("/")]
    return f"library/{max(fitting, key=len, default=os.path.basename(path))}"


def _machine(document: Mapping[str, Any], name: str) -> list[Member]:
    machine = document.get("machine") or {}
    snapshots = {when: machine.get(when) for when in ("before", "after")}
    snapshots |= {f"sitting-{s['sitting']}": s.get("machine") for s in document["sittings"]}
    return [
        member_of(f"machine/{name}/{when}.json", _json(found)) for when, found in snapshots.items() if found
    ]


def _verdict(directory: Path, name: str) -> tuple[list[Member], list[str]]:
    label = f"results/{name}"
    try:
        subject = read_subject(str(directory))
        assert isinstance(subject, Subject)
        notes = tuple(
            replace(
                note,
                where=note.where.replace(str(directory), label),
                text=note.text.replace(str(directory), label),
            )
            for note in subject.notes
        )
        found = verdict(replace(subject, label=label, notes=notes), None, VerdictOptions(full=True))
    except EtudeError as error:
        why = f"There is no verdict: {error}".replace(str(directory), label)
        return [member_of(f"verdicts/{name}.txt", f"{why}\n")], [why]
    sentences = verdict_text.verdict_lines(found)
    further = [line for c in found.comparisons for line in details.detail_lines(c)]
    told = "".join(f"{line}\n" for line in (*sentences, *further))
    return [
        member_of(f"verdicts/{name}.txt", told),
        member_of(f"verdicts/{name}.json", to_json(found) + "\n"),
    ], sentences


def _ended_s(document: Mapping[str, Any]) -> int:
    """End of the last session, or its start if it is not known to have ended; 0 without sessions."""
    times = [s.get("end") or s.get("start") for s in document["sittings"]]
    return max((_seconds(time) for time in times if isinstance(time, str)), default=0)


def _seconds(time: str) -> int:
    try:
        return max(0, int(datetime.fromisoformat(time).timestamp()))
    except ValueError:
        return 0


def _versions(names: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    measured = {name: document.get("versions") or {} for name, document in zip(names, documents, strict=True)}
    return {"packed_by": {"etude": __version__}, "measured_by": measured}


def _index(
    names: Sequence[str], documents: Sequence[Mapping[str, Any]], logs: bool, anonymous: bool, time_s: int
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "etude": __version__,
        "time_s": time_s,
        "logs": logs,
        "anonymous": anonymous,
        "results": [
            {"name": name, "verb": document.get("verb"), "digest": document.get("digest")}
            for name, document in zip(names, documents, strict=True)
        ],
    }


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
