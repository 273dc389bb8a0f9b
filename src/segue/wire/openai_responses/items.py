"""The items of a body ⇄ canonical messages.

Consecutive items made by the model are one reply: one message whose blocks are the items, in order. Every other item is
a message of its own. A message item with several parts becomes as many `Text` blocks, each with the item reduced to
that part; same-API, neighbours that were one item are joined again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec

from segue.canonical.blocks import (
    Block,
    Message,
    Native,
    Opaque,
    Speaker,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
)
from segue.canonical.ids import raw_id_or_none
from segue.canonical.jsontext import write_text
from segue.errors import InputError
from segue.render.demands import TEXTS
from segue.wire.fields import JsonObject, kind_of, list_of, object_of, object_or_none, string_or_none
from segue.wire.openai_responses.answers import (
    MESSAGE_KEYS,
    is_lawful_message,
    joined,
    parse_answer,
    parse_reasoning,
    render_reasoning,
    render_text,
    said,
)
from segue.wire.openai_responses.calls import (
    CALL_KEYS,
    FUNCTIONS,
    OUTPUTS,
    is_hosted_output,
    own_types,
    parse_call,
    parse_output,
    render_call,
    render_output,
)
from segue.wire.openai_responses.hosted import (
    HOSTED,
    OTHERS,
    REQUEST,
    is_embedded,
    parse_approval,
    parse_hosted,
    parse_other,
    repetition,
)
from segue.wire.openai_responses.parts import PART_KEYS, parse_parts, render_content, render_part
from segue.wire.openai_responses.runs import Run, refers, unfounded
from segue.wire.openai_responses.shared import Reading, Spelling
from segue.wire.openai_responses.typed import TYPED
from segue.wire.overlay import rewritten

__all__ = [
    "ITEM_KEYS",
    "item_kind",
    "item_kind_or_none",
    "parse_items",
    "parse_reply_items",
    "render_messages",
    "render_reply_items",
    "repeated_places",
]

_SPEAKERS: dict[str, Speaker] = {"user": "human", "assistant": "ai", "system": "system", "developer": "system"}
ITEM_KEYS = CALL_KEYS | PART_KEYS | {"role", "content", "summary", "encrypted_content", "caller"}
Side: TypeAlias = Literal["ai", "human", "tool", "none"]


# ------------------------------------------------------------------------------------------------------------------ in


def item_kind(item: JsonObject) -> str:
    """The type of an item; messages and references may omit it."""
    kind = item_kind_or_none(item)
    if kind is None:
        seen = kind_of(item.get("type"))
        raise InputError(f"an item needs a `type` or a `role`; its type is {seen}", path="type")
    return kind


def item_kind_or_none(item: JsonObject) -> str | None:
    kind = item.get("type")
    if kind is None and "role" in item:
        return "message"
    if kind is None and item.get("id") is not None and item.keys() <= {"id", "type"}:
        return "item_reference"
    return kind if isinstance(kind, str) and kind else None


def repeated_places(items: Sequence[object]) -> frozenset[int]:
    """The positions of items that repeat an earlier one with the same id, whole or by reference (OAI-RESP-13)."""
    known: dict[str, JsonObject] = {}
    repeated: set[int] = set()
    for place, item in enumerate(map(object_or_none, items)):
        item_id = raw_id_or_none(item.get("id")) if item is not None else None
        # The only id of a local shell output is the id of its call.
        if item is None or item_id is None or item.get("type") == "local_shell_call_output":
            continue
        first = known.setdefault(item_id, item)
        if first is not item and (_is_same(first, item) or item_kind_or_none(item) == "item_reference"):
            repeated.add(place)
    return frozenset(repeated)


def _is_same(first: JsonObject, item: JsonObject) -> bool:
    """Whether two items are equal apart from their status."""
    return {**first, "status": None} == {**item, "status": None}


def parse_items(
    items: Sequence[object], context: Reading, path: str = "input", *, repeated: Container[int] = ()
) -> list[Message]:
    """Parse items into messages. Items at `repeated` positions are duplicates."""
    messages: list[Message] = []
    run = Run(context)
    for index, value in enumerate(items):
        try:
            item = object_of(value)
            kind = item_kind(item)
            side = _side(kind, item, context)
            if index in repeated:
                if side == "ai":
                    # OAI-RESP-08: repeated reasoning must belong to the same reply.
                    run.add([repetition(item, kind, context)], sound=kind != "reasoning" or run.thought(item["id"]))
                else:
                    messages += [*run.closed(), Message("human", (repetition(item, kind, context),))]
                continue
            sound = context.takes_id(kind, item) and (context.stored or kind != "item_reference")
            if side == "ai":
                run.add(_parse_made(kind, item, context, sound=sound), sound)
                continue
            messages += run.closed()
            messages.append(_parse_said(kind, side, item, context, sound=sound))
        except InputError as error:
            raise error.under(f"{path}[{index}]") from None
    return messages + run.closed()


def parse_reply_items(items: Sequence[object], context: Reading) -> tuple[Block, ...]:
    """The blocks of a reply; everything in it was made by the provider."""
    blocks: list[Block] = []
    for message in parse_items(items, context, "output"):
        alone = [Opaque(str(message.native.fragment.get("type")), native=message.native)] if message.native else []
        blocks += message.blocks or alone
    answered = {block.origin.raw_id for block in blocks if isinstance(block, ToolResponse) and not block.hosted}
    return tuple(_run_there(block, answered) for block in blocks)


def _run_there(block: Block, answered: set[str | None]) -> Block:
    """Mark a call with a result in the same reply, and the result, as hosted: only the provider can have run it."""
    if isinstance(block, ToolResponse):
        return msgspec.structs.replace(block, hosted=True)
    if isinstance(block, ToolCall) and block.origin.raw_id is not None and block.origin.raw_id in answered:
        return msgspec.structs.replace(block, kind="hosted")
    return block


def _side(kind: str, item: JsonObject, context: Reading) -> Side:
    if kind == "message":
        return "ai" if item.get("role") == "assistant" else "human"
    if kind in OUTPUTS:
        return "ai" if is_hosted_output(item, context) else "tool"
    if kind in OTHERS:
        return OTHERS[kind].side
    return "human" if kind.endswith(("_output", "_response")) else "ai"


def _parse_made(kind: str, item: JsonObject, context: Reading, *, sound: bool) -> list[Block]:
    """The blocks of an item made by the model or the provider."""
    if kind == "message":
        return parse_answer(item, context)
    if kind == "reasoning":
        return [parse_reasoning(item, context)]
    if kind in ("tool_search_call", "tool_search_output") and item.get("call_id") is None:
        # Without ids, searches and their results are paired by order.
        context.searches += 1 if kind == "tool_search_call" else -1
        if context.searches < 0:
            context.searches = 0
            return [parse_other(item, kind, context, sound=sound)]
    if kind in FUNCTIONS or kind in TYPED:
        return [parse_call(item, context, sound=sound)]
    if kind in OUTPUTS:
        return [parse_output(item, context, sound=sound)]
    if kind in HOSTED:
        return parse_hosted(item, context, sound=sound)
    if kind == REQUEST:
        return [parse_approval(item, context, sound=sound)]
    return [parse_other(item, kind, context, sound=sound)]


def _parse_said(kind: str, side: Side, item: JsonObject, context: Reading, *, sound: bool) -> Message:
    """The message of an input item: text, a tool output, or an instruction to the API."""
    native = context.native(item, sound and (kind != "message" or is_lawful_message(item)))
    if side == "tool":
        # OAI-RESP-05: an output without an id is an update if no call is open.
        response = parse_output(item, context, sound=sound)
        if context.answered and item.get("call_id") is None and kind == "function_call_output":
            return Message("human", (_parse_update(item, response.native),), native=response.native)
        return Message("tool", (response,), native=context.native({}))
    if side == "none":
        if kind == "additional_tools":
            list_of(item.get("tools"), "tools")
        return Message("system", (parse_other(item, kind, context, sound=sound),), native=context.native(item))
    if kind != "message":
        block = parse_other(item, kind, context, sound=sound)
        return Message("human", (block,), native=block.native)
    return _parse_words(item, native, context)


def _parse_update(item: JsonObject, native: Native | None) -> Opaque:
    output = item.get("output")
    text = output if isinstance(output, str) else write_text(output)
    name = string_or_none(item.get("name"))
    return Opaque("function_call_output", text=f"{name}: {text}" if name else text, native=native)


def _parse_words(item: JsonObject, native: Native, context: Reading) -> Message:
    role = item.get("role")
    speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
    if speaker is None:
        # OAI-RESP-14
        raise InputError(f"{role!r} is not a role here; expected one of {', '.join(_SPEAKERS)}", path="role")
    content = item.get("content")
    if isinstance(content, str):
        return Message(speaker, (Text(content),) if content else (), native=native)
    if content is None:
        return Message(speaker, (), native=msgspec.structs.replace(native, intact=False))
    if not isinstance(content, list):
        raise InputError(f"a string or a list of parts was expected, not {kind_of(content)}", path="content")
    blocks = tuple(parse_parts(cast("list[object]", content), "input", "content", context.dialect))
    intact = native.intact and all(block.native is not None and block.native.intact for block in blocks)
    return Message(speaker, blocks, native=msgspec.structs.replace(native, intact=intact))


# ----------------------------------------------------------------------------------------------------------------- out


def render_messages(messages: Sequence[Message], context: Spelling) -> list[JsonObject]:
    context.own_type = own_types(messages, context)
    items: list[JsonObject] = []
    for message in messages:
        match message.speaker:
            case "ai":
                items += render_reply_items(message.blocks, context)
            case "tool":
                items += _render_results(message, context)
            case "human":
                items += _render_words(message, "user", context)
            case "system":
                items += _render_words(message, "developer", context)
    mend = context.dialect.mend_item
    if mend is not None:
        items = [mend(item, item_kind(item), context.report) for item in items]
    # OAI-RESP-14: `compaction_trigger` must be the last item.
    late = [item for item in items[:-1] if item.get("type") == "compaction_trigger"]
    if late:
        context.report.add(
            "dropped", "dropped a compaction_trigger: only allowed as the last item", subject="compaction_trigger"
        )
    return [item for item in items if not any(item is one for one in late)] if late else items


def _render_words(message: Message, role: str, context: Spelling) -> list[JsonObject]:
    if message.name is not None:
        context.report.add("dropped", "dropped the message name: Responses has no such field", subject=message.name)
    native = context.home(message.native)
    if native is not None and native.intact:
        return [_reported(_once(cast("JsonObject", native.fragment), context), native, context)]
    if native is not None and not _is_message(native.fragment):
        # The fragment of another item type cannot be reused for a message.
        native = None
    if native is not None and native.fragment.get("role") in _SPEAKERS:
        role = native.fragment["role"] if role != "user" else role
    rendered: JsonObject = {"role": role, "content": render_content(message.blocks, context)}
    written = rendered if native is None else rewritten(native.fragment, rendered, MESSAGE_KEYS - {"type"})
    return [_reported(written, native, context)]


def _is_message(fragment: Mapping[str, Any]) -> bool:
    return fragment.get("type", "message") == "message" and "role" in fragment


def _once(item: JsonObject, context: Spelling) -> JsonObject:
    """The item without its id if that is invalid or was used before (OAI-RESP-13)."""
    kind, item_id = item_kind_or_none(item) or "", item.get("id")
    if kind == "additional_tools" and item.get("role") != "developer":
        item = {**item, "role": "developer"}
    if item_id is None or kind == "local_shell_call_output":
        return item
    if not context.dialect.lawful_id(kind, item_id) or item_id in context.used:
        return {key: value for key, value in item.items() if key != "id"}
    context.used.add(item_id)
    return item


def _reported(item: JsonObject, native: Native | None, context: Spelling) -> JsonObject:
    """The item; a dropped id is reported."""
    given = native.fragment.get("id") if native is not None else None
    if given is not None and item.get("id") != given and item.get("type") != "local_shell_call_output":
        context.report.add(
            "dropped", "dropped an item id: it is not valid or was used before", subject=str(given), fault="projection"
        )
    return item


def _render_results(message: Message, context: Spelling) -> Iterator[JsonObject]:
    others: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResponse):
            yield _reported(_once(render_output(block, context), context), context.home(block.native), context)
        else:
            others.append(block)
    if others:
        yield {"role": "user", "content": render_content(others, context)}


def render_reply_items(blocks: Sequence[Block], context: Spelling) -> list[JsonObject]:
    """The items of a reply. If an item id in it was used before, ids and reasoning are dropped."""
    if any(_id_of(block, context) in context.used for block in blocks):
        context.report.add("reasoning", "repeated reply rendered without item ids and reasoning")
        blocks = [unfounded(block) for block in blocks if not isinstance(block, Thinking)]
    items: list[JsonObject] = []
    before: Block | None = None
    for block in blocks:
        whole = joined(items[-1], before, block, context) if before is not None and items else None
        if whole is not None:
            items[-1] = whole
        else:
            items += _render_made(block, context)
        before = block
    context.used.update(item["id"] for item in items if isinstance(item.get("id"), str))
    return items


def _id_of(block: Block, context: Spelling) -> str | None:
    home = context.home(block.native)
    return string_or_none(home.fragment.get("id")) if home is not None and home.intact else None


def _render_made(block: Block, context: Spelling) -> list[JsonObject]:
    home = context.home(block.native)
    own = cast("JsonObject", home.fragment) if home is not None and home.intact else None
    match block:
        case ToolCall(kind="hosted"):
            text = TEXTS.hosted_call.format(tool=block.name, arguments=write_text(block.arguments))
            return [own if own is not None else said(text)]
        case ToolCall():
            return [_reported(render_call(block, context), home, context)]
        case ToolResponse():
            return [] if own is None or is_embedded(block) else [own]
        case Thinking():
            return [own if own is not None else render_reasoning(block, home)]
        case Text():
            return [own if own is not None else _reported(render_text(block, home, context), home, context)]
        case Opaque() if own is not None or (home is not None and refers(block)):
            return _render_other(block, own, context)
        case _:
            return [said(str(render_part(block, context).get("text", "")))]


def _render_other(block: Opaque, own: JsonObject | None, context: Spelling) -> list[JsonObject]:
    # OAI-RESP-10, OAI-RESP-13
    if own is None or (refers(block) and own["id"] in context.used):
        context.report.add("dropped", "dropped a reference to an item that is not available", subject=block.text)
        return []
    return [_once(own, context)]
