"""Programs played once: other results and bytes that are played, of many kinds; and what rolls take on the disk."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from etude.iotrace.reader import Trace, read_trace
from recordings.work import tree
from replays import programs
from replays.programs import MAKERS, SMALL, Size, Workload, made
from replays.steps import Place, Said, original, whole_way
from rows import Row, shown

FILES, FILE_BYTES, LINES = 400, 4_000, 60_000
MOST_UNPLAYED = 0.01
"""The default of `etude replay --unplayed`: a share of the bytes, or of the time in calls that move data."""
REACH = 30
FIO = "fio --name=a --filename=data --size=2m --bs=4k --rw=randrw --randseed=1 --output=said"
POOL = """\
import multiprocessing, pathlib
def count(path):
    return len(path.read_bytes().split())
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        found = pool.map(count, sorted(pathlib.Path("tree").glob("*/*")))
    pathlib.Path("words").write_text(str(sum(found)))
"""
NODE = 'const fs = require("fs"); fs.writeFileSync("copy", fs.readFileSync("big")); fs.readdirSync("tree")'
JAVA = """\
import java.nio.file.*;
class Copy { public static void main(String[] a) throws Exception { Files.copy(Path.of("big"), Path.of("copy")); } }
"""


@dataclass(frozen=True)
class Listed:
    """A line for the shell, what is made before it, and the program that it needs; a directory has `tree` and `big`."""

    line: str
    needs: str
    before: str = ""


LIST: Mapping[str, Listed] = {
    "tar, create": Listed("tar -cf all.tar tree", "tar"),
    "tar, extract": Listed("tar -xf all.tar", "tar", "tar -cf all.tar tree; rm -r tree"),
    "cp -r": Listed("cp -r tree copy", "cp"),
    "rm -r": Listed("rm -r tree", "rm"),
    "find": Listed("find tree -size +1 -name '*7*' > found", "find"),
    "ar": Listed("ar rc all.a tree/part0/*", "ar"),
    "gzip": Listed("gzip -k big", "gzip"),
    "xz -T2": Listed("xz -0 -k -T2 big", "xz"),
    "sort": Listed("sort -S 512k -T . big -o sorted", "sort"),
    "sha256sum": Listed("sha256sum tree/*/* > sums; sha256sum --quiet -c sums", "sha256sum"),
    "dd": Listed("dd if=big of=copy bs=64k conv=fsync status=none", "dd"),
    "sed -i": Listed("sed -i s/a/b/g tree/part0/*", "sed"),
    "awk": Listed("awk '{ n += NF } END { print n }' big > words", "awk"),
    "perl -pi": Listed("perl -pi -e 's/a/b/g' tree/part0/*", "perl"),
    "split, cat": Listed("split -b 64k big part- && cat part-* > again", "split"),
    "grep -r": Listed("grep -rc 1a tree > found", "grep"),
    "xargs -P 2 grep": Listed("find tree -type f | xargs -P 2 -n 50 grep -c 1a | sort > found", "xargs"),
    "dpkg-deb": Listed(
        "dpkg-deb --build package > said",
        "dpkg-deb",
        "mkdir -p package/DEBIAN; cp -r tree package; printf 'Package: a\\nVersion: 1\\nArchitecture: all\\n"
        "Maintainer: a <a@example.org>\\nDescription: a\\n' > package/DEBIAN/control",
    ),
    "openssl enc": Listed("openssl enc -aes-256-ctr -K 00 -iv 00 -in big -out locked 2> said", "openssl"),
    "python compileall": Listed(
        "python3 -m compileall -q more", "python3", "mkdir more; echo 'a = 1' > more/a.py"
    ),
    "python multiprocessing": Listed("python3 pool.py", "python3", f"cat > pool.py <<'E'\n{POOL}E\n"),
    "node": Listed(f"node -e '{NODE}'", "node"),
    "java": Listed("java Copy.java", "java", f"cat > Copy.java <<'E'\n{JAVA}E\n"),
    "git clone": Listed(
        "git clone -q --no-hardlinks . ../cloned",
        "git",
        "git init -q .; git add tree; git -c user.name=a -c user.email=a@example.org commit -q -m a",
    ),
    "fio, psync": Listed(f"{FIO} --ioengine=psync", "fio"),
    "fio, libaio": Listed(f"{FIO} --ioengine=libaio --iodepth=8 --direct=1", "fio"),
}
"""Besides the programs of bench/replays/programs.py that are named here."""
OTHERS = ("sqlite3", "git", "make", "fio", "postgres")


def list_rows(place: Place, size: Size, rounds: int) -> Iterator[Row]:
    """A row a program, and one on all; the sizes of others, and rounds, are not used: each is played once."""
    del size, rounds
    good = played = 0
    for name in (*LIST, *OTHERS):
        lacking = missing(name)
        if lacking:
            yield shown(f"other results: {name}", "–", f"{lacking} is not installed")
            continue
        directory = Place(place.directory / name.replace(" ", "-"), place.cache, place.engine)
        directory.directory.mkdir()
        row = listed_row(name, whole_way(workload(name, directory.directory), directory))
        shutil.rmtree(directory.directory)
        good += row.reached is True
        played += 1
        yield row
    what = "programs without other results, whose bytes are played or missed by the verdict"
    yield Row(what, f"{played} programs", str(good), f"≥ {REACH}", good >= REACH)


def missing(name: str) -> str:
    """Programs that are not installed; empty where all are."""
    if name not in LIST:
        return ", ".join(programs.missing(name))
    needs = LIST[name].needs
    return "" if shutil.which(needs) else needs


def workload(name: str, place: Path) -> Workload:
    if name not in LIST:
        return MAKERS[name](place, SMALL)
    listed = LIST[name]
    directory = made(place, "work")
    tree(directory / "tree", FILES, FILE_BYTES)
    (directory / "big").write_text("".join(f"{n * 7919 % 100_003:x} a line\n" for n in range(LINES)))
    subprocess.run(["sh", "-c", listed.before], cwd=directory, check=True)
    return Workload(name, name, ["sh", "-c", listed.line], directory, [], {"HOME": str(directory)})


def listed_row(name: str, said: Said) -> Row:
    """Judged by its other results: what is not played makes the verdict refuse to call it faithful, which is said."""
    others, missed = len(said["other_results"]), said["unplayed"]
    share = max(missed["bytes_share"], missed["time_share"])
    refused = "; refused by the verdict" if share > MOST_UNPLAYED else ""
    value = f"{others}; {100 * (1 - missed['bytes_share']):.4g} % of the bytes played{refused}"
    base = f"its recording, {said['calls']:,} calls"
    return Row(f"other results: {name}", base, value, "0; ≥ 99 %, or refused", others == 0)


BYTES_AN_EVENT = 1.0
TIMES_SMALLER = 8.0
ROLL_SHARE = 0.01


def size_rows(workload: Workload, trace: Trace, said: Said, roll_bytes: int) -> list[Row]:
    """Judged for the real tree, as that is what others have numbers of."""
    judged = workload.name == "include"
    each, fixed = roll_bytes / trace.events, fixed_bytes(trace) / trace.events
    timed = fixed_bytes(trace, durations=True) / trace.events
    share = roll_bytes / max(said["read_bytes"] + said["written_bytes"], 1)
    base = f"fixed records and texts as Pianola has them, zlib: {fixed:.3g} B; with durations {timed:.3g} B"
    value = f"{each:.3g} B, {fixed / each:.3g} × smaller (with durations {timed / each:.3g} ×)"
    small = each <= BYTES_AN_EVENT and fixed / each >= TIMES_SMALLER
    rows = [
        Row(
            f"bytes of the roll an event: {workload.what}, {trace.events:,} events", base, value,
            f"≤ {BYTES_AN_EVENT:g} B, ≥ {TIMES_SMALLER:g} ×", small,
        ),
        Row(
            f"roll / bytes moved by the replay: {workload.what}", "–", f"{100 * share:.3g} %",
            f"≤ {100 * ROLL_SHARE:g} %", share <= ROLL_SHARE,
        ),
    ]  # fmt: skip
    return rows if judged else [shown(row.what, row.peer, row.value) for row in rows]


def include_rows(place: Place, size: Size, rounds: int) -> Iterator[Row]:
    """Of a tree of real files: C headers, which whoever builds Étude has."""
    directory = made(place.directory, "include")
    words = ["tar", "-cf", "x.tar", "-C", "/usr", "include"]
    workload = Workload("include", "tar of /usr/include", words, directory, ["x.tar"])
    original(workload, place)
    said = whole_way(workload, place)
    yield from size_rows(workload, read_trace(place.trace), said, place.roll.stat().st_size)


def fixed_bytes(trace: Trace, *, durations: bool = False) -> int:
    """As Pianola has it: a record of 60 bytes an event (what, gap, result, five arguments), and the texts in order,
    both by zlib. A roll has durations, too: with them it is 68 bytes."""
    order = np.argsort(trace.start_ns, kind="stable")
    ends = (trace.start_ns + trace.duration_ns)[order]
    kinds = [("call", "<u4"), ("gap", "<f8"), ("rest", "<i8", (6,)), ("duration", "<i8", (int(durations),))]
    records = np.zeros(trace.events, np.dtype(kinds))
    records["call"] = trace.call[order]
    records["gap"][1:] = np.maximum(trace.start_ns[order][1:] - ends[:-1], 0) * 1e-9
    records["rest"][:, 0] = trace.result[order]
    for number in range(5):
        records["rest"][:, 1 + number] = trace.arguments[number][order]
    if durations:
        records["duration"][:, 0] = trace.duration_ns[order]
    codes = np.column_stack(trace.texts)[order].ravel()
    texts = b"".join(trace.text(code) + b"\0" for code in codes[codes > 0].tolist())
    return len(zlib.compress(records.tobytes(), 6)) + len(zlib.compress(texts, 6))
