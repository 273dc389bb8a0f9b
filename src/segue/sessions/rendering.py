"""Renders messages of any clients as the items of one client's session: valid, paired, with its own tools.

The result ends on a reply. Items that segue added are `synthetic`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue._conversation import Conversation
from segue._literals import Api
from segue.canonical.blocks import Block, Message, Text, Thinking, ToolCall, ToolResponse, edit_block
from segue.canonical.codec import encode_value
from segue.canonical.envelope import is_envelope
from segue.canonical.history import History
from segue.canonical.json import encode_json_sorted
from segue.render.report import Finding, Report
from segue.sessions.client import CANONICAL, Client, SessionItem
from segue.sessions.session import SessionMessage, list_key
from segue.sessions.translation import Translator

CLOSING_TEXT = "The session was interrupted before a reply."
# Added as the last message and removed after rendering: the renderer would add one for the model to reply to.
_END_TEXT = "segue: end of the session"
_MAX_ID = 64


class Rendering(Struct, frozen=True):
    """The items, the messages that they are from, and what was changed or lost on the way.

    `renamed` (old and new name) and `kept` are tools with their counts. `envelopes` counts reasoning that only segue's
    gateway can open, which was removed. `result_ids` are pairs of canonical and written id of all results. `removed` is
    content that the client's sessions have no place for, with its count.
    """

    items: tuple[SessionItem, ...]
    entries: Sequence[SessionMessage]
    findings: Sequence[Finding]
    renamed: Counter[tuple[str, str]]
    kept: Counter[str]
    envelopes: int = 0
    result_ids: Sequence[tuple[str, str]] = ()
    removed: Counter[str] = Counter()


def render_session(
    client: Client, entries: Sequence[SessionMessage], cwd: str | None, servers: Collection[str] = ()
) -> Rendering:
    """Render a whole session, closed by a reply. `servers` are the names of MCP servers that are known."""
    rendering = _render(client, entries, cwd, servers)
    items = rendering.items
    if client.api != CANONICAL and items and not is_reply(items[-1], client.api):
        closing = SessionItem(text_item(client.api, "assistant", CLOSING_TEXT), items[-1].at, synthetic=True)
        items = (*items, closing)
    return msgspec.structs.replace(rendering, items=items)


def render_more(
    client: Client,
    entries: Sequence[SessionMessage],
    done: int,
    open_calls: Collection[str],
    cwd: str | None,
    servers: Collection[str] = (),
) -> Rendering:
    """Render what the messages after the first `done` ones add to a session, and results of calls that it left open.

    The whole session is rendered twice, with and without them: ids stay valid and unique over all of it.
    """
    before = _render(client, entries[:done], cwd, servers)
    open_ids = {projected for call_id, projected in before.result_ids if call_id in open_calls}
    known = Counter(_key(item) for item in before.items if result_id(item.value) not in open_ids)
    whole = render_session(client, entries, cwd, servers)
    added: list[SessionItem] = []
    for item in whole.items:
        key = _key(item)
        if known[key]:
            known[key] -= 1
        else:
            added.append(item)
    return Rendering(
        tuple(added),
        entries[done:],
        _new_findings(whole.findings, before.findings),
        whole.renamed - before.renamed,
        whole.kept - before.kept,
        whole.envelopes - before.envelopes,
        removed=whole.removed - before.removed,
    )


def _new_findings(findings: Sequence[Finding], before: Sequence[Finding]) -> list[Finding]:
    """Return the findings, and the calls of each, that are not among earlier ones."""
    known = {finding.key: finding for finding in before}
    new: list[Finding] = []
    for finding in findings:
        old = known.get(finding.key)
        calls = tuple(call_id for call_id in finding.call_ids if old is None or call_id not in old.call_ids)
        if old is None or calls:
            new.append(msgspec.structs.replace(finding, call_ids=calls))
    return new


def _key(item: SessionItem) -> bytes:
    return encode_json_sorted(item.value)


def _render(client: Client, entries: Sequence[SessionMessage], cwd: str | None, servers: Collection[str]) -> Rendering:
    renamed: Counter[tuple[str, str]] = Counter()
    kept: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    translators: dict[str, Translator] = {}
    messages: list[Message] = []
    envelopes = 0
    for entry in entries:
        message = entry.message if client.api == CANONICAL else _without_envelopes(entry.message)
        envelopes += len(entry.message.blocks) - len(message.blocks)
        message = _without_unsupported(client, message, removed, entry.client)
        if entry.client != client.name:
            translator = translators.setdefault(entry.client, Translator(entry.client, client.name, cwd, servers))
            translated = translator.translate(message)
            renamed.update(translated.changed)
            kept.update(translated.kept)
            removed.update(translated.removed)
            message = _with_new_ids(translated.message)
        if message.blocks:
            messages.append(message)
    chat = Conversation()
    chat.state.history = History(messages)
    if client.api == CANONICAL:
        encoded = [encode_value(message) for message in chat.messages]
        times = [entry.at for entry in entries] if len(entries) == len(encoded) else [None] * len(encoded)
        items = tuple(SessionItem(value, at) for value, at in zip(encoded, times, strict=True))
        return Rendering(items, entries, (), renamed, kept, envelopes)
    chat.add_user(_END_TEXT)
    # No model is passed: some bind reasoning to the client's instructions, which are not available here.
    rendered = chat.render(cast("Api", client.api))
    items = list(split_body(rendered.body, client.api))
    last = items.pop()
    if _END_TEXT not in str(last):
        raise AssertionError("the renderer moved the last message")
    times = _Times(entries, rendered.report)
    written = tuple(SessionItem(item, times.find(item)) for item in items if not _is_blank(item, client.api))
    report = rendered.report
    return Rendering(written, entries, report.findings, renamed, kept, envelopes, report.emitted_results, removed)


def _without_unsupported(client: Client, message: Message, removed: Counter[str], source: str) -> Message:
    """Return a message without the content that the client's sessions have no place for, and with simplified blocks."""

    def keep(blocks: Sequence[Block]) -> tuple[Block, ...]:
        kept: list[Block] = []
        for block in blocks:
            if isinstance(block, ToolResponse) and block.content and not block.hosted:
                content = keep(block.content)
                same = len(content) == len(block.content) and all(map(operator.is_, content, block.content))
                block = block if same else edit_block(block, content=content)
            reason = client.find_unsupported(block, source)
            if reason is None:
                kept.append(client.simplify(block))
            else:
                removed[reason] += 1
        return tuple(kept)

    blocks = keep(message.blocks)
    same = len(blocks) == len(message.blocks) and all(map(operator.is_, blocks, message.blocks))
    return message if same else message.with_blocks(blocks)


def _with_new_ids(message: Message) -> Message:
    """Return a message of another client whose calls get new ids where they have none, or one that is too long.

    Clients for any provider cut long ids themselves, after which two of them may be equal.
    """
    blocks = tuple(_with_new_id(block) if isinstance(block, ToolCall) else block for block in message.blocks)
    return message if all(map(operator.is_, blocks, message.blocks)) else message.with_blocks(blocks)


def _with_new_id(call: ToolCall) -> ToolCall:
    if call.kind == "hosted" or (call.raw_id is not None and len(call.raw_id) <= _MAX_ID):
        return call
    return edit_block(call, origin=msgspec.structs.replace(call.origin, raw_id=None))


def _without_envelopes(message: Message) -> Message:
    """Return a message without reasoning in envelopes: only the gateway that sealed them can use them."""
    blocks = tuple(block for block in message.blocks if not _is_sealed(block))
    return message if len(blocks) == len(message.blocks) else message.with_blocks(blocks)


def _is_sealed(block: Block) -> bool:
    return isinstance(block, Thinking) and (is_envelope(block.signature) or is_envelope(block.encrypted))


# --------------------------------------------------------------------------------------------------------------- items


def split_body(body: Mapping[str, Any], api: str) -> Iterator[dict[str, Any]]:
    """Yield the items of a body: each block or part of a message as a message of its own, or each item."""
    part_key = _PART_KEYS.get(api)
    for item in cast("list[dict[str, Any]]", body[list_key(body)]):
        if part_key is None:
            yield item
            continue
        parts = item[part_key]
        if isinstance(parts, str):
            parts = [{"type": "text", "text": parts}]
        for part in cast("list[Any]", parts):
            yield {**item, part_key: [part]}


def _is_blank(item: Mapping[str, Any], api: str) -> bool:
    """Return whether an item is only white space. Split from its message, it would be an empty message."""
    content = item.get(_PART_KEYS.get(api, "content"))
    parts = [{"text": content}] if isinstance(content, str) else _parts(content)
    return bool(parts) and all(isinstance(text := part.get("text"), str) and not text.strip() for part in parts)


_PART_KEYS = {"anthropic": "content", "gemini": "parts"}


def text_item(api: str, role: str, text: str) -> dict[str, Any]:
    """Return a text as an item of an API."""
    return _TEXT_UNITS[api](role, text)


_TEXT_UNITS: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
    "anthropic": lambda role, text: {"role": role, "content": [{"type": "text", "text": text}]},
    "openai-responses": lambda role, text: {"role": role, "content": text},
    "gemini": lambda role, text: {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]},
}


def is_reply(item: SessionItem, api: str) -> bool:
    """Return whether an item is text of the model."""
    value = item.value
    if value.get("role") not in ("assistant", "model"):
        return False
    part_key = _PART_KEYS.get(api)
    return part_key is None or "text" in value[part_key][0]


def result_id(value: Mapping[str, Any]) -> str | None:
    """Return the id of the call that an item is the result of; None if it is not a result."""
    if str(value.get("type")).endswith("_output"):
        return value.get("call_id")
    parts = chain(_parts(value.get("content")), _parts(value.get("parts")))
    return next((found for part in parts if (found := _part_result_id(part)) is not None), None)


def _part_result_id(part: Mapping[str, Any]) -> str | None:
    response = part.get("functionResponse")
    return part.get("tool_use_id") or (cast("dict[str, Any]", response).get("id") if response else None)


def _parts(value: object) -> list[dict[str, Any]]:
    return [part for part in cast("list[Any]", value) if isinstance(part, dict)] if isinstance(value, list) else []


def call_id(value: Mapping[str, Any]) -> str | None:
    """Return the id of the call that an item is; None if it is not a call."""
    if str(value.get("type")).endswith("_call"):
        return value.get("call_id")
    for part in chain(_parts(value.get("content")), _parts(value.get("parts"))):
        if part.get("type") == "tool_use":
            return part.get("id")
        if "functionCall" in part:
            return cast("dict[str, Any]", part["functionCall"]).get("id")
    return None


class _Times:
    """The times of items, found by the id of their call, or by their text."""

    def __init__(self, entries: Sequence[SessionMessage], report: Report) -> None:
        calls, results = dict(report.emitted_calls), dict(report.emitted_results)
        self._calls: dict[str | None, int | None] = {}
        self._results: dict[str | None, int | None] = {}
        self._texts: dict[str, list[int | None]] = {}
        for entry in entries:
            for block in entry.message.blocks:
                match block:
                    case ToolCall():
                        self._calls[calls.get(block.id)] = entry.at
                    case ToolResponse():
                        self._results[results.get(block.call_id)] = entry.at
                    case Text():
                        self._texts.setdefault(block.text, []).append(entry.at)
                    case _:
                        continue

    def find(self, value: Mapping[str, Any]) -> int | None:
        if (name := call_id(value)) is not None:
            return self._calls.get(name)
        if (name := result_id(value)) is not None:
            return self._results.get(name)
        content = value.get("content", value.get("parts"))
        text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in _parts(content))
        queue = self._texts.get(text)
        return queue.pop(0) if queue else None
