"""`segue serve` as a process, and a Chat Completions client that moves between gateways."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from segue.canonical.blocks import Thinking
from segue.emulator import Emulator
from segue.gateway.metrics import MetricsSnapshot
from segue.render.reasoning import has_reasoning_content
from segue.wire.registry import WIRES
from tests.cli.process import SEGUE, environment

_DEADLINE = 60
_CONFIG = """
model = "{model}"
[providers.test]
api = "{api}"
base_url = "{url}"
key_variable = "TEST_KEY"
"""
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}


class GatewayProcess:
    """A running `segue serve`. `log` has what it and its workers wrote."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        self.url = self._wait_until_ready()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def _wait_until_ready(self) -> str:
        deadline = time.monotonic() + _DEADLINE
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := re.search(r"serving .* on (http://\S+);", self.log):
                return found[1]
            time.sleep(0.02)
        raise AssertionError(f"the gateway did not start: {self.log}")

    def wait_for(self, text: str) -> None:
        """Wait until the log has a text."""
        deadline = time.monotonic() + _DEADLINE
        while text not in self.log:
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def wait_for_metric(self, name: str, value: float, label: str = "", key: str = "") -> None:
        """Wait until the values of a counter, of those with this label, add up to this."""
        deadline = time.monotonic() + _DEADLINE
        while True:
            headers = {"x-api-key": key} if key else {}
            lines = httpx2.get(f"{self.url}/metrics", headers=headers, timeout=_DEADLINE).text.splitlines()
            series = [line for line in lines if line.startswith((f"{name}{{", f"{name} ")) and label in line]
            total = sum(float(line.rpartition(" ")[2]) for line in series)
            if total == value:
                return
            assert time.monotonic() < deadline, total
            time.sleep(0.1)

    def workers(self) -> list[int]:
        """Return the process ids of the workers."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, check=True, text=True)
        pairs = [line.split() for line in listed.stdout.splitlines()]
        return [int(number) for number, parent in pairs if int(parent) == self.process.pid]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(_DEADLINE)


class Home:
    """A user's home folder: one configuration, one envelope key, any number of gateways."""

    def __init__(self, folder: Path, emulator: Emulator, model: str) -> None:
        self._folder = folder
        self._model = f"test/{model}"
        self._number = 0
        self.config = folder / ".config" / "segue" / "config.toml"
        self.client_keys = self.config.with_name("client-keys.json")
        self.config.parent.mkdir(parents=True)
        self.config.write_text(_CONFIG.format(model=self._model, api=emulator.api, url=emulator.base_url))
        self.variables = environment(HOME=str(folder), TEST_KEY="upstream-key")

    @contextmanager
    def serve(self, *options: str, has_model: bool = True) -> Generator[GatewayProcess]:
        """Run a gateway on a free port until the end of the block; with `has_model`, for all model names."""
        model = ("-m", self._model) if has_model else ()
        self._number += 1
        log = self._folder / f"log-{self._number}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*SEGUE, "serve", *model, "--port", "0", *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.variables,
            )
        gateway: GatewayProcess | None = None
        try:
            gateway = GatewayProcess(process, log)
            yield gateway
        finally:
            if gateway is None:
                process.kill()
                process.wait()
            else:
                gateway.end()

    @contextmanager
    def serve_several(self, number: int, *options: str) -> Generator[list[GatewayProcess]]:
        with ExitStack() as stack:
            yield [stack.enter_context(self.serve(*options)) for _ in range(number)]

    def wait_for_written_requests(self, number: int) -> None:
        """Wait until the workers have written that they answered so many requests of an API."""
        deadline = time.monotonic() + _DEADLINE
        total = 0.0
        while total != number:
            assert time.monotonic() < deadline, total
            time.sleep(0.05)
            files = self._folder.rglob("gateway-*.metrics-*[0-9]")
            written = [msgspec.json.decode(file.read_bytes(), type=MetricsSnapshot) for file in files]
            values = [value for one in written for value in one.values if value[0] == "segue_requests_total"]
            total = sum(value for _, labels, value in values if "api" in dict(labels))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command of this user."""
        return subprocess.run(
            [*SEGUE, *arguments], env=self.variables, capture_output=True, text=True, timeout=_DEADLINE, check=False
        )


class ChatClient:
    """One conversation of a Chat Completions client. It drops the reasoning, and uses a new connection each time."""

    def __init__(self, prompt: str) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]

    def send(self, url: str, model: str = "any") -> str | None:
        """Send the conversation, append the reply and the results of its calls; return the text of a final reply."""
        body = {"model": model, "messages": self.messages, "tools": [TOOL], "reasoning_effort": "high"}
        response = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=_DEADLINE)
        assert response.status_code == 200, response.text
        message = response.json()["choices"][0]["message"]
        calls = message.get("tool_calls")
        kept = {"role": "assistant", "content": message.get("content")}
        self.messages.append({**kept, "tool_calls": calls} if calls else kept)
        for call in calls or ():
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "seen"})
        return None if calls else message["content"]


def count_thoughts(emulator: Emulator) -> list[int]:
    """Return how many thoughts each request had that reached the provider."""
    counts: list[int] = []
    for request in emulator.requests:
        assert request.refused is None, request.refused
        messages = WIRES[emulator.api].parse_request(request.body).messages
        counts.append(
            sum(
                isinstance(block, Thinking) and has_reasoning_content(block.text, block.signature, block.encrypted)
                for message in messages
                for block in message.blocks
            )
        )
    return counts


def process_exists(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True
