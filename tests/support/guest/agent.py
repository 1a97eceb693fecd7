"""Talking to QEMU's guest agent: one command, one answer, JSON lines on a socket that QEMU passes on to the guest.

Requests and answers are those of the package qemu-guest-agent (its reference: "QEMU Guest Agent Protocol Reference").
While the guest restarts nobody answers, and what was asked before is never answered: so a connection begins with a
number that has to come back, and after a restart there is a new connection.
"""

from __future__ import annotations

import base64
import itertools
import json
import socket
import time
from pathlib import Path
from typing import Any

PIECE_BYTES = 1 << 20
"""Of files, in one request."""

SILENCE_S = 2.0
"""After this without an answer to the number, another one is sent, on a new connection."""


class Silent(Exception):
    """The agent did not answer in time: the guest starts, restarts, hangs or is off."""


class Refused(Exception):
    """The agent answered with an error."""


class Agent:
    """A connection to the agent of one guest; QEMU keeps it while the guest restarts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._kept = b""
        self._numbers = itertools.count(time.monotonic_ns() % 1_000_000_000)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def greet(self, within_s: float) -> None:
        """Connect anew, and wait until the agent answers.

        Raises:
            Silent: it did not within this time.
        """
        until = time.monotonic() + within_s
        while (left_s := until - time.monotonic()) > 0:
            try:
                self._connect()
                self._greet(min(SILENCE_S, left_s))
                return
            except (OSError, Silent):
                time.sleep(min(0.2, left_s))
        raise Silent(f"the guest's agent did not answer within {within_s:.0f} s")

    def _connect(self) -> None:
        self.close()
        self._kept = b""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(self._path))

    def _greet(self, within_s: float) -> None:
        number = next(self._numbers)
        self._send("guest-sync", {"id": number}, within_s)
        while self._answer(within_s).get("return") != number:
            pass  # To a question of before.

    def ask(self, command: str, within_s: float = 30.0, **arguments: Any) -> Any:
        """What the agent returns for a command; names are given with _ for -.

        Raises:
            Refused: an error.
            Silent: nothing within this time; the guest may have done it all the same.
        """
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        self._send(command, named, within_s)
        answer = self._answer(within_s)
        if "error" in answer:
            raise Refused(f"{command}: {answer['error'].get('desc', answer['error'])}")
        return answer["return"]

    def write(self, path: str, content: bytes) -> None:
        """A file in the guest, whole."""
        handle = self.ask("guest-file-open", path=path, mode="w")
        try:
            for start in range(0, len(content), PIECE_BYTES):
                piece = base64.b64encode(content[start : start + PIECE_BYTES]).decode()
                self.ask("guest-file-write", handle=handle, buf_b64=piece)
        finally:
            self.ask("guest-file-close", handle=handle)

    def read(self, path: str) -> bytes:
        """A file of the guest, whole."""
        handle = self.ask("guest-file-open", path=path, mode="r")
        try:
            pieces = []
            while not pieces or not pieces[-1]["eof"]:
                pieces.append(self.ask("guest-file-read", handle=handle, count=PIECE_BYTES))
        finally:
            self.ask("guest-file-close", handle=handle)
        return b"".join(base64.b64decode(piece["buf-b64"]) for piece in pieces)

    def _send(self, command: str, arguments: dict[str, Any], within_s: float) -> None:
        if self._socket is None:
            raise Silent(f"{command}: not connected; the guest is off or starts")
        self._socket.settimeout(max(within_s, 0.1))
        try:
            self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        except TimeoutError:
            raise Silent(f"{command}: nobody reads it") from None
        except OSError as error:
            raise Silent(f"{command}: {error}; the guest is off") from None

    def _answer(self, within_s: float) -> dict[str, Any]:
        """The next line that is an object."""
        assert self._socket is not None
        until = time.monotonic() + within_s
        while True:
            line, found, rest = self._kept.partition(b"\n")
            if found:
                self._kept = rest
                try:
                    answer = json.loads(line.lstrip(b"\xff"))
                except ValueError:
                    continue  # Half a line of before a restart.
                if isinstance(answer, dict):
                    return answer
                continue
            self._socket.settimeout(max(until - time.monotonic(), 0.01))
            try:
                more = self._socket.recv(1 << 20)
            except TimeoutError:
                raise Silent(f"no answer within {within_s:.0f} s") from None
            except OSError as error:
                raise Silent(f"{error}; the guest is off") from None
            if not more:
                raise Silent("the guest is off")
            self._kept += more
