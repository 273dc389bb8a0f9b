"""A user's home with sessions of coding clients, and the moves between them."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import segue
from segue.bridge.envelopes import EnvelopeKeys
from segue.canonical.blocks import ToolCall, ToolResponse, text_of
from segue.sessions.client import Client, ClientHome, SessionFile
from segue.sessions.gemini_contents import unnest_media
from segue.sessions.move_record import MoveRecord
from segue.sessions.mover import MovePlan, Mover, MoveResult
from segue.sessions.registry import CLIENTS
from segue.sessions.session import Session, parse_session
from tests.sessions import opencode_import
from tests.sessions.record import FOLDER, WORK

_ID = re.compile(r"\b(?:toolu|call|msg|prt|rs|fc|fco)_[A-Za-z0-9_]{16,}")
_UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}((?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
KEYS = EnvelopeKeys(b"k" * 32)
START = 1_795_000_000_000_000
API_FIELDS: dict[str, dict[str, Any]] = {
    "anthropic": {"max_tokens": 1000, "tools": [{"name": "stub", "input_schema": {"type": "object"}}]},
    "openai-responses": {"store": False},
    "gemini": {},
}
_PROMPTS: dict[str, dict[str, Any]] = {
    "anthropic": {"role": "user", "content": "Go on."},
    "openai-responses": {"role": "user", "content": "Go on."},
    "gemini": {"role": "user", "parts": [{"text": "Go on."}]},
}

_SUFFIXES = {"opencode": "json"}
# Gemini CLI and Qwen Code begin every request with a message of their own.
_CONTEXT: dict[str, list[dict[str, Any]]] = {"gemini": [{"role": "user", "parts": [{"text": "<session_context>"}]}]}
_PATHS = {
    "claude": ".claude/projects/-home-me-project/{id}.jsonl",
    "codex": ".codex/sessions/2026/11/18/rollout-2026-11-18T05-00-00-{id}.jsonl",
    "gemini": ".gemini/tmp/project/chats/session-2026-11-18T05-00-{short}.jsonl",
    "qwen": ".qwen/projects/-home-me-project/chats/{id}.jsonl",
    "pi": ".pi/agent/sessions/--home-me-project--/2026-11-18T05-00-00-000Z_{id}.jsonl",
}


class World:
    """A home folder. The clock advances by a second with each move.

    opencode is a script that stands in for it, and its sessions are of a folder that exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "bin" / "opencode"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I '{opencode_import.__file__}' \"$@\"\n")
        program.chmod(0o700)
        environ = {"PATH": f"{program.parent}:/usr/bin:/bin", "XDG_DATA_HOME": str(folder / "data")}
        self.home = ClientHome(folder / "home", environ, "linux", str(folder / "history.db"))
        self.record = MoveRecord(folder / "moves.db")
        self.key_file = folder / "envelope.key"
        self.key_file.touch(0o600)
        self.key_file.write_bytes(b64encode(KEYS.current))
        self._now = START
        self._resumed = 0

    def add(self, client: str, data: bytes, id: str = "0a1b2c3d-0000-4000-8000-000000000001") -> SessionFile:
        """Add a session of a client with this content."""
        if client == "opencode":
            return self._add_opencode(json.loads(data))
        path = self.home.path / _PATHS[client].format(id=id, short=id[:8])
        path.parent.mkdir(parents=True, exist_ok=True)
        if client == "gemini":
            (path.parent.parent / ".project_root").write_text(WORK)
        path.write_bytes(data)
        return CLIENTS[client].describe(path)

    def add_lines(self, client: str, lines: list[dict[str, Any]]) -> SessionFile:
        return self.add(client, b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    def _add_opencode(self, value: dict[str, Any]) -> SessionFile:
        file = self.folder / "session.json"
        file.write_text(json.dumps(value))
        opencode_import.main(file, self.folder / "data", str(self.folder))
        found = CLIENTS["opencode"].find(self.home, None)
        return next(session for session in found if session.id == value["info"]["id"])

    def add_recorded(self, client: str) -> SessionFile:
        """Add the recorded session of a client."""
        return self.add(client, (FOLDER / f"{client}.{_SUFFIXES.get(client, 'jsonl')}").read_bytes())

    def plan(self, session: SessionFile, target: str) -> MovePlan:
        return self._plan(self._mover(), session, target)

    def move(self, session: SessionFile, target: str) -> MoveResult:
        mover = self._mover()
        return mover.write(self._plan(mover, session, target))

    def _plan(self, mover: Mover, session: SessionFile, target: str) -> MovePlan:
        cwd = str(self.folder) if target == "opencode" else WORK
        return mover.plan(CLIENTS[session.client], session, CLIENTS[target], cwd)

    def _mover(self) -> Mover:
        self._now += 1_000_000
        return Mover(self.home, self.record, self._now, self.key_file)

    def load(self, session: SessionFile) -> bytes:
        return CLIENTS[session.client].load(self.home, session)

    def read(self, session: SessionFile) -> Session:
        return parse_session(CLIENTS[session.client], session, self.load(session))

    def resume(self, session: SessionFile) -> None:
        """Let the client continue a session: append the lines that it wrote when it was recorded."""
        self._resumed += 1
        text = (FOLDER / f"{session.client}.more.{_SUFFIXES.get(session.client, 'jsonl')}").read_text()
        # Each time with ids of their own.
        text = _UUID.sub(lambda found: f"{self._resumed:08x}{found[1]}", _ID.sub(rf"\g<0>{self._resumed}", text))
        if session.client == "opencode":
            self._add_opencode(_adapt_opencode(json.loads(text), json.loads(self.load(session))))
            return
        lines = [json.loads(line) for line in text.splitlines()]
        before = [json.loads(line) for line in self.load(session).splitlines()]
        if session.client == "gemini":
            added = _adapt_gemini(lines, self.read(session).log.body["contents"], session.id)
        else:
            added = _ADAPTERS[session.client](lines, before, session.id)
        with session.path.open("ab") as file:
            file.writelines(json.dumps(line).encode() + b"\n" for line in added)

    def is_continued(self, session: SessionFile, before: bytes) -> bool:
        """Return whether a session begins with what it was before, and has more."""
        after = self.load(session)
        key = {"opencode": "messages", "segue": "events"}.get(session.client)
        if key is None:
            return after.startswith(before) and len(after) > len(before)
        first, second = json.loads(before), json.loads(after)
        count = len(first[key])
        second["updated"] = first["updated"] = None
        return len(second[key]) > count and {**second, key: second[key][:count]} == first

    def sent_body(self, session: SessionFile) -> dict[str, Any]:
        """Return the request with which the client would continue the session after another prompt."""
        client = CLIENTS[session.client]
        body = dict(self.read(session).log.body)
        body.pop("model", None)
        if session.client == "opencode":
            body["messages"] = list(_without_unsigned(body["messages"]))
        key = next(key for key in ("messages", "input", "contents") if key in body)
        return {
            **API_FIELDS[client.api],
            **body,
            key: [*_CONTEXT.get(client.api, ()), *body[key], _PROMPTS[client.api]],
        }

    def violations(self, session: SessionFile) -> list[str]:
        """Return the rules that the client's next request would break."""
        verdict = segue.check(self.sent_body(session), CLIENTS[session.client].api)
        return [f"{each.rule} {each.path}: {each.message}" for each in verdict if each.severity == "reject"]

    def calls(self, session: SessionFile) -> list[tuple[str, str, str]]:
        """Return the name, the arguments and the result of each call in a session."""
        return list(_pair(self.read(session)))


def _without_unsigned(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the messages as opencode sends them to Anthropic: without reasoning of other providers."""
    for message in messages:
        content = [block for block in message["content"] if block["type"] != "thinking" or "signature" in block]
        if content:
            yield {**message, "content": content}


def _pair(session: Session) -> Iterator[tuple[str, str, str]]:
    blocks = [block for entry in session.entries for block in entry.message.blocks]
    results = {block.call_id: block for block in blocks if isinstance(block, ToolResponse)}
    for block in blocks:
        if isinstance(block, ToolCall):
            result = results.get(block.id)
            text = "" if result is None else text_of(result.content) + str(result.structured or "")
            yield block.name, str(block.arguments), text


def texts(session: Session, *speakers: str) -> list[str]:
    """Return the texts of the messages of some speakers."""
    return [
        text
        for entry in session.entries
        if entry.message.speaker in speakers and (text := text_of(entry.message.blocks))
    ]


def _adapt_tree(lines: list[dict[str, Any]], before: list[dict[str, Any]], id: str) -> Iterator[dict[str, Any]]:
    own = {line["uuid"] for line in lines if "uuid" in line}
    last = next(line["uuid"] for line in reversed(before) if line.get("uuid"))
    for line in lines:
        if "parentUuid" in line and line["parentUuid"] not in own:
            line["parentUuid"] = last
        yield {**line, **({"sessionId": id} if "sessionId" in line else {})}


def _adapt_codex(lines: list[dict[str, Any]], before: list[dict[str, Any]], id: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, len(before)):
        if "thread_id" in line["payload"]:
            line["payload"]["thread_id"] = id
        yield {**line, "ordinal": number}


def _adapt_gemini(lines: list[dict[str, Any]], contents: list[Any], id: str) -> Iterator[dict[str, Any]]:
    """Yield what the client adds: first the whole history in its own form, each result twice, then the new messages."""
    history: list[dict[str, Any]] = []
    for number, content in enumerate(contents):
        kind = "user" if content["role"] == "user" else "gemini"
        parts = [part for each in content["parts"] for part in unnest_media(each)]
        copies = 2 if any("functionResponse" in part for part in parts) else 1
        history += [{"id": f"{id}-{number}-{copy}", "type": kind, "content": parts} for copy in range(copies)]
    for line in lines:
        if "messages" in line.get("$set", {}):
            line["$set"]["messages"] = history
        for facts in (line, line.get("$set", {})):
            if "sessionId" in facts:
                facts["sessionId"] = id
        yield line


def _adapt_pi(lines: list[dict[str, Any]], before: list[dict[str, Any]], id: str) -> Iterator[dict[str, Any]]:
    names = {line["id"]: f"{line['id']}-{len(before)}" for line in lines}
    for line in lines:
        yield {**line, "id": names[line["id"]], "parentId": names.get(line["parentId"], before[-1]["id"])}


def _adapt_opencode(value: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    first = value["messages"][0]["info"]["time"]["created"]
    delay = max(message["info"]["time"]["created"] for message in before["messages"]) + 1000 - first
    for message in value["messages"]:
        message["info"]["time"] = {key: at + delay for key, at in message["info"]["time"].items()}
    return {"info": before["info"], "messages": value["messages"]}


_ADAPTERS = {"claude": _adapt_tree, "qwen": _adapt_tree, "codex": _adapt_codex, "pi": _adapt_pi}


def client(name: str) -> Client:
    return CLIENTS[name]
