"""examples/nfs/kernel.ap as it is: the kernel's server and client in the test machine, the server's CPU time beside."""

from __future__ import annotations

import errno
import json
from pathlib import Path

from support.guest.machine import Machine
from support.guest.run_example import SHARE, run_example

LITTLE = ("TRIALS=1", "POSTMARK_NUMBER=30", "POSTMARK_TRANSACTIONS=60", "NFSWAIT=120")


def test_postmark_runs_on_the_kernels_nfs_of_both_versions(guest: Machine, tmp_path: Path) -> None:
    listening = guest.check("ss -Hltn")
    assert not listening, "NFS is not started at boot"
    answer = run_example(guest, "nfs/kernel.ap", tmp_path / "results", LITTLE)
    assert answer.status == 0, answer.out + answer.err
    counts = set()
    for version in (3, 4):
        place = tmp_path / "results" / f"nfs-v{version}"
        (row,) = [json.loads(line) for line in (place / "results.jsonl").read_text().splitlines()]
        assert row["kept"]
        metrics = row["metrics"]
        counts.add((metrics["files_created"][0], metrics["data_read"][0], metrics["data_written"][0]))
        assert metrics["server_cpu"][0] > 0, "the threads nfsd have worked"
        blocks = [json.loads(line) for line in (place / "blocks.jsonl").read_text().splitlines()]
        (facts,) = [block["lines"] for block in blocks if block["name"] == "filesystem"]
        (options,) = [line for line in facts if line.startswith("mount_options = ")]
        assert f"vers={version}" in options
    assert len(counts) == 1, "the same work in both"
    assert not left(guest)


def test_a_server_that_is_gone_is_an_error_and_no_waiting(guest: Machine) -> None:
    guest.check(f"rm -rf /root/examples; cp -r {SHARE}/examples /root")
    settings = (
        "APSCRATCH=/root/gone NFSDAEMON=kernel NFSVERSIONS=3 NFSMOUNTVERSION=3 NFSPATH=/root/gone/nfs/root"
        " NFSWAIT=120"
    )
    start = f"export {settings} APLIB=/root/examples/nfs PATH=/root/examples/lib:$PATH; "
    guest.check(start + "nfs-server.sh start && fs-setup.sh nfs")
    guest.check(
        "ip netns exec etude-nfs-server unshare --mount sh -c "
        "'mount -t nfsd nfsd /proc/fs/nfsd && echo 0 >/proc/fs/nfsd/threads'"
    )
    status = guest.run(start + "nfs-server.sh status")
    assert status.status == 1
    assert "threads" in status.err
    touch = "import os; os.open('/root/gone/mnt/file', os.O_CREAT | os.O_WRONLY)"
    answer = guest.run(f'/opt/etude/bin/python -c "{touch}"')
    assert answer.status == 1
    assert f"[Errno {errno.EIO}]" in answer.err or f"[Errno {errno.ETIMEDOUT}]" in answer.err
    guest.check(start + "nfs-server.sh stop; fs-cleanup.sh nfs")
    assert not left(guest)


def left(guest: Machine) -> str:
    """Of networks and mounts."""
    return guest.check("ip netns list; findmnt -t nfs,nfs4 || true").strip()
