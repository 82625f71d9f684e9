"""A page in headless Chromium, driven over Chromium's own debugging pipe: no driver package, no network port."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
]  # fmt: skip
PATIENCE = 90


class Browser:
    """One tab. Keeps what the page complained of, and every address that it asked for."""

    def __init__(self, profile: Path, width: int = 1200, height: int = 900):
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()

        def connect() -> None:
            """Chromium reads commands from descriptor 3 and answers on 4."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, to_us)]
            for end, place in zip(ends, (3, 4), strict=True):
                os.dup2(end, place)

        self.process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"],
            pass_fds=(3, 4), preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
        )  # fmt: skip
        os.close(to_browser)
        os.close(to_us)
        self._out, self._in = os.fdopen(from_us, "wb", buffering=0), os.fdopen(from_browser, "rb")
        self._pending, self._count, self._session = b"", 0, None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; events on the way are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._keep(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            part = os.read(self._in.fileno(), 1 << 20)
            assert part, "the browser ended"
            self._pending += part
        message, self._pending = self._pending.split(b"\0", 1)
        return json.loads(message)

    def _keep(self, event: dict[str, Any]) -> None:
        found = event.get("params", {})
        if event["method"] == "Runtime.consoleAPICalled":
            self.complaints.append(str([item.get("value", item.get("description")) for item in found["args"]]))
        elif event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(found["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded":
            self.complaints.append(f"{found['entry']['text']} {found['entry'].get('url', '')}")
        elif event["method"] == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])

    def open(self, page: Path, fragment: str = "") -> None:
        """Open a page and wait until its script has started everything."""
        self.call("Page.navigate", url=page.as_uri() + fragment)
        self.wait_for("document.documentElement?.dataset.ready === ''")

    def run(self, script: str) -> Any:
        """Evaluate JavaScript, awaiting a promise, and return its value."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until JavaScript is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"never true: {condition}; complaints: {self.complaints}"
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        """Press keys, as a person at a keyboard would."""
        codes = {"Enter": 13, "Tab": 9, " ": 32, "ArrowDown": 40}
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            facts = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())), "text": text}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **facts)
            self.call("Input.dispatchKeyEvent", type="keyUp", **{**facts, "text": ""})

    def choose(self, select: str, value: str) -> None:
        """Choose an option of a select by its id, and tell the page."""
        self.run(
            f"(() => {{ const select = document.getElementById({json.dumps(select)}); select.value = "
            f"{json.dumps(value)}; select.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
        )

    def dark(self, on: bool) -> None:
        """Prefer a dark or a light page."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path, selector: str | None = None) -> None:
        """Save a picture of the window, or of an element."""
        options: dict[str, Any] = {}
        if selector:
            box = self.run(
                f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
                "return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}; })()"
            )
            options = {"clip": box, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self._out.write(json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        self.process.wait(timeout=PATIENCE)
        self._out.close()
        self._in.close()
