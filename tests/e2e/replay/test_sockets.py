"""Programs that talk over Unix sockets with names, recorded and replayed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from etude.program import engine_path
from support.recordings import environment

pytestmark = pytest.mark.beside

ONE_AFTER_ANOTHER = """
import os, socket, socketserver, threading
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line * 2)
def asks(number):
    for turn in range(3):
        with socket.socket(socket.AF_UNIX) as own:
            own.connect("s")
            with own.makefile("rwb", buffering=0) as file:
                for size in range(20):
                    file.write(b"x" * (size + number) + b"\\n")
                    file.readline(), file.readline()
with socketserver.UnixStreamServer("s", Echo) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for number in range(3):
        if not os.fork():
            asks(number)
            os._exit(0)
    for number in range(3):
        os.wait()
    server.shutdown()
os.unlink("s")
"""

EVENTS = """
import asyncio, os
async def answers(reads, writes):
    while line := await reads.readline():
        writes.write(line * 2)
        await writes.drain()
    writes.close()
async def asks(size):
    for turn in range(4):
        reads, writes = await asyncio.open_unix_connection("s")
        writes.write(b"x" * size + b"\\n")
        await reads.readline()
        await reads.readline()
        writes.close()
        await writes.wait_closed()
async def main():
    server = await asyncio.start_unix_server(answers, "s", limit=1 << 20)
    await asyncio.gather(*(asks(10000 * number) for number in range(1, 4)))
    server.close()
asyncio.run(main())
"""

SEVERAL_ACCEPT = """
import os, socket
own = socket.socket(socket.AF_UNIX)
own.bind("\\0etude-%d" % os.getpid())
own.listen(16)
for server in range(3):
    if not os.fork():
        while (asked := (one := own.accept()[0]).recv(100)) != b"end":
            one.sendall(asked * 10)
            one.close()
        os._exit(0)
def asks(what):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(own.getsockname())
        one.sendall(what)
        while one.recv(1000):
            pass
clients = []
for number in range(4):
    clients.append(os.fork())
    if not clients[-1]:
        for turn in range(10):
            asks(b"x" * (turn + number + 4))
        os._exit(0)
for client in clients:
    os.waitpid(client, 0)
for server in range(3):
    asks(b"end")
    os.wait()
"""


def engine(*words: str | Path, at: Path) -> str:
    done = subprocess.run(
        [engine_path(), *words],
        cwd=at,
        env=environment(at / "sites"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("program", "connections"),
    [(ONE_AFTER_ANOTHER, 9), (EVENTS, 12), (SEVERAL_ACCEPT, 43)],
    ids=["socketserver", "asyncio", "prefork"],
)
def test_all_that_went_over_connections_is_played(program: str, connections: int, tmp_path: Path) -> None:
    engine("record", "-q", "-o", "a.trace", "--", sys.executable, "-c", program, at=tmp_path)
    engine("script", "-q", "a.trace", "-o", "a.script", at=tmp_path)
    engine("compile", "-q", "a.script", at=tmp_path)
    engine("prepare", "-q", "a.script", "stage", at=tmp_path)
    found = json.loads(engine("replay", "--json", "a.roll", "stage", at=tmp_path))
    calls = found["by_call"]
    accepted = sum(calls.get(name, {"count": 0})["count"] for name in ("accept", "accept4"))
    assert (calls["connect"]["count"], accepted, found["mismatches"]) == (connections, connections, 0)
    streams = ("sendto", "recvfrom", "sendmsg", "recvmsg")
    looked = "pipe or socket that was looked at, and not waited for"
    left = {each["why"] for each in found["unplayed"]["dropped"] if each["call"] in streams and each["bytes"]}
    assert left - {looked} == set()
