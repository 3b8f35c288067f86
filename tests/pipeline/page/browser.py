"""Chromium without a screen, told what to do through two pipes (Chrome DevTools Protocol); it needs no library."""

import json
import os
import shutil
import signal
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60


def chromium() -> str | None:
    """Return the program, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A page in a browser: what it logs, what it loads, and what its script says."""

    def __init__(self, program: str, folder: Path) -> None:
        """Start it; `folder`: for all that it writes."""
        self.events: list[dict[str, Any]] = []
        self._number, self._left = 0, b""
        (there, self._write), (self._read, back) = os.pipe(), os.pipe()
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
        # Bash puts the pipes where the protocol wants them: 3 and 4.
        command = ["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", *words, "--remote-debugging-pipe"]
        log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            command, pass_fds=(there, back), stderr=log, stdout=log, start_new_session=True
        )
        os.close(there)
        os.close(back)
        signal.alarm(PATIENCE_S)
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    _session = ""

    def __call__(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._left += part
        text, _, self._left = self._left.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        if "method" in answer:
            self.events.append(answer)
        return answer

    def open(self, url: str, width: int, height: int = 900, dark: bool = False) -> None:
        """Open a page in a window of this size and wait until it is loaded."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def run(self, script: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press a key, and let it go."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32}
        about = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self("Input.dispatchKeyEvent", type="keyDown", text={"Enter": "\r", " ": " "}.get(key, text), **about)
        self("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self("Input.insertText", text=text)

    def screenshot(self, path: Path) -> None:
        """Keep what the window shows."""
        path.write_bytes(b64decode(self("Page.captureScreenshot", format="png")["data"]))

    def wrong(self) -> list[str]:
        """Return the errors that the page has logged or thrown, and what it has loaded but itself and its pictures."""
        said = []
        for event in self.events:
            match event["method"], event["params"]:
                case "Runtime.exceptionThrown", params:
                    said.append(str(params["exceptionDetails"]))
                case "Runtime.consoleAPICalled", {"type": "error" | "warning" | "assert", **params}:
                    said.append(str(params))
                case "Log.entryAdded", params:
                    said.append(str(params["entry"]))
                case "Network.requestWillBeSent", params if not params["request"]["url"].startswith(("file:", "data:")):
                    said.append(str(params["request"]["url"]))
        return said

    def close(self) -> None:
        """End it."""
        signal.alarm(0)
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
