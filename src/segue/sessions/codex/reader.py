"""Parses Codex session logs (rollouts): `~/.codex/sessions/…/rollout-….jsonl`.

Each line has a `type` and a `payload`; the `response_item` lines are Responses items and make up the conversation.
`event_msg` repeats them for display and records rollbacks; `compacted` replaces everything before it by a shorter
history. Where only the provider can read that one, the items that it stands for are used: they are still in the file.
In the oldest logs the items are on their lines without an envelope.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec import Struct

from segue.errors import InputError
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts, is_client_text, make_title
from segue.sessions.values import list_of, object_of, string_of

API = "openai-responses"
_ENVELOPES = frozenset({"session_meta", "response_item", "turn_context", "event_msg", "compacted"})
_BARE_TYPES = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call"})
# Items for the client's internal use.
_INTERNAL_TYPES = frozenset({"ghost_snapshot", "compaction_trigger", "other"})
# Items that stand for earlier ones, and that only the provider can read.
_SEALED_TYPES = frozenset({"compaction", "compaction_summary", "context_compaction"})
# Prefixes of user messages that the client inserts.
_CONTEXT_PREFIXES = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
# How messages of the user begin that do not start a turn.
_BESIDE_TURNS = (
    *_CONTEXT_PREFIXES,
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<skill>",
    "<hook_prompt",
)
# Messages that the client wrote into the conversation: a summary, an interruption, and a command of the user.
_CONVERSATION_KINDS = frozenset({"compaction.summary", "generic.turn_aborted", "shell.user_command"})
# The client's own notes on an item, which it does not send.
_NOTES_KEY = "internal_chat_message_metadata_passthrough"


def is_line(line: LogLine) -> bool:
    value = line.value
    if value.get("type") in _ENVELOPES:
        return isinstance(value.get("payload"), dict)
    return value.get("record_type") == "state" or _is_bare_head(value)


def _is_bare_head(value: Any) -> bool:
    return "type" not in value and "role" not in value and {"id", "timestamp", "instructions"} <= value.keys()


class _Item(Struct, frozen=True):
    """An item with the number of its line. `is_context`: the client inserted it for its own session."""

    number: int
    value: dict[str, Any]
    is_context: bool = False


class _Rollout:
    """The items so far, and what the lines record of the session."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.model: str | None = None
        self.instructions: str | None = None
        self.opening: str | None = None
        self.times: dict[int, int | None] = {}
        self._compacted: set[int] = set()
        self.facts: dict[str, str | None] = {}
        self.dropped = {"items before the client's own compaction": 0, "items that were rolled back": 0}

    def add_line(self, line: LogLine) -> None:
        value = line.value
        self.times[line.number] = line.timestamp
        kind = value.get("type")
        payload = object_of(value.get("payload"))
        match kind:
            case "response_item":
                self._add(line.number, payload)
            case "session_meta" if isinstance(payload.get("history_base"), dict) and not self.facts:
                base = payload["history_base"].get("thread_id")
                raise InputError(f"this session continues the rollout {base}: move it by its id", path="line 1")
            case "session_meta":
                self._set_instructions(payload)
                self._set_facts(payload)
            case "turn_context":
                self.model = payload.get("model") or self.model
                self.facts["cwd"] = string_of(payload.get("cwd")) or self.facts.get("cwd")
            case "compacted":
                self._compact(line.number, payload)
            case "event_msg" if payload.get("type") == "thread_rolled_back":
                self._roll_back(line, payload.get("num_turns", 1))
            case _ if kind in _BARE_TYPES and "payload" not in value:
                self._add(line.number, dict(value))
            case _ if _is_bare_head(value):
                self._set_instructions(dict(value))
            case _:
                return

    def _add(self, number: int, item: dict[str, Any]) -> None:
        if not isinstance(item.get("type"), str):
            raise InputError("item without a type", path=f"line {number}")
        if item["type"] not in _INTERNAL_TYPES:
            is_context = _is_context(item)
            if _NOTES_KEY in item:
                item = {key: value for key, value in item.items() if key != _NOTES_KEY}
            self.items.append(_Item(number, item, is_context))
            if self.opening is None and number not in self._compacted and not is_context:
                self.opening = _user_text(item) or None

    def _set_facts(self, payload: dict[str, Any]) -> None:
        if self.facts.get("id"):
            # A fork repeats the lines of its parent, with the parent's own.
            return
        self.facts = {
            "id": string_of(payload.get("id")),
            "cwd": string_of(payload.get("cwd")),
            "git_branch": string_of(object_of(payload.get("git")).get("branch")),
            "version": string_of(payload.get("cli_version")),
        }

    def _set_instructions(self, payload: dict[str, Any]) -> None:
        base = payload.get("base_instructions")
        text = cast("dict[str, Any]", base).get("text") if isinstance(base, dict) else payload.get("instructions")
        if isinstance(text, str) and self.instructions is None:
            self.instructions = text

    def _compact(self, number: int, payload: dict[str, Any]) -> None:
        given = payload.get("replacement_history")
        replacement = [object_of(item) for item in cast("list[Any]", given)] if isinstance(given, list) else None
        if any(map(_is_sealed, replacement or ())) and self.items:
            self.items = [item for item in self.items if not _is_sealed(item.value)]
            return
        self.dropped["items before the client's own compaction"] += len(self.items)
        self._compacted.add(number)
        if replacement is not None:
            self.items = []
            for item in replacement:
                self._add(number, item)
            return
        content = [{"type": "input_text", "text": str(payload.get("message", ""))}]
        self.items = [item for item in self.items if _is_user_message(item.value)]
        self.items.append(_Item(number, {"type": "message", "role": "user", "content": content}))

    def _roll_back(self, line: LogLine, turns: object) -> None:
        """Remove the last `turns` user messages and everything after them."""
        if not isinstance(turns, int) or turns < 0:
            raise InputError(f"expected a number of turns, not {turns!r}", path=f"line {line.number}")
        places = [
            at
            for at, item in enumerate(self.items)
            if _is_user_message(item.value) and not _item_text(item.value).lstrip().startswith(_BESIDE_TURNS)
        ]
        cut = 0 if turns > len(places) else places[-turns] if turns else len(self.items)
        self.dropped["items that were rolled back"] += len(self.items) - cut
        del self.items[cut:]

    @property
    def title(self) -> str | None:
        """The first user text as title, where the session does not start with it."""
        first = next((item for item in self.items if item.value.get("role") == "user"), None)
        if first is None or self.opening is None:
            return None
        if first.number not in self._compacted and _user_text(first.value):
            return None
        return make_title(self.opening)


def find_title(items: list[dict[str, Any]]) -> str | None:
    """Return the title of a session from some of its items: the start of the first prompt."""
    return next((make_title(text) for item in items if not _is_context(item) and (text := _user_text(item))), None)


def _is_context(item: dict[str, Any]) -> bool:
    """Return whether the client inserted this message for its own session: instructions, facts about the machine."""
    if item.get("type") == "additional_tools":
        return True
    if item.get("type") != "message":
        return False
    if item.get("role") in ("developer", "system"):
        return True
    sources = [_provenance(entry) for entry in _notes(item, "content_item_metadata")]
    if sources and all(source.get("type") == "harness" for source in sources):
        is_from_hook = any(source.get("hook") for source in sources)
        return not is_from_hook and _CONVERSATION_KINDS.isdisjoint(map(str, _notes(item, "content_item_kinds")))
    return item.get("role") == "user" and not _is_user_message(item)


def _is_sealed(item: dict[str, Any]) -> bool:
    """Return whether this item stands for earlier ones that only the provider can read in it."""
    return string_of(item.get("type")) in _SEALED_TYPES and bool(item.get("encrypted_content"))


def _notes(item: dict[str, Any], key: str) -> list[Any]:
    """Return the client's notes on the parts of a message."""
    return list_of(object_of(item.get(_NOTES_KEY)).get(key))


def _provenance(entry: object) -> dict[str, Any]:
    """Return the author of a part of a message, by the client's notes on it."""
    return object_of(object_of(entry).get("provenance"))


def _is_user_message(item: dict[str, Any]) -> bool:
    """Return whether this is a user message that the client did not insert as context."""
    if item.get("type") != "message" or item.get("role") != "user":
        return False
    return not _item_text(item).lstrip().startswith(_CONTEXT_PREFIXES)


def _user_text(item: dict[str, Any]) -> str:
    """Return the text that the user typed; empty for text that the client inserted."""
    text = _item_text(item).strip() if _is_user_message(item) else ""
    return "" if is_client_text(text) else text


def _item_text(item: dict[str, Any]) -> str:
    content = item.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else [content]
    texts = [cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def parse_log(lines: list[LogLine]) -> ParsedLog:
    """Return the body with which the client would continue."""
    rollout = _Rollout()
    for line in lines:
        rollout.add_line(line)
    if not rollout.items:
        raise InputError("this session has no messages")
    body: dict[str, Any] = {"model": rollout.model} if rollout.model else {}
    if rollout.instructions:
        body["instructions"] = rollout.instructions
    body["input"] = [item.value for item in rollout.items]
    numbers = [item.number for item in rollout.items]
    times = [rollout.times.get(number) for number in numbers]
    context = frozenset(index for index, item in enumerate(rollout.items) if item.is_context)
    facts = SessionFacts(**rollout.facts)
    return ParsedLog("codex", body, API, rollout.title, numbers, rollout.dropped, times, context, facts)
