"""Compactions of Anthropic Messages: readable blocks, signed if they were made on demand.

What stands before the newest block with content is neither read nor billed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.request import Usage
from segue.conformance.rule import Violation
from segue.emulator.errors.anthropic_compaction import CONTENT_MISMATCH, SIGNATURE_INVALID, TOOL_CHANGES_MISMATCH
from segue.emulator.inserted_frames import InsertedFrames
from segue.emulator.model.exchange import summarize
from segue.emulator.prompt_cache import estimate_tokens
from segue.emulator.providers.provider import Body, RequestContext, StreamFraming, make_violation
from segue.emulator.signatures import Signer, digest
from segue.wire.anthropic.reply import render_usage
from segue.wire.json_values import JsonObject, list_or_empty, object_list, object_or_none

_DEFAULT_TRIGGER = 150_000
_BLOCK = "compaction"


class ClaudeCompaction(Struct, frozen=True):
    """A compaction block, or none if it was cut off; `usage` is that of the summary."""

    block: JsonObject | None
    usage: Usage
    ends_reply: bool
    head_tokens: int
    """The tokens of the system prompt and the tools."""

    def bill_reply(self, prompt_usage: Usage) -> Usage:
        return Usage(self.head_tokens + (self.usage.output or 0))

    def add_to(self, reply: JsonObject) -> JsonObject:
        iterations = [{"type": "compaction", **_counts(render_usage(self.usage))}]
        if self.ends_reply:
            content = [] if self.block is None else [self.block]
            usage = {**reply["usage"], **dict.fromkeys(_counts(reply["usage"]), 0), "iterations": iterations}
            stop_reason = "max_tokens" if self.block is None else "compaction"
            return {**reply, "content": content, "stop_reason": stop_reason, "usage": usage}
        iterations.append({"type": "message", **_counts(reply["usage"])})
        return {
            **reply,
            "content": [self.block, *reply["content"]],
            "usage": {**reply["usage"], "iterations": iterations},
        }

    def framing(self, reply: JsonObject) -> StreamFraming:
        usage = reply["usage"]
        opening_usage = {key: value for key, value in usage.items() if key != "iterations"}
        shift = 0 if self.block is None else 1

        def change_first(payload: JsonObject) -> JsonObject:
            return {**payload, "message": {**payload["message"], "usage": opening_usage}}

        def change_rest(payload: JsonObject) -> JsonObject:
            if payload.get("type") == "message_delta":
                delta = {**payload["delta"], "stop_reason": reply["stop_reason"]}
                return {**payload, "delta": delta, "usage": usage}
            return {**payload, "index": payload["index"] + shift} if "index" in payload else payload

        return InsertedFrames(list(self._events()), change_first=change_first, change_rest=change_rest)

    def _events(self) -> Iterator[JsonObject]:
        """Yield the block whole if it is signed, else without content and with one delta."""
        if self.block is None:
            return
        whole = "signature" in self.block
        opened = self.block if whole else {**self.block, "content": None}
        yield {"type": "content_block_start", "index": 0, "content_block": opened}
        if not whole:
            delta = {"type": "compaction_delta", "content": self.block["content"], "encrypted_content": None}
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}


def _counts(usage: JsonObject) -> JsonObject:
    """Return the numbers of tokens in a usage."""
    return {key: value for key, value in usage.items() if key.endswith("_tokens")}


def make_compaction(
    context: RequestContext, signer: Signer, messages: list[Any], prompt_usage: Usage
) -> ClaudeCompaction | None:
    """Return the compaction that the body asks for, or whose trigger the prompt has reached."""
    body = context.body
    place = _find_newest(messages)
    on_demand = object_or_none(body.get("compaction")) is not None
    edit = next(
        (
            edit
            for edit in object_list((object_or_none(body.get("context_management")) or {}).get("edits"))
            if edit.get("type") == "compact_20260112"
        ),
        None,
    )
    trigger = (object_or_none((edit or {}).get("trigger")) or {}).get("value", _DEFAULT_TRIGGER)
    is_signed = place is not None and "signature" in _block_at(messages, place)
    is_due = edit is not None and not is_signed and (prompt_usage.input or 0) >= trigger
    if not on_demand and not is_due:
        return None
    summary = summarize(context.request, "" if place is None else str(_block_at(messages, place)["content"]))
    block: JsonObject | None = {"type": _BLOCK, "content": summary}
    tokens = estimate_tokens(summary, context.model)
    if on_demand:
        sealed = signer.seal({"content": digest(summary), "tool_changes": []}, context.account)
        block = {**block, "signature": sealed, "tool_changes": []} if tokens <= body["max_tokens"] else None
        tokens = min(tokens, body["max_tokens"])
    ends = on_demand or (edit or {}).get("pause_after_compaction") is True
    head_tokens = estimate_tokens(msgspec.json.encode([body.get("system"), body.get("tools")]), context.model)
    usage = msgspec.structs.replace(prompt_usage, output=tokens)
    return ClaudeCompaction(block, usage, ends, head_tokens)


def check_compactions(messages: list[Any], signer: Signer, account: str) -> Iterator[Violation]:
    """ANT-45: signed blocks are from this account and unchanged."""
    for number, message in enumerate(object_list(messages)):
        for place, block in enumerate(object_list(message.get("content"))):
            signature, content = block.get("signature"), block.get("content")
            if block.get("type") != _BLOCK or signature is None or content is None:
                continue
            path = f"messages[{number}].content[{place}]"
            sealed = object_or_none(signer.unseal(signature, account))
            if sealed is None or "content" not in sealed:
                yield make_violation("ANT-45", path, SIGNATURE_INVALID)
            elif sealed["content"] != digest(content):
                yield make_violation("ANT-45", path, CONTENT_MISMATCH)
            elif sealed["tool_changes"] != block.get("tool_changes"):
                yield make_violation("ANT-45", path, TOOL_CHANGES_MISMATCH)


def _find_newest(messages: list[Any]) -> tuple[int, int] | None:
    """Return the indexes of the message and the block of the newest compaction with content."""
    places = [
        (number, place)
        for number, message in enumerate(object_list(messages))
        for place, block in enumerate(object_list(message.get("content")))
        if block.get("type") == _BLOCK and block.get("content")
    ]
    return places[-1] if places else None


def _block_at(messages: list[Any], place: tuple[int, int]) -> JsonObject:
    return messages[place[0]]["content"][place[1]]


def has_summary(messages: list[Any]) -> bool:
    return _find_newest(messages) is not None


def messages_from_newest(messages: list[Any], *, with_block: bool = True) -> list[Any]:
    """Return the messages from the newest compaction with content on; all if there is none."""
    place = _find_newest(messages)
    if place is None:
        return messages
    message = messages[place[0]]
    rest = message["content"][place[1] + (not with_block) :]
    return [*([{**message, "content": rest}] if rest else []), *messages[place[0] + 1 :]]


def readable_body(body: Body, messages: list[Any]) -> Body:
    """Return the body with the newest summary as part of the system prompt, in place of what it stands for."""
    place = _find_newest(messages)
    if place is None:
        return body
    system = body.get("system")
    texts = [{"type": "text", "text": system}] if isinstance(system, str) and system else list_or_empty(system)
    summary = {"type": "text", "text": str(_block_at(messages, place)["content"])}
    rest = messages_from_newest(messages, with_block=False)
    return {**body, "system": [*texts, summary], "messages": rest}
