"""The items of a body ⇄ canonical messages.

A run of items that the model made is one reply: one message whose blocks are the items, in their order. Everything else
is a message by itself. A message item with several parts becomes as many `Text` blocks, each with the item holding that
part alone; at home neighbours that were one item are joined again.
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
    """The type of an item; a message and a reference may leave it out."""
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
    """Where an item stands that is there already under the same id, whole or by reference (OAI-RESP-13)."""
    known: dict[str, JsonObject] = {}
    repeated: set[int] = set()
    for place, item in enumerate(map(object_or_none, items)):
        item_id = raw_id_or_none(item.get("id")) if item is not None else None
        # The one id of an output of the local shell is that of its call.
        if item is None or item_id is None or item.get("type") == "local_shell_call_output":
            continue
        first = known.setdefault(item_id, item)
        if first is not item and (_is_same(first, item) or item_kind_or_none(item) == "item_reference"):
            repeated.add(place)
    return frozenset(repeated)


def _is_same(first: JsonObject, item: JsonObject) -> bool:
    """Whether two items say the same, however far they had come when they were written down."""
    return {**first, "status": None} == {**item, "status": None}


def parse_items(
    items: Sequence[object], reading: Reading, path: str = "input", *, repeated: Container[int] = ()
) -> list[Message]:
    """The messages. What stands in the `repeated` places was read before."""
    messages: list[Message] = []
    run = Run(reading)
    for index, value in enumerate(items):
        try:
            item = object_of(value)
            kind = item_kind(item)
            side = _side(kind, item, reading)
            if index in repeated:
                if side == "ai":
                    # OAI-RESP-08: what was made with reasoning of another reply is not known by this one's.
                    run.add([repetition(item, kind, reading)], sound=kind != "reasoning" or run.thought(item["id"]))
                else:
                    messages += [*run.closed(), Message("human", (repetition(item, kind, reading),))]
                continue
            sound = reading.takes_id(kind, item) and (reading.stored or kind != "item_reference")
            if side == "ai":
                run.add(_parse_made(kind, item, reading, sound=sound), sound)
                continue
            messages += run.closed()
            messages.append(_parse_said(kind, side, item, reading, sound=sound))
        except InputError as error:
            raise error.under(f"{path}[{index}]") from None
    return messages + run.closed()


def parse_reply_items(items: Sequence[object], reading: Reading) -> tuple[Block, ...]:
    """What a reply holds: whatever is in it, the provider put it there."""
    blocks: list[Block] = []
    for message in parse_items(items, reading, "output"):
        alone = [Opaque(str(message.native.fragment.get("type")), native=message.native)] if message.native else []
        blocks += message.blocks or alone
    answered = {block.origin.raw_id for block in blocks if isinstance(block, ToolResponse) and not block.hosted}
    return tuple(_run_there(block, answered) for block in blocks)


def _run_there(block: Block, answered: set[str | None]) -> Block:
    """A call that is answered in the same reply, and its answer: nobody but the provider ran it."""
    if isinstance(block, ToolResponse):
        return msgspec.structs.replace(block, hosted=True)
    if isinstance(block, ToolCall) and block.origin.raw_id is not None and block.origin.raw_id in answered:
        return msgspec.structs.replace(block, kind="hosted")
    return block


def _side(kind: str, item: JsonObject, reading: Reading) -> Side:
    if kind == "message":
        return "ai" if item.get("role") == "assistant" else "human"
    if kind in OUTPUTS:
        return "ai" if is_hosted_output(item, reading) else "tool"
    if kind in OTHERS:
        return OTHERS[kind].side
    return "human" if kind.endswith(("_output", "_response")) else "ai"


def _parse_made(kind: str, item: JsonObject, reading: Reading, *, sound: bool) -> list[Block]:
    """The blocks of an item that the model, or the provider for it, made."""
    if kind == "message":
        return parse_answer(item, reading)
    if kind == "reasoning":
        return [parse_reasoning(item, reading)]
    if kind in ("tool_search_call", "tool_search_output") and item.get("call_id") is None:
        # Nothing but order tells which search found these.
        reading.searches += 1 if kind == "tool_search_call" else -1
        if reading.searches < 0:
            reading.searches = 0
            return [parse_other(item, kind, reading, sound=sound)]
    if kind in FUNCTIONS or kind in TYPED:
        return [parse_call(item, reading, sound=sound)]
    if kind in OUTPUTS:
        return [parse_output(item, reading, sound=sound)]
    if kind in HOSTED:
        return parse_hosted(item, reading, sound=sound)
    if kind == REQUEST:
        return [parse_approval(item, reading, sound=sound)]
    return [parse_other(item, kind, reading, sound=sound)]


def _parse_said(kind: str, side: Side, item: JsonObject, reading: Reading, *, sound: bool) -> Message:
    """An item that is a message by itself: somebody's words, an output, or an instruction to the API."""
    native = reading.native(item, sound and (kind != "message" or is_lawful_message(item)))
    if side == "tool":
        # OAI-RESP-05: an output without an id is an update that nobody waits for, if nothing is open.
        response = parse_output(item, reading, sound=sound)
        if reading.answered and item.get("call_id") is None and kind == "function_call_output":
            return Message("human", (_parse_update(item, response.native),), native=response.native)
        return Message("tool", (response,), native=reading.native({}))
    if side == "none":
        if kind == "additional_tools":
            list_of(item.get("tools"), "tools")
        return Message("system", (parse_other(item, kind, reading, sound=sound),), native=reading.native(item))
    if kind != "message":
        told = parse_other(item, kind, reading, sound=sound)
        return Message("human", (told,), native=told.native)
    return _parse_words(item, native, reading)


def _parse_update(item: JsonObject, native: Native | None) -> Opaque:
    output = item.get("output")
    text = output if isinstance(output, str) else write_text(output)
    name = string_or_none(item.get("name"))
    return Opaque("function_call_output", text=f"{name}: {text}" if name else text, native=native)


def _parse_words(item: JsonObject, native: Native, reading: Reading) -> Message:
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
    blocks = tuple(parse_parts(cast("list[object]", content), "input", "content", reading.dialect))
    intact = native.intact and all(block.native is not None and block.native.intact for block in blocks)
    return Message(speaker, blocks, native=msgspec.structs.replace(native, intact=intact))


# ----------------------------------------------------------------------------------------------------------------- out


def render_messages(messages: Sequence[Message], out: Spelling) -> list[JsonObject]:
    out.own_type = own_types(messages, out)
    items: list[JsonObject] = []
    for message in messages:
        match message.speaker:
            case "ai":
                items += render_reply_items(message.blocks, out)
            case "tool":
                items += _render_results(message, out)
            case "human":
                items += _render_words(message, "user", out)
            case "system":
                items += _render_words(message, "developer", out)
    mend = out.dialect.mend_item
    if mend is not None:
        items = [mend(item, item_kind(item), out.report) for item in items]
    # OAI-RESP-14: compaction is asked for last, or not at all.
    late = [item for item in items[:-1] if item.get("type") == "compaction_trigger"]
    if late:
        out.report.add("dropped", "a compaction_trigger that is not the last item", subject="compaction_trigger")
    return [item for item in items if not any(item is one for one in late)] if late else items


def _render_words(message: Message, role: str, out: Spelling) -> list[JsonObject]:
    if message.name is not None:
        out.report.add("dropped", "a speaker's name has no place here", subject=message.name)
    native = out.home(message.native)
    if native is not None and native.intact:
        return [_reported(_once(cast("JsonObject", native.fragment), out), native, out)]
    if native is not None and not _is_message(native.fragment):
        # An item of another kind is all that its fragment says; what became of it is said in a message of its own.
        native = None
    if native is not None and native.fragment.get("role") in _SPEAKERS:
        role = native.fragment["role"] if role != "user" else role
    anew: JsonObject = {"role": role, "content": render_content(message.blocks, out)}
    written = anew if native is None else rewritten(native.fragment, anew, MESSAGE_KEYS - {"type"})
    return [_reported(written, native, out)]


def _is_message(fragment: Mapping[str, Any]) -> bool:
    return fragment.get("type", "message") == "message" and "role" in fragment


def _once(item: JsonObject, out: Spelling) -> JsonObject:
    """The item, without its id where that was used before (OAI-RESP-13) or can't be one."""
    kind, item_id = item_kind_or_none(item) or "", item.get("id")
    if kind == "additional_tools" and item.get("role") != "developer":
        item = {**item, "role": "developer"}
    if item_id is None or kind == "local_shell_call_output":
        return item
    if not out.dialect.lawful_id(kind, item_id) or item_id in out.used:
        return {key: value for key, value in item.items() if key != "id"}
    out.used.add(item_id)
    return item


def _reported(item: JsonObject, native: Native | None, out: Spelling) -> JsonObject:
    """The item; that it lost its id is written down."""
    given = native.fragment.get("id") if native is not None else None
    if given is not None and item.get("id") != given and item.get("type") != "local_shell_call_output":
        out.report.add("dropped", "an item goes without the id that it had", subject=str(given), fault="projection")
    return item


def _render_results(message: Message, out: Spelling) -> Iterator[JsonObject]:
    words: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResponse):
            yield _reported(_once(render_output(block, out), out), out.home(block.native), out)
        else:
            words.append(block)
    if words:
        yield {"role": "user", "content": render_content(words, out)}


def render_reply_items(blocks: Sequence[Block], out: Spelling) -> list[JsonObject]:
    """The items of a reply. Where an id in it was used before, it goes without ids and without reasoning."""
    if any(_id_of(block, out) in out.used for block in blocks):
        out.report.add("reasoning", "a reply that was sent before is told again without its ids and reasoning")
        blocks = [unfounded(block) for block in blocks if not isinstance(block, Thinking)]
    items: list[JsonObject] = []
    before: Block | None = None
    for block in blocks:
        whole = joined(items[-1], before, block, out) if before is not None and items else None
        if whole is not None:
            items[-1] = whole
        else:
            items += _render_made(block, out)
        before = block
    out.used.update(item["id"] for item in items if isinstance(item.get("id"), str))
    return items


def _id_of(block: Block, out: Spelling) -> str | None:
    home = out.home(block.native)
    return string_or_none(home.fragment.get("id")) if home is not None and home.intact else None


def _render_made(block: Block, out: Spelling) -> list[JsonObject]:
    home = out.home(block.native)
    own = cast("JsonObject", home.fragment) if home is not None and home.intact else None
    match block:
        case ToolCall(kind="hosted"):
            told = TEXTS.hosted_call.format(tool=block.name, arguments=write_text(block.arguments))
            return [own if own is not None else said(told)]
        case ToolCall():
            return [_reported(render_call(block, out), home, out)]
        case ToolResponse():
            return [] if own is None or is_embedded(block) else [own]
        case Thinking():
            return [own if own is not None else render_reasoning(block, home)]
        case Text():
            return [own if own is not None else _reported(render_text(block, home, out), home, out)]
        case Opaque() if own is not None or (home is not None and refers(block)):
            return _render_other(block, own, out)
        case _:
            return [said(str(render_part(block, out).get("text", "")))]


def _render_other(block: Opaque, own: JsonObject | None, out: Spelling) -> list[JsonObject]:
    # OAI-RESP-10, OAI-RESP-13
    if own is None or (refers(block) and own["id"] in out.used):
        out.report.add("dropped", "a reference to an item that can't be looked up", subject=block.text)
        return []
    return [_once(own, out)]
