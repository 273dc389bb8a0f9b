"""The input history: a file readable by its owner only. Lines that contain a secret are not stored."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from prompt_toolkit.history import History

from segue.cli.streams import replace_file
from segue.redaction import redact

__all__ = ["InputHistory", "history_path"]

_MAX_LINES = 2_000


def history_path() -> Path:
    from platformdirs import user_state_path

    return user_state_path("segue") / "input.jsonl"


class InputHistory(History):
    """One JSON string per line, the newest last. Write errors are ignored."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def load_history_strings(self) -> Iterable[str]:
        lines = self._lines()
        if len(lines) > 2 * _MAX_LINES:
            lines = lines[-_MAX_LINES:]
            self._rewrite(lines)
        return reversed(lines)

    def store_string(self, string: str) -> None:
        if redact(string) != string:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(
                self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600
            )
            with os.fdopen(descriptor, "ab") as stream:
                stream.write(msgspec.json.encode(string.encode(errors="replace").decode()) + b"\n")
        except OSError:
            return

    def _lines(self) -> list[str]:
        try:
            data = self._file.read_bytes()
        except OSError:
            return []
        lines: list[str] = []
        for line in data.splitlines():
            try:
                lines.append(msgspec.json.decode(line, type=str))
            except msgspec.DecodeError:
                continue
        return lines

    def _rewrite(self, lines: list[str]) -> None:
        from click import ClickException

        try:
            replace_file(str(self._file), b"".join(msgspec.json.encode(line) + b"\n" for line in lines), private=True)
        except ClickException:
            return
