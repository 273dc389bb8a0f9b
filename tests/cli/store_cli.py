"""A store in a temporary folder, and the commands run on it in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from segue._conversation import Conversation
from segue.cli import app
from segue.store.base import ConversationStore
from segue.store.conversation import StoredConversation
from segue.store.events import Event
from segue.store.export import save_events
from segue.store.sqlite import SqliteStore

CALL = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "notes.txt"}}
CALL_REPLY = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "I look."}, CALL]}
FINAL_REPLY = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Bread."}]}


class CliResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def is_one_line_error(self) -> bool:
        """One error line on stderr and no output."""
        return not self.out and self.err.startswith("segue: ") and self.err.count("\n") == 1


class StoreCli:
    """A folder with a store in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "history.db"

    def __call__(self, *arguments: str, stdin: bytes = b"") -> CliResult:
        with CliRunner(env={"SEGUE_STORE": str(self.path)}).isolation(input=stdin) as (out, err, _):
            code = app.run(arguments)
            return CliResult(code, out.getvalue().decode(), err.getvalue().decode())

    def store(self) -> SqliteStore:
        return SqliteStore(self.path)

    def add_conversation(self, title: str | None = "Shopping") -> str:
        """Two turns, the first with a call, sent to Anthropic."""
        with self.store() as store:
            chat = Conversation(system="Be brief.", tools=[{"name": "read_file", "input_schema": {"type": "object"}}])
            with StoredConversation.create(store, chat, title=title) as stored:
                stored.add_user("What is in notes.txt?")
                stored.render("anthropic", "claude-sonnet-4-5")
                reply = stored.add_reply(CALL_REPLY, source="anthropic")
                stored.add_result(reply.calls[0], "Buy bread.")
                stored.render("anthropic", "claude-sonnet-4-5")
                stored.add_reply(FINAL_REPLY, source="anthropic")
                return stored.id

    def add_events(self, *events: Event) -> str:
        with self.store() as store:
            return save_events(store, events)

    def write_file(self, name: str, data: bytes | str | object) -> str:
        path = self.folder / name
        if not isinstance(data, bytes | str):
            data = json.dumps(data)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)


def create_conversations(store: ConversationStore, count: int) -> list[str]:
    return [store.create(f"conversation {number}") for number in range(count)]


def json_lines(lines: Iterable[object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
