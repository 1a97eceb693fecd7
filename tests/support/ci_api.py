"""A server on this machine in the place of GitHub's and GitLab's interface to comments."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Api:
    """What the two services answer about comments; it keeps what is requested."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str | None]] = []
        """Method, path and token of each."""
        self.comments: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                token = self.headers.get("PRIVATE-TOKEN") or self.headers.get("Authorization")
                path, _, query = self.path.partition("?")
                outer.requests.append((self.command, path, token))
                length = int(self.headers.get("Content-Length") or 0)
                sent = json.loads(self.rfile.read(length)) if length else None
                body = json.dumps(outer.answer(self.command, path, query, sent)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_PUT = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, method: str, path: str, query: str, sent: Any) -> Any:
        if path == "/user":
            return {"id": 5}
        if method == "GET":
            page = int(query.rpartition("page=")[2])
            return self.comments[100 * (page - 1) : 100 * page]
        if method == "POST":
            number = len(self.comments)
            self.comments.append({"id": number, "user": {"type": "Bot"}, "author": {"id": 5}, **sent})
            return self.comments[-1]
        (changed,) = [each for each in self.comments if path.endswith(f"/{each['id']}")]
        return changed.update(sent)

    @property
    def writes(self) -> list[tuple[str, str, str | None]]:
        return [request for request in self.requests if request[0] != "GET"]


@contextmanager
def serving() -> Iterator[Api]:
    made = Api()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
