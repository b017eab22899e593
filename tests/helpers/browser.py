"""Headless Chromium over its debugging pipe, for tests of pages; only the browser is installed."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: install chromium to run browser tests")


class Browser:
    """One page of a browser that has no network."""

    def __init__(self, width=1280, height=800):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()

        def connect():
            low = os.dup(to_browser), os.dup(from_browser)  # the ends may themselves be numbered 3 or 4
            os.dup2(low[0], 3)
            os.dup2(low[1], 4)

        flags = f"""--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run --disable-sync
            --disable-dev-shm-usage --remote-debugging-pipe --window-size={width},{height}""".split()
        self.process = subprocess.Popen(
            [CHROMIUM, *flags, f"--user-data-dir={self.profile.name}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self.events = []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._to)
        self.process.terminate()
        self.process.wait(10)
        os.close(self._from)
        self.profile.cleanup()

    def _receive(self):
        while b"\0" not in self._buffer:
            block = os.read(self._from, 1 << 20)
            if not block:
                raise RuntimeError("the browser has gone")
            self._buffer += block
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def of(self, method):
        """Return the parameters of the events of a method."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def open(self, path: Path):
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self.of("Page.loadEventFired"):
            self.events.append(self._receive())
        self.settle()

    def settle(self):
        """Wait until the requested page is drawn."""
        self.js("new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 60))")

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)}).textContent")

    def press(self, *keys):
        for key in keys:
            text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def click(self, selector):
        box = self.js(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        self.settle()

    def requests(self):
        """Return the addresses that the page requested."""
        return [event["request"]["url"] for event in self.of("Network.requestWillBeSent")]

    def complaints(self):
        """Return errors and warnings of the console."""
        entries = [event["entry"] for event in self.of("Log.entryAdded")]
        thrown = [event["exceptionDetails"] for event in self.of("Runtime.exceptionThrown")]
        return [entry["text"] for entry in entries if entry["level"] in ("error", "warning")] + thrown
