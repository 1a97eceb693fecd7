"""A harness whose system has a node of its own, in a real allocation of two nodes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.ports import free_ports
from support.slurm_cluster import Cluster, needs_slurm, wait_until

pytestmark = pytest.mark.beside

SERVER = """\
import socket, sys
listening = socket.create_server(("", int(sys.argv[1])))
while True:
    with listening.accept()[0] as asked:
        asked.sendall(socket.gethostname().encode())
"""
LOAD = """\
import json, socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as asked:
    said = asked.recv(99).decode()
open(sys.argv[3], "w").write(f"{socket.gethostname()} asked {said}")
print(json.dumps({"duration_s": 0.1, "offered": 10, "started": 10, "completed": 10, "mean_s": 0.01}))
"""
TRIALS = """\
import json, subprocess, sys
from pathlib import Path
from etude.peak.harnesses.spec import read_harness
from etude.peak.task import TrialRequest

def left():
    words = ["srun", "--overlap", "-N1", "-n1", "-w", "n2", "pgrep", "-c", "-f", "[s]erver.py"]
    return int(subprocess.run(words, capture_output=True, text=True).stdout)

place = Path(sys.argv[1])
with read_harness(place / "apart.toml").bench({}, place / "scratch") as bench:
    ended = [bench.run(TrialRequest(100.0, 1.0, "test"), lambda windows: False).ended for _ in range(2)]
    during = left()
print(json.dumps({"ended": ended, "during": during, "after": left()}))
"""


def written(place: Path, start: str) -> None:
    """A harness with its programs."""
    (port,) = free_ports(1)
    for name, text in (("server.py", SERVER), ("load.py", LOAD), ("trials.py", TRIALS)):
        (place / name).write_text(text)
    (place / "apart.toml").write_text(
        '[goal]\nmean = "40 ms"\n[load]\nlowest = 1\nhighest = 1000\n[reader]\nkind = "windows"\n'
        f'[factors]\nport = {port}\n[commands]\napart = true\ngrace = "500 ms"\n'
        f"start = '{start}'\n"
        f'ready = \'{sys.executable} -c "import socket; socket.create_connection((\\"{{server}}\\", {{port}}))"\'\n'
        f"load = '{sys.executable} {{here}}/load.py {{server}} {{port}} {{here}}/asked; : {{load}}'\n"
    )


def made(cluster: Cluster, place: Path) -> dict[str, object]:
    """What trials in an allocation said."""
    said = place / "said"
    line = f"{sys.executable} {place}/trials.py {place} >{said}.part; mv {said}.part {said}"
    errors = place / "errors"
    cluster.run("sbatch", "-N2", "--exclusive", "-o", str(errors), "--wrap", line)
    wait_until(said.exists, cluster.log)
    assert said.read_text(), errors.read_text()
    found: dict[str, object] = json.loads(said.read_text())
    return found


FOREGROUND = f"exec {sys.executable} {{here}}/server.py {{port}}"
DAEMON = f"setsid {sys.executable} {{here}}/server.py {{port}} </dev/null >/dev/null 2>&1 & exit 0"


@needs_slurm
@pytest.mark.parametrize(
    "start",
    [
        pytest.param(FOREGROUND, id="stays"),
        pytest.param(DAEMON, id="leaves it running"),
    ],
)
def test_the_system_runs_on_the_second_node_and_has_ended_with_the_bench(
    cluster: Cluster, tmp_path: Path, start: str
) -> None:
    written(tmp_path, start)
    found = made(cluster, tmp_path)
    assert (tmp_path / "asked").read_text() == "n1 asked n2"
    assert found["ended"] == ["whole", "whole"]
    assert found["during"]
    assert found["after"] == 0
