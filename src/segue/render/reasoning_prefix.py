"""The pass for reasoning that is bound to its exact prefix, and the digests that detect a changed prefix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Native,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    calls_of,
)
from segue.canonical.history import bind_reasoning
from segue.canonical.json import encode_json_sorted
from segue.canonical.request import Request, Tool
from segue.render.draft import Draft, has_reasoning
from segue.render.reasoning import replace_reasoning
from segue.render.transcript import Transcript

_PREFIX_CHANGED = "reasoning of {origin} dropped: it is bound to the messages before it, and these have changed"


def drop_stale_reasoning(draft: Draft) -> Draft:
    """Drop reasoning that is bound to its prefix (ANT-28) where anything before it has changed."""
    if draft.constraints.reasoning_binding != "prefix" or not any(has_reasoning(message) for message in draft.messages):
        return draft
    request = draft.request
    recorded = prefix_digests(request.system, request.tools, request.messages)
    expected = {
        id(block): block.prefix or recorded[position]
        for position, message in enumerate(request.messages)
        for block in message.blocks
        if isinstance(block, Thinking)
    }
    actual = _rendered_digests(draft, draft.messages)
    for position, message in enumerate(draft.messages):
        thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
        if any(expected.get(id(block)) != actual[position] for block in thoughts):
            return _drop_reasoning_from(draft, position)
    return draft


def _drop_reasoning_from(draft: Draft, start: int) -> Draft:
    messages = [
        message.with_blocks(
            tuple(new for block in message.blocks for new in replace_reasoning(draft, block, _PREFIX_CHANGED))
        )
        if position >= start and has_reasoning(message)
        else message
        for position, message in enumerate(draft.messages)
    ]
    return draft.with_messages(messages)


def digest_transcript(transcript: Transcript) -> str:
    """Return the digest of a whole transcript: the prefix of the reply to it."""
    end = Message("ai", ())
    messages = (*transcript.messages, end)
    return _rendered_digests(transcript, messages)[-1]


def record_prefixes(request: Request) -> tuple[Message, ...]:
    """Return the messages of a body with the current prefix digest recorded on their reasoning."""
    if not any(has_reasoning(message) for message in request.messages):
        return request.messages
    digests = prefix_digests(request.system, request.tools, request.messages)
    return tuple(
        msgspec.structs.replace(message, blocks=bind_reasoning(message.blocks, digest))
        if has_reasoning(message)
        else message
        for message, digest in zip(request.messages, digests, strict=True)
    )


def _rendered_digests(draft: Draft | Transcript, messages: Sequence[Message]) -> list[str]:
    return prefix_digests(_rendered_system(draft), _rendered_tools(draft), messages, changed=_changed_ids(draft))


def _changed_ids(draft: Draft | Transcript) -> frozenset[str]:
    """Return canonical ids of calls that are rendered with another id or tool name than the original."""
    constraints = draft.constraints
    seen: set[str] = set()
    changed: set[str] = set()
    for message in draft.messages:
        for call in calls_of(message):
            raw_id = call.origin.raw_id
            own = call.origin.provider == constraints.provider and draft.policy.ids != "canonical"
            if not (own and raw_id and raw_id not in seen and re.fullmatch(constraints.id_pattern, raw_id)):
                changed.add(call.id)
            rewritten = call.native is not None and not call.native.intact
            if rewritten or not re.fullmatch(constraints.name_pattern, call.name):
                changed.add(call.id)
            seen.add(raw_id or "")
    return frozenset(changed)


def _rendered_tools(draft: Draft | Transcript) -> list[Tool]:
    """Return the declarations as they are rendered: no duplicate names, no names that would be projected."""
    own = {tool.name: tool for tool in reversed(draft.tools) if re.fullmatch(draft.constraints.name_pattern, tool.name)}
    return list(reversed(own.values()))


def _rendered_system(draft: Draft | Transcript) -> list[Text]:
    return [block for block in draft.system if block.text.strip()]


def prefix_digests(
    system: Sequence[Text], tools: Sequence[Tool], messages: Sequence[Message], *, changed: frozenset[str] = frozenset()
) -> list[str]:
    """Return for each message the digest of everything before it, independent of how blocks are grouped."""
    digest = sha256(encode_json_sorted([[block.text for block in system], [_tool_identity(tool) for tool in tools]]))
    digests: list[str] = []
    for message in messages:
        digests.append(digest.hexdigest())
        side = "ai" if message.speaker == "ai" else "user"
        if not message.blocks:
            digest.update(encode_json_sorted([side, "nothing"]))
        for block in message.blocks:
            digest.update(encode_json_sorted([side, *_block_identity(block, changed)]))
    return digests


def _tool_identity(tool: Tool) -> list[Any]:
    return [tool.name, tool.description, tool.parameters, tool.kind]


def _block_identity(block: Block, changed: frozenset[str]) -> list[Any]:
    match block:
        case Text():
            return ["text", block.text]
        case Thinking():
            return ["thinking", block.text, block.signature, block.encrypted]
        case ToolCall():
            raw_id = block.id if block.id in changed else block.origin.raw_id
            return ["call", raw_id, block.name, block.arguments, block.arguments_text]
        case ToolResponse():
            content = [_block_identity(part, changed) for part in block.content or ()]
            return ["result", block.call_id, content, block.error]
        case Opaque(native=Native(fragment=fragment)):
            return ["opaque", block.kind, fragment]
        case Media() | Code() | Opaque():
            return ["other", msgspec.to_builtins(msgspec.structs.replace(block, native=None))]
