"""The log of a gateway: one line for each request, as text or JSON, and the usage as JSON lines."""

from __future__ import annotations

import re
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from segue import private_files
from segue.bridge.relay import Relay
from segue.bridge.reply_relay import ReplyRelay
from segue.canonical.request import Usage
from segue.errors import InputError, ProviderError, format_os_error, mask_quoted

PASSTHROUGH = "raw"
"""The operation of a request that is passed on as it is."""
_MAX_NAME, _MAX_ERROR, _MAX_REJECTION = 200, 1000, 400
# A name of these characters can't be taken for another part of a line.
_PLAIN_NAME = re.compile(r"[\w./:@+~*%-]+(?: \d+)?")


class RequestRecord(Struct):
    """One request, as it is logged. Bodies and keys are not part of it."""

    request_id: str
    method: str
    path: str
    time: str = ""
    client: str = ""
    group: str = ""
    api: str = ""
    operation: str = ""
    route: str = ""
    model: str = ""
    target: str = ""
    status: int = 0
    seconds: float = 0.0
    stream: bool = False
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    summary: int = 0
    """The tokens in and out of summaries of the conversation, which are part of `input` and `output`."""
    cost: float | None = None
    """What the request cost, in dollars; null where no price is known."""
    first: float = 0.0
    """Seconds until the first content of a streamed reply."""
    overhead: float = 0.0
    """Seconds that were spent on neither providers nor the client."""
    findings: dict[str, int] = {}
    finish: str = ""
    error: str = ""
    reason: str = ""
    """Why the gateway rejected the request, as in its metrics."""
    failed: list[str] = []
    switch: str = ""
    """That another target replied before in this conversation, why, and what the switch costs."""
    switch_cost: float | None = None
    """What it costs, in dollars; null where a price is unknown."""
    traceparent: str = ""

    def add_relay(self, relay: Relay) -> None:
        """Record the outcome of an exchange."""
        self.api = relay.wire.name
        self.model = _shorten(relay.model or "")
        self.operation = "reply" if isinstance(relay, ReplyRelay) else "count" if relay.route is not None else ""
        self.route = _shorten(relay.route.name if relay.route is not None else "")
        self.target = _shorten(relay.target or "")
        self.finish = relay.finish or ""
        self.failed = [_shorten(_describe(error)) for error in relay.failed]
        if relay.error is not None and relay.finish in (None, "error"):
            self.error = relay.error.message[:_MAX_ERROR]
            self.reason = "no-key" if relay.error.kind == "no-key" else ""
        elif relay.rejection is not None:
            self.reason = relay.rejection.error_kind or "invalid"
            # A message about a field may quote the body.
            quotes_body = relay.invalid is not None and relay.invalid.path != "model"
            message = relay.rejection.message
            self.error = _shorten(mask_quoted(message) if quotes_body else message, _MAX_REJECTION)
        if relay.usage is not None:
            self.add_usage(relay.usage)
        if relay.summary_usage is not None:
            self.summary = relay.summary_usage.input + relay.summary_usage.output
        if relay.report is not None:
            self.findings = dict(Counter(finding.level for finding in relay.report.findings))

    def add_usage(self, usage: Usage) -> None:
        self.input, self.output = usage.input, usage.output
        self.cache_read, self.cache_write = usage.cache_read, usage.cache_write


class RequestLog:
    """Writes a line for each request to stderr, and with a `usage_file` a JSON line for each request to a model."""

    def __init__(self, *, as_json: bool = False, usage_file: Path | None = None, output: IO[str] | None = None) -> None:
        self._as_json = as_json
        self._output = output
        self._usage_file = usage_file

    def write(self, record: RequestRecord) -> None:
        record.time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = msgspec.json.encode(record).decode() if self._as_json else _format(record)
        self._write_line(line)
        is_used = record.operation == "reply" or (record.operation == PASSTHROUGH and (record.input or record.output))
        if self._usage_file is not None and is_used:
            try:
                private_files.append(self._usage_file, msgspec.json.encode(record) + b"\n")
            except OSError as error:
                self.write_message(f"the usage can't be written: {format_os_error(error)}")

    def write_message(self, text: str) -> None:
        """Write a line that is not about a request."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = msgspec.json.encode({"time": now, "message": text}).decode() if self._as_json else _printable(text)
        self._write_line(line)

    def _write_line(self, line: str) -> None:
        output = self._output or getattr(sys, "stderr", None)
        if output is not None:
            # A log that can't be written must not fail the request.
            with suppress(OSError, ValueError):
                output.write(line + "\n")
                output.flush()

    def check_usage_file(self) -> None:
        """Create the usage file; raise `InputError` if it can't be written."""
        if self._usage_file is not None:
            try:
                private_files.append(self._usage_file, b"")
            except OSError as error:
                raise InputError(f"can't write {self._usage_file}: {format_os_error(error)}", path="usage") from None


def _format(record: RequestRecord) -> str:
    path, model, target = _quote(record.path), _quote(record.model), _quote(record.target)
    parts = [record.request_id, f"{record.method} {path}", str(record.status), f"{record.seconds:.2f} s"]
    if record.client:
        parts.insert(1, record.client)
    if record.target:
        parts.append(target if not record.model else f"{model} → {target}")
    if record.input or record.output:
        cached = f" ({record.cache_read} cached)" if record.cache_read else ""
        parts.append(f"{record.input} in{cached}, {record.output} out")
    if record.summary:
        parts.append(f"{record.summary} of them for a summary")
    findings = [f"{number} {level}" for level, number in record.findings.items() if level != "note"]
    if findings:
        parts.append(", ".join(findings))
    parts += record.failed
    if record.switch:
        parts.append(record.switch)
    if record.error:
        parts.append(record.error)
    return _printable("; ".join(parts))


def _describe(error: ProviderError) -> str:
    number = f" ({error.status})" if error.status else ""
    return f"{_quote(f'{error.provider}/{error.model}')} {error.brief}{number}"


def _shorten(name: str, size: int = _MAX_NAME) -> str:
    # A lone surrogate can be written neither to a file nor as JSON.
    return name[:size].encode("utf-8", "replace").decode()


def _quote(name: str) -> str:
    return name if not name or _PLAIN_NAME.fullmatch(name) else msgspec.json.encode(name).decode()


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
