"""The items of a body ⇄ canonical messages.

Consecutive items made by the model are one reply: one message whose blocks are the items, in order. Every other item is
a message of its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec

from segue.canonical.blocks import Block, Message, Native, Opaque, Speaker, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.envelope import is_envelope
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text
from segue.errors import InputError
from segue.render.constraints import TEXTS
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    objects_in,
    optional_string,
    require_list,
    require_object,
    string_or_none,
)
from segue.wire.merge import replace_modelled_fields
from segue.wire.mixed_body import (
    find_item_api,
    has_results,
    parse_item,
    parse_message,
    parse_reasoning_item,
    split_calls,
)
from segue.wire.openai_responses.context import ParseContext, ResponsesContext, has_whole_arguments
from segue.wire.openai_responses.item_types import (
    APPROVAL_REQUEST,
    CALL_TYPES,
    FUNCTION_TYPES,
    HOSTED_TYPES,
    OPAQUE_TYPES,
    OUTPUT_TYPES,
    is_embedded,
    item_type,
    item_type_or_none,
    parse_approval,
    parse_hosted,
    parse_opaque,
    parse_repeated,
)
from segue.wire.openai_responses.items import (
    CALL_KEYS,
    MESSAGE_KEYS,
    assistant_message,
    find_typed_calls,
    is_hosted_output,
    is_valid_message,
    join_parts,
    parse_assistant_message,
    parse_call,
    parse_output,
    parse_reasoning,
    render_call,
    render_output,
    render_reasoning,
    render_text,
)
from segue.wire.openai_responses.parts import PART_KEYS, are_intact, parse_parts, render_content, render_part

_SPEAKERS: dict[str, Speaker] = {"user": "human", "assistant": "ai", "system": "system", "developer": "system"}
ITEM_KEYS = (
    CALL_KEYS | PART_KEYS | {"role", "content", "summary", "encrypted_content", "caller.type", "caller.caller_id"}
)
_OWN_ROLES = ("user", "assistant", "system", "developer")
_FUNCTION_ITEMS = frozenset({*FUNCTION_TYPES, *FUNCTION_TYPES.values()})
_Side: TypeAlias = Literal["ai", "human", "tool", "none"]


# ------------------------------------------------------------------------------------------------------------------- in


def repeated_positions(items: Sequence[object]) -> frozenset[int]:
    """Return the positions of items that repeat an earlier one with the same id (OAI-RESP-13)."""
    known_ids = [item_id for item in objects_in(items) if type(item_id := item.get("id")) is str]
    if len(set(known_ids)) == len(known_ids):
        return frozenset()
    first_by_id: dict[str, JsonObject] = {}
    repeated: set[int] = set()
    for position, item in enumerate(map(object_or_none, items)):
        item_id = raw_id_or_none(item.get("id")) if item is not None else None
        # The only id of a local shell output is the id of its call.
        if item is None or item_id is None or item.get("type") == "local_shell_call_output":
            continue
        first = first_by_id.setdefault(item_id, item)
        if first is not item and (_is_same_item(first, item) or item_type_or_none(item) == "item_reference"):
            repeated.add(position)
    return frozenset(repeated)


def _is_same_item(first: JsonObject, item: JsonObject) -> bool:
    """Return whether two items are equal apart from their status."""
    return {**first, "status": None} == {**item, "status": None}


def parse_items(
    items: Sequence[object], context: ParseContext, path: str = "input", *, repeated: Container[int] = ()
) -> list[Message]:
    """Parse items into messages. Items at `repeated` positions are duplicates."""
    messages: list[Message] = []
    group = _ReplyGroup(context)
    for index, value in enumerate(items):
        try:
            item = require_object(value)
            if "call_id" in item and path == "input":
                # Replies may have any value here.
                optional_string(item["call_id"], "call_id")
            foreign = _parse_foreign(item, context)
            if foreign is not None:
                blocks, side = foreign
                if side == "ai":
                    group.add(blocks, True)
                else:
                    messages += [*group.close(), Message("tool", tuple(blocks), native=context.native({}))]
                continue
            kind = item_type(item)
            side = _side_of(kind, item, context)
            if index in repeated:
                if side == "ai":
                    # OAI-RESP-08: repeated reasoning must belong to the same reply.
                    group.add(
                        [parse_repeated(item, kind, context)],
                        valid_id=kind != "reasoning" or group.has_reasoning(item["id"]),
                    )
                else:
                    messages += [*group.close(), Message("human", (parse_repeated(item, kind, context),))]
                continue
            sound = context.accepts_id(kind, item) and (context.stored or kind != "item_reference")
            if side == "ai":
                lacks_id = path == "input" and item.get("id") is None
                if lacks_id:
                    group.drop_trailing_references()
                group.add(
                    _parse_model_item(kind, item, context, valid_id=sound),
                    sound and not (lacks_id and group.needs_item_id),
                )
                continue
            messages += group.close()
            messages.append(_parse_input_item(kind, side, item, context, valid_id=sound))
        except InputError as error:
            raise error.with_prefix(f"{path}[{index}]") from None
    return messages + group.close()


def _parse_foreign(item: JsonObject, context: ParseContext) -> tuple[Sequence[Block], Literal["ai", "tool"]] | None:
    """Parse an item in another API's form, and return the side it belongs to; None for this API's own items."""
    body_api = context.dialect.body_api
    if "role" not in item:
        kind = item.get("type")
        if isinstance(kind, str) and kind in _FUNCTION_ITEMS:
            return None
        if kind != "reasoning" and (thought := parse_reasoning_item(item, body_api)) is not None:
            return [thought], "ai"
        if find_item_api(item) in (None, body_api.base_api) or (block := parse_item(item, body_api)) is None:
            return None
        return [block], "ai" if isinstance(block, ToolCall) else "tool"
    role, is_own = item.get("role"), "parts" not in item
    if is_own and "tool_calls" not in item and role in _OWN_ROLES:
        return None
    if role == "assistant" and is_own:
        rest, calls = split_calls(item, body_api)
        return ([*parse_assistant_message(rest, context), *calls], "ai") if calls else None
    message = parse_message(item, body_api)
    return None if message is None else (message.blocks, "ai" if message.speaker == "ai" else "tool")


def parse_reply_items(items: Sequence[object], context: ParseContext) -> tuple[Block, ...]:
    """Parse the items of a reply. The provider ran the calls with a result, and those that only it can run."""
    blocks: list[Block] = []
    for message in parse_items(items, context, "output"):
        fallback = [Opaque(str(message.native.fragment.get("type")), native=message.native)] if message.native else []
        blocks += message.blocks or fallback
    answered = context.answered_ids - {None}
    return tuple(_mark_hosted(block, answered) for block in blocks)


def _mark_hosted(block: Block, answered: Container[str | None]) -> Block:
    """Mark what the provider ran as hosted: a result, a call with one in the same reply, a shell in a container.

    A call for the client whose item is incomplete was cut off.
    """
    if isinstance(block, ToolResponse):
        return msgspec.structs.replace(block, hosted=True)
    if isinstance(block, ToolCall) and (block.origin.raw_id in answered or _is_hosted_item(block)):
        return msgspec.structs.replace(block, kind="hosted")
    if isinstance(block, ToolCall) and block.kind != "hosted" and _is_cut_off(block):
        text = block.arguments_text or encode_json_text(block.arguments)
        return msgspec.structs.replace(block, arguments=None, arguments_text=text, broken=True)
    return block


def _is_cut_off(call: ToolCall) -> bool:
    item = _item_of(call)
    return item.get("status") == "incomplete" and not has_whole_arguments(call, item.get("type"))


def _item_of(call: ToolCall) -> JsonObject:
    return dict(call.native.fragment) if call.native is not None else {}


def _is_hosted_item(call: ToolCall) -> bool:
    item = _item_of(call)
    row = CALL_TYPES.get(str(item.get("type")))
    return row is not None and row.is_hosted(item)


def _side_of(kind: str, item: JsonObject, context: ParseContext) -> _Side:
    if kind == "message":
        return "ai" if item.get("role") == "assistant" else "human"
    if kind in OUTPUT_TYPES:
        return "ai" if is_hosted_output(item, context) else "tool"
    if kind in OPAQUE_TYPES:
        return OPAQUE_TYPES[kind].side
    return "human" if kind.endswith(("_output", "_response")) else "ai"


def _parse_model_item(kind: str, item: JsonObject, context: ParseContext, *, valid_id: bool) -> list[Block]:
    """Parse an item made by the model or the provider."""
    if kind == "message":
        return parse_assistant_message(item, context)
    if kind == "reasoning":
        return [parse_reasoning(item, context)]
    if kind in ("tool_search_call", "tool_search_output") and item.get("call_id") is None:
        # Without ids, searches and their results are paired by order.
        context.open_searches += 1 if kind == "tool_search_call" else -1
        if context.open_searches < 0:
            context.open_searches = 0
            return [parse_opaque(item, kind, context, valid_id=valid_id)]
    if kind in FUNCTION_TYPES or kind in CALL_TYPES:
        return [parse_call(item, context, valid_id=valid_id)]
    if kind in OUTPUT_TYPES:
        return [parse_output(item, context, valid_id=valid_id)]
    if kind in HOSTED_TYPES:
        return parse_hosted(item, context, valid_id=valid_id)
    if kind == APPROVAL_REQUEST:
        return [parse_approval(item, context, valid_id=valid_id)]
    return [parse_opaque(item, kind, context, valid_id=valid_id)]


def _parse_input_item(kind: str, side: _Side, item: JsonObject, context: ParseContext, *, valid_id: bool) -> Message:
    """Parse an input item: text, a tool output, or an instruction to the API."""
    native = context.native(item, valid_id and (kind != "message" or is_valid_message(item)))
    if side == "tool":
        # OAI-RESP-05: an output without the key `call_id` is an update if no call is open.
        response = parse_output(item, context, valid_id=valid_id)
        if context.all_answered and "call_id" not in item and kind == "function_call_output":
            return Message("human", (_parse_update(item, response.native),), native=response.native)
        return Message("tool", (response,), native=context.native({}))
    if side == "none":
        if kind == "additional_tools":
            require_list(item.get("tools"), "tools")
        return Message("system", (parse_opaque(item, kind, context, valid_id=valid_id),), native=context.native(item))
    if kind != "message":
        block = parse_opaque(item, kind, context, valid_id=valid_id)
        return Message("human", (block,), native=block.native)
    return _parse_text_message(item, native, context)


def _parse_update(item: JsonObject, native: Native | None) -> Opaque:
    output = item.get("output")
    text = output if isinstance(output, str) else encode_json_text(output)
    name = string_or_none(item.get("name"))
    return Opaque("function_call_output", text=f"{name}: {text}" if name else text, native=native)


def _parse_text_message(item: JsonObject, native: Native, context: ParseContext) -> Message:
    role = item.get("role")
    speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
    if speaker is None:
        # OAI-RESP-14
        raise InputError(f"{role!r} is not a role here; expected one of {', '.join(_SPEAKERS)}", path="role")
    if "content" not in item:
        raise InputError("`content` is missing", path="content")
    content = item["content"]
    if isinstance(content, str):
        return Message(speaker, (Text(content),) if content else (), native=native)
    if content is None:
        return Message(speaker, (), native=msgspec.structs.replace(native, intact=False))
    if not isinstance(content, list):
        raise InputError(f"a string or a list of parts was expected, not {json_type_name(content)}", path="content")
    blocks = tuple(parse_parts(cast("list[object]", content), "input", "content", context.dialect))
    intact = native.intact and are_intact(blocks, context.dialect)
    speaker = "tool" if has_results(blocks) else speaker
    return Message(speaker, blocks, native=msgspec.structs.replace(native, intact=intact))


# -------------------------------------------------------------------------------------------------------------- replies


class _ReplyGroup:
    """The items of one reply. One invalid item id invalidates those of all others.

    The provider checks that each reasoning item is followed by the items that the model made after it. So if an item
    id or the reasoning of a reply is invalid, the reply is sent without item ids and reasoning: its blocks are not
    intact.
    """

    def __init__(self, context: ParseContext) -> None:
        self._context = context
        self._blocks: list[Block] = []
        self._valid_ids = True

    def add(self, blocks: Iterable[Block], valid_id: bool) -> None:
        self._valid_ids = self._valid_ids and valid_id
        # OAI-RESP-08: an item behind reasoning without an id has none either.
        newest = self._blocks[-1] if self._blocks else None
        if isinstance(newest, Thinking) and newest.encrypted and newest.origin.item_id is None:
            blocks = [block if isinstance(block, Thinking) else _strip_ids_and_reasoning(block) for block in blocks]
        for block in blocks:
            self._blocks.append(block)
            if isinstance(block, Thinking) and not (block.signature or block.encrypted):
                self._valid_ids = False

    @property
    def needs_item_id(self) -> bool:
        """Whether the next item needs its id: it follows reasoning that the provider may look up (OAI-RESP-07)."""
        # A repeated item has no effect.
        newest = next((block for block in reversed(self._blocks) if not isinstance(block, Opaque)), None)
        if not self._context.stored or not isinstance(newest, Thinking) or newest.signature is None:
            return False
        # OAI-RESP-10: reasoning in plain text is not looked up.
        return newest.native is None or not newest.native.fragment.get("content")

    def has_reasoning(self, item_id: str) -> bool:
        """Return whether the reply has the reasoning item with this id."""
        return any(isinstance(block, Thinking) and block.origin.item_id == item_id for block in self._blocks)

    def drop_trailing_references(self) -> None:
        """Drop references to reasoning that the next item does not follow by its own id (OAI-RESP-07)."""
        self._blocks = _drop_trailing_references(self._blocks)

    def close(self) -> list[Message]:
        if not self._blocks:
            return []
        self.drop_trailing_references()
        blocks = self._blocks if self._valid_ids else [_strip_ids_and_reasoning(block) for block in self._blocks]
        message = Message("ai", tuple(blocks), native=self._context.native({}))
        self._blocks, self._valid_ids = [], True
        return [message]


def _drop_trailing_references(blocks: list[Block]) -> list[Block]:
    """Mark trailing references as not intact: reasoning must not be the last item of a reply (OAI-RESP-07)."""
    end = len(blocks)
    while end and _is_reference(block := blocks[end - 1]):
        if block.native is not None and block.native.intact and not str(block.native.fragment["id"]).startswith("rs"):
            break
        end -= 1
    return [*blocks[:end], *(_mark_not_intact(block) for block in blocks[end:])]


def _is_reference(block: Block) -> bool:
    return isinstance(block, Opaque) and block.kind == "item_reference"


def _mark_not_intact(block: Block) -> Block:
    if block.native is None:
        return block
    return msgspec.structs.replace(block, native=msgspec.structs.replace(block.native, intact=False))


def _strip_ids_and_reasoning(block: Block) -> Block:
    """Remove item id and reasoning content, which are only valid together (OAI-RESP-07, OAI-RESP-08)."""
    if isinstance(block, Thinking):
        if is_envelope(block.encrypted):
            # It is not the provider's: segue opens it, or drops and reports it.
            return msgspec.structs.replace(block, signature=None)
        # An empty text is not sent, but dropping it is reported.
        return msgspec.structs.replace(block, signature=None, encrypted="" if block.encrypted else None)
    if block.native is None or (isinstance(block, ToolCall) and block.kind == "hosted"):
        return block
    if isinstance(block, Opaque) or (isinstance(block, ToolResponse) and block.hosted):
        return block
    if isinstance(block, ToolCall) and block.native.intact and block.native.fragment.get("type") in CALL_TYPES:
        # Its output has the matching type, so the type is kept; only the id is removed.
        without_id = {key: value for key, value in block.native.fragment.items() if key != "id"}
        return msgspec.structs.replace(block, native=Native(block.native.api, without_id))
    return _mark_not_intact(block)


# ------------------------------------------------------------------------------------------------------------------ out


def render_messages(messages: Sequence[Message], context: ResponsesContext) -> list[JsonObject]:
    context.typed_call_ids = find_typed_calls(messages, context)
    items: list[JsonObject] = []
    for message in messages:
        match message.speaker:
            case "ai":
                items += render_reply_items(message.blocks, context)
            case "tool":
                items += _render_results(message, context)
            case "human":
                items += _render_text_message(message, "user", context)
            case "system":
                items += _render_text_message(message, "developer", context)
    repair_item = context.dialect.repair_item
    if repair_item is not None:
        items = [repair_item(item, item_type(item), context.report) for item in items]
    # OAI-RESP-27: `compaction_trigger` must be the last item.
    misplaced = [item for item in items[:-1] if item.get("type") == "compaction_trigger"]
    if misplaced:
        why = "compaction_trigger dropped: only allowed as the last item"
        context.report.add("dropped", why, subject="compaction_trigger")
    return [item for item in items if not any(item is dropped for dropped in misplaced)] if misplaced else items


def _render_text_message(message: Message, role: str, context: ResponsesContext) -> list[JsonObject]:
    native = context.own_native(message.native)
    if native is not None and native.intact:
        return [_report_dropped_id(_drop_repeated_id(cast("JsonObject", native.fragment), context), native, context)]
    if native is not None and not _is_message(native.fragment):
        # The fragment of another item type cannot be reused for a message.
        native = None
    if native is not None and native.fragment.get("role") in _SPEAKERS:
        role = native.fragment["role"] if role != "user" else role
    rendered: JsonObject = {"role": role, "content": render_content(message.blocks, context)}
    item = rendered if native is None else replace_modelled_fields(native.fragment, rendered, MESSAGE_KEYS - {"type"})
    return [_report_dropped_id(item, native, context)]


def _is_message(fragment: Mapping[str, Any]) -> bool:
    return fragment.get("type", "message") == "message" and "role" in fragment


def _drop_repeated_id(item: JsonObject, context: ResponsesContext) -> JsonObject:
    """Drop the item's id if it is invalid or was used before (OAI-RESP-13)."""
    kind, item_id = item_type_or_none(item) or "", item.get("id")
    if kind == "additional_tools" and item.get("role") != "developer":
        item = {**item, "role": "developer"}
    if item_id is None or kind == "local_shell_call_output":
        return item
    if not context.dialect.is_valid_id(kind, item_id) or item_id in context.used_item_ids:
        return {key: value for key, value in item.items() if key != "id"}
    context.used_item_ids.add(item_id)
    return item


def _report_dropped_id(item: JsonObject, native: Native | None, context: ResponsesContext) -> JsonObject:
    """Report the item's id if it was dropped; returns the item."""
    original_id = native.fragment.get("id") if native is not None else None
    if original_id is not None and item.get("id") != original_id and item.get("type") != "local_shell_call_output":
        message = "item id dropped: it is invalid or used by another item"
        context.report.add("dropped", message, subject="id", fault="projection", level="note")
    return item


def _render_results(message: Message, context: ResponsesContext) -> Iterator[JsonObject]:
    others: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResponse):
            yield _report_dropped_id(
                _drop_repeated_id(render_output(block, context), context), context.own_native(block.native), context
            )
        else:
            others.append(block)
    if others:
        yield {"role": "user", "content": render_content(others, context)}


def render_reply_items(blocks: Sequence[Block], context: ResponsesContext) -> list[JsonObject]:
    """Render the items of a reply. If an item id in it was used before, ids and reasoning are dropped."""
    if any(_own_item_id(block, context) in context.used_item_ids for block in blocks):
        context.report.add("reasoning", "repeated reply sent without item ids and reasoning")
        blocks = [_strip_ids_and_reasoning(block) for block in blocks if not isinstance(block, Thinking)]
    items: list[JsonObject] = []
    previous: Block | None = None
    context.keeps_item_ids = False
    for block in blocks:
        joined = join_parts(items[-1], previous, block, context) if previous is not None and items else None
        if joined is not None:
            items[-1] = joined
        else:
            items += _render_block(block, context)
        # OAI-RESP-07
        context.keeps_item_ids = context.keeps_item_ids or (isinstance(block, Thinking) and "id" in items[-1])
        previous = block
    context.used_item_ids.update(item["id"] for item in items if isinstance(item.get("id"), str))
    return items


def _own_item_id(block: Block, context: ResponsesContext) -> str | None:
    own_native = context.own_native(block.native)
    return string_or_none(own_native.fragment.get("id")) if own_native is not None and own_native.intact else None


def _render_block(block: Block, context: ResponsesContext) -> list[JsonObject]:
    own_native = context.own_native(block.native)
    original = cast("JsonObject", own_native.fragment) if own_native is not None and own_native.intact else None
    match block:
        case ToolCall(kind="hosted"):
            text = TEXTS.hosted_call.format(tool=block.name, arguments=encode_json_text(block.arguments))
            return [original if original is not None else assistant_message(text)]
        case ToolCall():
            return [_report_dropped_id(render_call(block, context), own_native, context)]
        case ToolResponse():
            return [] if original is None or is_embedded(block) else [original]
        case Thinking():
            return [original if original is not None else render_reasoning(block, own_native)]
        case Text():
            return [
                original
                if original is not None
                else _report_dropped_id(render_text(block, own_native, context), own_native, context)
            ]
        case Opaque() if original is not None or (own_native is not None and _is_reference(block)):
            return _render_other(block, original, context)
        case _:
            return [assistant_message(str(render_part(block, context).get("text", "")))]


def _render_other(block: Opaque, original: JsonObject | None, context: ResponsesContext) -> list[JsonObject]:
    # OAI-RESP-10, OAI-RESP-13
    if original is None or (_is_reference(block) and original["id"] in context.used_item_ids):
        context.report.add("dropped", "item_reference dropped: the item is not available", subject=block.text)
        return []
    return [_drop_repeated_id(original, context)]
