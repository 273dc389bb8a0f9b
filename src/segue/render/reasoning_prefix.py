"""The pass for reasoning that is bound to its exact prefix, and the functions that record the prefix of a reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from segue.canonical.blocks import Message, Text, Thinking, calls_of
from segue.canonical.history import bind_reasoning
from segue.canonical.layered_map import LayeredMap
from segue.canonical.request import Request, Tool
from segue.render.draft import Draft, has_reasoning
from segue.render.prefix_digest import BoundPrefix, PrefixDigest
from segue.render.reasoning import replace_reasoning
from segue.render.transcript import Transcript

_PREFIX_CHANGED = "reasoning of {origin} dropped: it is bound to the messages before it, and these have changed"


def drop_stale_reasoning(draft: Draft, find_tools: Callable[[Draft], Sequence[Tool]]) -> Draft:
    """Drop reasoning that is bound to its prefix (ANT-28) where anything before it has changed.

    `find_tools` returns the tools that will be declared.
    """
    if draft.constraints.reasoning_binding != "prefix" or not any(has_reasoning(message) for message in draft.messages):
        return draft
    earlier = draft.earlier or _start_prefix(draft, find_tools(draft))
    messages = draft.request.messages[earlier.context_length :]
    recorded, _ = earlier.recorded.add(messages)
    expected = {
        id(block): block.prefix or digest
        for message, digest in zip(messages, recorded, strict=True)
        for block in message.blocks
        if isinstance(block, Thinking)
    }
    rendered = earlier.new_messages(draft.messages)
    actual, _ = earlier.sent.add(rendered, _changed_ids(draft, rendered, earlier.raw_ids))
    kept = set(map(id, earlier.context_reasoning))
    start = len(draft.messages) - len(rendered)
    for position, message in enumerate(draft.messages):
        thoughts = [id(block) for block in message.blocks if isinstance(block, Thinking)]
        if position < start:
            is_stale = not kept.issuperset(thoughts)
        else:
            is_stale = any(earlier.is_stale or expected.get(key) != actual[position - start] for key in thoughts)
        if is_stale:
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
    return msgspec.structs.replace(draft.with_messages(messages), has_stale_reasoning=True)


def digest_transcript(transcript: Transcript) -> str:
    """Return the digest of a whole transcript: the prefix of the reply to it."""
    earlier = transcript.earlier or _start_prefix(transcript, transcript.tools)
    messages = earlier.new_messages(transcript.messages)
    return earlier.sent.add(messages, _changed_ids(transcript, messages, earlier.raw_ids))[1].value


def extend_bound_prefix(transcript: Transcript, system_count: int, context: Sequence[Message]) -> BoundPrefix | None:
    """Return the prefix that ends with this transcript, None if the target's reasoning is not bound to it.

    The next render repeats so many system messages and the context.
    """
    if transcript.constraints.reasoning_binding != "prefix":
        return None
    earlier = transcript.earlier or _start_prefix(transcript, transcript.tools)
    messages = earlier.new_messages(transcript.messages)
    changed = _changed_ids(transcript, messages, earlier.raw_ids)
    raw_ids = earlier.raw_ids.fork()
    for message in messages:
        for call in calls_of(message):
            raw_ids[call.origin.raw_id or ""] = True
    kept = {id(block) for message in transcript.messages for block in message.blocks if isinstance(block, Thinking)}
    return BoundPrefix(
        recorded=earlier.recorded.add(transcript.request.messages[earlier.context_length :])[1],
        # No later pass changes the messages of such a target: as long as no reasoning is stale, they are those that
        # `drop_stale_reasoning` compares.
        sent=earlier.sent.add(messages, changed)[1],
        raw_ids=raw_ids.fork(),
        is_stale=earlier.is_stale or transcript.has_stale_reasoning,
        context_length=system_count + len(context),
        rendered_length=None,
        context_reasoning=tuple(
            block
            for message in context
            for block in message.blocks
            if isinstance(block, Thinking) and id(block) in kept
        ),
    )


def record_prefixes(request: Request) -> tuple[Message, ...]:
    """Return the messages of a body with the current prefix digest recorded on their reasoning."""
    if not any(has_reasoning(message) for message in request.messages):
        return request.messages
    digests, _ = PrefixDigest(request.system, request.tools).add(request.messages)
    return tuple(
        msgspec.structs.replace(message, blocks=bind_reasoning(message.blocks, digest))
        if has_reasoning(message)
        else message
        for message, digest in zip(request.messages, digests, strict=True)
    )


def _start_prefix(draft: Draft | Transcript, tools: Sequence[Tool]) -> BoundPrefix:
    """Return the prefix before the first message, with these tools declared."""
    return BoundPrefix(
        recorded=PrefixDigest(draft.request.system, draft.request.tools),
        sent=PrefixDigest(_rendered_system(draft), _rendered_tools(draft, tools)),
        raw_ids=LayeredMap(),
    )


def _changed_ids(
    draft: Draft | Transcript, messages: Sequence[Message], earlier_ids: LayeredMap[str, bool]
) -> frozenset[str]:
    """Return canonical ids of calls that are rendered with another id or tool name than the original."""
    constraints = draft.constraints
    seen: set[str] = set()
    changed: set[str] = set()
    for message in messages:
        for call in calls_of(message):
            raw_id = call.origin.raw_id
            own = call.origin.provider == constraints.provider and draft.policy.ids != "canonical"
            is_repeated = raw_id in seen or raw_id in earlier_ids
            if not (own and raw_id and not is_repeated and re.fullmatch(constraints.id_pattern, raw_id)):
                changed.add(call.id)
            rewritten = call.native is not None and not call.native.intact
            if rewritten or not re.fullmatch(constraints.name_pattern, call.name):
                changed.add(call.id)
            seen.add(raw_id or "")
    return frozenset(changed)


def _rendered_tools(draft: Draft | Transcript, tools: Sequence[Tool]) -> list[Tool]:
    """Return the declarations as they are rendered: no duplicate names, no names that would be projected."""
    own = {tool.name: tool for tool in reversed(tools) if re.fullmatch(draft.constraints.name_pattern, tool.name)}
    return list(reversed(own.values()))


def _rendered_system(draft: Draft | Transcript) -> list[Text]:
    return [block for block in draft.system if block.text.strip()]
