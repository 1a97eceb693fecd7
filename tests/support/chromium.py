"""A real headless Chromium, spoken to over its debugging pipe: no port, no network, no further package."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
PATIENCE_S = 60.0


class Page:
    """One tab. `events` holds all that the browser told unasked."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._read = b""
        self._number = 0
        self._session: str | None = None
        self._target: str | None = None
        self.events: list[dict[str, Any]] = []
        self.renew()

    def renew(self) -> None:
        """A new tab instead of the one before, which is closed."""
        self._session, before = None, self._target
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        if before:
            self.send("Target.closeTarget", targetId=before)
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._target = target
        self.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer; RuntimeError where the browser refuses."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                found: dict[str, Any] = answer["result"]
                return found
            if "method" in answer:
                self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            if not select.select([self._answers], [], [], PATIENCE_S)[0]:
                raise TimeoutError(f"Chromium said nothing for {PATIENCE_S:.0f} s")
            part = os.read(self._answers, 1 << 20)
            if not part:
                raise RuntimeError("Chromium ended")
            self._read += part
        first, _, self._read = self._read.partition(b"\0")
        answer: dict[str, Any] = json.loads(first)
        return answer

    def open(self, url: str) -> None:
        """Go there and wait until it is loaded."""
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def look(self, width: int = 1200, scheme: str = "light", **features: str) -> None:
        """A new tab of that width, 900 pixels high, for readers with these preferences (`reduced_motion="reduce"`)."""
        self.renew()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        preferences = {"color_scheme": scheme} | features
        media = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in preferences.items()
        ]
        self.send("Emulation.setEmulatedMedia", features=media)

    def ask(self, expression: str) -> Any:
        """The value of an expression, of a promise what it resolves to."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until the expression is true."""
        end = time.monotonic() + PATIENCE_S
        while not self.ask(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"never came true: {condition}")
            time.sleep(0.02)

    def key(self, key: str) -> None:
        """Press and release a key, such as `Enter` or `ArrowRight`."""
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        codes = {"Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def told(self, method: str) -> list[dict[str, Any]]:
        """The parameters of all events of that name so far."""
        return [event["params"] for event in self.events if event["method"] == method]

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions that nobody caught."""
        found = [entry["entry"]["text"] for entry in self.told("Log.entryAdded")]
        found += [
            json.dumps(call["args"])
            for call in self.told("Runtime.consoleAPICalled")
            if call["type"] in ("error", "warning", "assert")
        ]
        return found + [json.dumps(thrown) for thrown in self.told("Runtime.exceptionThrown")]

    def requests(self) -> list[str]:
        """Addresses that were asked for, but for the page's own file and data within it."""
        urls = [request["request"]["url"] for request in self.told("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))]


@contextmanager
def chromium() -> Iterator[Page]:
    """A browser with an empty profile, ended and removed afterwards."""
    profile = tempfile.mkdtemp(prefix="etude-chromium-")
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    # The browser reads descriptor 3 and writes 4; a shell puts ours there.
    line = f'exec chromium "$@" 3<&{to_browser} 4>&{from_browser}'
    process = subprocess.Popen(
        ["bash", "-c", line, "chromium", *OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Page(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        shutil.rmtree(profile, ignore_errors=True)
