"""Compactions of OpenAI Responses: opaque items that hold the items which they stand for, bound to id and account."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.request import Usage
from segue.emulator.inserted_frames import InsertedFrames
from segue.emulator.model.exchange import summarize
from segue.emulator.prompt_cache import estimate_tokens
from segue.emulator.providers.provider import RequestContext, StreamFraming
from segue.emulator.signatures import Signer
from segue.wire.json_values import JsonObject, list_or_empty, object_list, object_or_none, without_keys

TRIGGER = "compaction_trigger"
_ITEM = "compaction"
_INPUT_ROLES = ("user", "system", "developer")


class ResponsesCompaction(Struct, frozen=True):
    """A compaction item. `standalone`: the reply is that of `/responses/compact`, with the user's messages."""

    item: JsonObject
    output_tokens: int
    ends_reply: bool
    standalone: bool
    user_messages: tuple[JsonObject, ...]

    def bill_reply(self, prompt_usage: Usage) -> Usage:
        return prompt_usage

    def add_to(self, reply: JsonObject) -> JsonObject:
        usage = dict(reply["usage"])
        usage["output_tokens"] += self.output_tokens
        usage["total_tokens"] += self.output_tokens
        if not self.standalone:
            return {**reply, "output": [self.item, *reply["output"]], "usage": usage}
        return {
            "id": reply["id"],
            "object": "response.compaction",
            "created_at": reply["created_at"],
            "output": [*self.user_messages, self.item],
            "usage": usage,
        }

    def framing(self, reply: JsonObject) -> StreamFraming:
        added = {"type": "response.output_item.added", "output_index": 0, "item": self.item}
        compacting = {"type": "response.compaction.compacting", "output_index": 0, "item_id": self.item["id"]}
        done = {**added, "type": "response.output_item.done"}
        events = [added, compacting, done] if self.ends_reply else [added, done]

        def count(payload: JsonObject) -> JsonObject:
            for number, event in enumerate(events, payload["sequence_number"] + 1):
                event["sequence_number"] = number
            return payload

        def shift(payload: JsonObject) -> JsonObject:
            payload["sequence_number"] += len(events)
            if "output_index" in payload:
                payload["output_index"] += 1
            if "usage" in (object_or_none(payload.get("response")) or {}) and payload["response"]["usage"]:
                payload["response"] = reply
            return payload

        return InsertedFrames(events, change_first=count, change_rest=shift)


def make_compaction(
    context: RequestContext, signer: Signer, item_id: str, items: list[Any], message_ids: list[str]
) -> ResponsesCompaction | None:
    """Return the compaction of these items, if the request ends on a trigger or exceeds its threshold."""
    is_asked = context.operation == "compact" or any(item.get("type") == TRIGGER for item in object_list(items)[-1:])
    if not is_asked and not _exceeds_threshold(context, items):
        return None
    held = readable_items(items, signer, context.account)
    messages = [item for item in object_list(held) if item.get("role") == "user"]
    user_messages = (
        {"id": message_id, "type": "message", "status": "completed", "role": "user", "content": _parts(item)}
        for message_id, item in zip(message_ids, messages, strict=False)
    )
    encrypted = signer.seal({"id": item_id, "items": held}, context.account)
    return ResponsesCompaction(
        {"id": item_id, "type": _ITEM, "encrypted_content": encrypted},
        estimate_tokens(summarize(context.request), context.model),
        is_asked,
        context.operation == "compact",
        tuple(user_messages),
    )


def _parts(message: JsonObject) -> list[Any]:
    content = message.get("content")
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else list_or_empty(content)


def _exceeds_threshold(context: RequestContext, items: list[Any]) -> bool:
    """Return whether the prompt has more tokens than the threshold; items before the newest compaction are pruned."""
    body = context.body
    thresholds = [
        entry["compact_threshold"]
        for entry in object_list(body.get("context_management"))
        if isinstance(entry.get("compact_threshold"), int)
    ]
    start = max((at for at, item in enumerate(object_list(items)) if item.get("type") == _ITEM), default=0)
    prompt = [body.get("instructions"), body.get("tools"), billed_items(items[start:])]
    return bool(thresholds) and estimate_tokens(msgspec.json.encode(prompt), context.model) > min(thresholds)


def billed_items(items: list[Any]) -> list[Any]:
    """Return the items with what counts as tokens: a compaction is short, however much it holds."""
    named = ((object_or_none(item) or {}, item) for item in items)
    hidden = frozenset({"encrypted_content"})
    return [without_keys(entry, hidden) if entry.get("type") == _ITEM else item for entry, item in named]


def held_items(item: JsonObject, signer: Signer, account: str) -> JsonObject | None:
    """Return the id of a compaction item and the items that it stands for; None if it is not from this account."""
    return object_or_none(signer.unseal(item.get("encrypted_content"), account))


def readable_items(items: list[Any], signer: Signer, account: str) -> list[Any]:
    """Return the items with those that the newest compaction stands for, in place of all up to it.

    Messages before it that it does not stand for are kept: a client may have written them anew.
    """
    for at in reversed(range(len(items))):
        item = object_or_none(items[at]) or {}
        held = held_items(item, signer, account) if item.get("type") == _ITEM else None
        if held is None:
            continue
        known = [_message_key(entry) for entry in held["items"]]
        newer = [
            entry
            for entry in object_list(items[:at])
            if entry.get("role") in _INPUT_ROLES and _message_key(entry) not in known
        ]
        return [*newer, *held["items"], *_without_triggers(items[at + 1 :])]
    return _without_triggers(items)


def _without_triggers(items: list[Any]) -> list[Any]:
    return [item for item in items if (object_or_none(item) or {}).get("type") != TRIGGER]


def _message_key(item: JsonObject) -> Any:
    """Return what tells messages apart, independent of ids and of the form of their text."""
    return item.get("role"), [part.get("text") for part in object_list(_parts(item))]
