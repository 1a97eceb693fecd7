"""Programs of many kinds, each recorded once and replayed once: calls with other results, and bytes that are played."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import replay_programs
from recorded_work import tree
from replay_programs import MAKERS, SMALL, Size, Workload, made
from replay_steps import Place, Said, whole_way
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
"""Besides the programs of bench/replay_programs.py that are named here."""
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
        return ", ".join(replay_programs.missing(name))
    needs = LIST[name].needs
    return "" if shutil.which(needs) else needs


def workload(name: str, place: Path) -> Workload:
    """A program in a directory of its own, once."""
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
