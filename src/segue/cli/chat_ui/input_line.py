"""The input line: tab completion and the history of inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from segue import private_files
from segue.cli.chat_ui.commands import COMMANDS
from segue.cli.prompt_files import list_prompt_files
from segue.cli.streams import replace_file
from segue.errors import SegueError
from segue.redaction import redact
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat


_MAX_PATHS = 50
_MAX_LINES = 2_000


class ChatCompleter(Completer):
    """Completes commands, their arguments, and paths after `@`."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        word = text.rsplit(None, 1)[-1] if text and not text[-1].isspace() else ""
        if text.startswith("/") and "\n" not in text:
            name, blank, _ = text[1:].partition(" ")
            yield from self._complete_argument(name, word) if blank else self._complete_command(name)
        elif word.startswith("@"):
            yield from self._complete_path(word[1:])

    def _complete_command(self, prefix: str) -> Iterator[Completion]:
        prompts = {name: prompt.description for name, prompt in list_prompt_files(self._chat.folder).items()}
        described = prompts | {name: command.description for name, command in COMMANDS.items()}
        for name, description in described.items():
            if name.startswith(prefix.lower()):
                yield _make_completion(f"/{name}", -len(prefix) - 1, sanitize_line(description))

    def _complete_argument(self, name: str, prefix: str) -> Iterator[Completion]:
        command = COMMANDS.get(name.lower())
        if command is None:
            return
        try:
            suggestions = list(command.suggest(self._chat))
        except SegueError:
            return
        lowered = prefix.lower()
        first = [suggestion for suggestion in suggestions if suggestion[0].lower().startswith(lowered)]
        within = [
            suggestion for suggestion in suggestions if lowered in suggestion[0].lower() and suggestion not in first
        ]
        for text, about in (*first, *within):
            yield _make_completion(text, -len(prefix), about)

    def _complete_path(self, prefix: str) -> Iterator[Completion]:
        folder, _, start = prefix.rpartition("/")
        place = self._chat.folder / (Path(f"{folder}/").expanduser() if folder or prefix[:1] == "/" else "")
        try:
            entries = sorted(os.scandir(place), key=lambda entry: (not entry.is_dir(), entry.name))
        except OSError:
            return
        shown = 0
        for entry in entries:
            hidden = entry.name.startswith(".") and not start.startswith(".")
            # Names with control characters are skipped.
            if hidden or not entry.name.lower().startswith(start.lower()) or not entry.name.isprintable():
                continue
            yield Completion(f"{entry.name}{'/' if entry.is_dir() else ''}", -len(start))
            shown += 1
            if shown == _MAX_PATHS:
                return


def _make_completion(text: str, start: int, about: str) -> Completion:
    return Completion(text, start, display=sanitize_line(text), display_meta=sanitize_line(about))


def history_path() -> Path:
    from platformdirs import user_state_path

    return user_state_path("segue") / "input.jsonl"


class InputHistory(History):
    """A file readable by its owner only: one JSON string per line, the newest last.

    Lines that contain a secret are not stored. Write errors are ignored.
    """

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
        with suppress(OSError):
            private_files.append(self._file, msgspec.json.encode(string.encode(errors="replace").decode()) + b"\n")

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
