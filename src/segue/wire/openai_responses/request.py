"""Responses bodies ⇄ `Request` and `Transcript`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Native, Text, ToolCall, calls_of
from segue.canonical.ids import raw_id_or_none
from segue.canonical.pairing import pair
from segue.canonical.request import Request, Tool
from segue.errors import InputError
from segue.models import identify
from segue.render.transcript import Transcript
from segue.wire.base import Projection
from segue.wire.fields import JsonObject, kind_of, list_of, object_or_none, string_or_none
from segue.wire.openai import is_openai
from segue.wire.openai_responses.calls import FUNCTIONS, OUTPUTS
from segue.wire.openai_responses.items import (
    ITEM_KEYS,
    item_kind_or_none,
    parse_items,
    render_messages,
    repeated_places,
)
from segue.wire.openai_responses.options import (
    OPTION_KEYS,
    lawful_options,
    parse_options,
    render_kindred_options,
    render_options,
    respelled_choice,
)
from segue.wire.openai_responses.shared import Reading, ResponsesDialect, Spelling
from segue.wire.openai_responses.tools import (
    DECLARING,
    bare_names,
    declared_in_items,
    parse_tools,
    render_tools,
    respelled_tools,
)
from segue.wire.openai_responses.typed import TYPED, TypedCall
from segue.wire.overlay import laid_over
from segue.wire.schema import fitted_format, rules

__all__ = ["BODY_KEYS", "ITEM_KEYS", "parse_request", "reading_of", "render_request"]

BODY_KEYS = OPTION_KEYS | {"model", "input", "instructions", "tools", "previous_response_id", "conversation"}


# ------------------------------------------------------------------------------------------------------------------ in


def parse_request(body: Mapping[str, Any], dialect: ResponsesDialect) -> Request:
    model = string_or_none(body.get("model")) or None
    items = _items(body, dialect)
    declared = [] if body.get("tools") is None else parse_tools(body["tools"], dialect)
    names = {tool.name for tool in declared}
    declared += [tool for tool in declared_in_items(items, dialect) if tool.name not in names]
    # OAI-RESP-10: earlier items may have been stored.
    stored = body.get("store") is not False or _goes_on(body, dialect) is not None
    repeated = repeated_places(items)
    once = [item for place, item in enumerate(items) if place not in repeated] if repeated else items
    context = reading_of(once, model, dialect, names=bare_names(declared), stored=stored)
    context.continues = context.referred or _goes_on(body, dialect) is not None
    return Request(
        pair(parse_items(items, context, repeated=repeated)),
        system=_parse_instructions(body.get("instructions"), dialect),
        tools=tuple(declared),
        options=parse_options(body, dialect),
        model=model,
        continues=_held_elsewhere(body, items, dialect),
        native=Native(dialect.name, body),
    )


def _items(body: Mapping[str, Any], dialect: ResponsesDialect) -> Sequence[object]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if given is None:
        if _goes_on(body, dialect) is None and not isinstance(body.get("prompt"), dict):
            raise InputError("a string or a list of items was expected", path="input")
        return []
    if not isinstance(given, list):
        raise InputError(f"a string or a list of items was expected, not {kind_of(given)}", path="input")
    return cast("list[object]", given)


def reading_of(
    items: Sequence[object],
    model: str | None,
    dialect: ResponsesDialect,
    *,
    stored: bool,
    names: dict[str, str] | None = None,
) -> Reading:
    """The parse context: facts about all items that parsing a single one needs."""
    called: Counter[str | None] = Counter()
    answered: Counter[str | None] = Counter()
    hosted: dict[str, TypedCall] = {}
    shells: dict[str, str] = {}
    referred = _referred(items)
    for item in filter(None, map(object_or_none, items)):
        kind, call_id = str(item.get("type")), raw_id_or_none(item.get("call_id"))
        if kind in OUTPUTS:
            answered[call_id or raw_id_or_none(item.get("id"))] += 1
        elif kind in TYPED and TYPED[kind].hosted(item):
            hosted.update({call_id: TYPED[kind]} if call_id is not None else {})
        elif item.get("async") is not True and (kind in FUNCTIONS or (kind in TYPED and not TYPED[kind].unnamed)):
            called[call_id] += 1
            if kind == "local_shell_call" and call_id is not None and isinstance(item.get("id"), str):
                shells[item["id"]] = call_id
    return Reading(
        model,
        stored,
        names or {},
        frozenset(call_id for call_id, row in hosted.items() if call_id in answered or not row.missed),
        answered=bool(referred)
        or _all_answered(called, (shells.get(name or "", name) for name in answered.elements())),
        referred=bool(referred),
        shells=shells,
        crowded=frozenset(call_id for call_id, count in answered.items() if call_id is not None and count > 1),
        dialect=dialect,
    )


def _all_answered(called: Counter[str | None], answered: Iterable[str | None]) -> bool:
    return None not in called and called <= Counter(answered)


def _goes_on(body: Mapping[str, Any], dialect: ResponsesDialect) -> str | None:
    """The stored response or conversation that precedes the items of the body."""
    conversation = object_or_none(body.get("conversation"))
    previous = string_or_none(body.get("previous_response_id")) or ""
    held = (previous if dialect.goes_on(previous) else None) or string_or_none(body.get("conversation"))
    if held or conversation is None:
        return held or None
    return string_or_none(conversation.get("id")) or "a stored conversation"


def _referred(items: Sequence[object]) -> list[str]:
    """Ids of referenced stored items that may be calls or outputs."""
    entries = [entry for entry in map(object_or_none, items) if entry is not None]
    named = [entry.get("id") for entry in entries if item_kind_or_none(entry) == "item_reference"]
    return [name for name in named if isinstance(name, str) and name and not name.startswith(("msg", "rs"))]


def _held_elsewhere(body: Mapping[str, Any], items: Sequence[object], dialect: ResponsesDialect) -> str | None:
    """Stored state that the body continues and does not contain."""
    referred = _referred(items)
    return _goes_on(body, dialect) or (f"the stored item {referred[0]}" if referred else None)


def _parse_instructions(value: object, dialect: ResponsesDialect) -> tuple[Text, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    # Replies return instructions as a list of items.
    messages = parse_items(list_of(value, "instructions"), Reading(dialect=dialect), "instructions")
    return tuple(
        Text(block.text, native=block.native)
        for message in messages
        for block in message.blocks
        if isinstance(block, Text)
    )


# ----------------------------------------------------------------------------------------------------------------- out


def render_request(transcript: Transcript, render_context: Projection, dialect: ResponsesDialect) -> JsonObject:
    original: Mapping[str, Any] = {}
    if transcript.home and transcript.request.native is not None:
        original = transcript.request.native.fragment
    calls = [call for message in transcript.messages for call in calls_of(message)]
    context = Spelling(dialect, render_context, calls)
    items = render_messages(transcript.messages, context)
    if transcript.home:
        return _render_at_home(transcript, original, items, context)
    tools = render_tools(transcript.tools, _used(transcript, calls), context)
    declared = frozenset(tool.name for tool in transcript.tools if tool.kind != "hosted") if tools else frozenset[str]()
    options = transcript.options
    if not is_openai(transcript.request.native):
        form = fitted_format(options.response_format, rules.OPENAI, context.report, strict=rules.OPENAI_STRICT)
        options = msgspec.structs.replace(options, response_format=form)
    options = lawful_options(options, identify(transcript.model), declared, context)
    rendered = render_options(options, context.spell, _custom_names(transcript.tools), {})
    body: JsonObject = {} if transcript.model is None else {"model": transcript.model}
    instructions = _render_instructions(transcript.system)
    if instructions:
        body["instructions"] = instructions
    body["input"] = items
    if tools:
        body["tools"] = tools
    return body | (render_kindred_options(options, rendered) if dialect.kindred else rendered)


def _used(transcript: Transcript, calls: Sequence[ToolCall]) -> frozenset[str]:
    choice = transcript.options.tool_choice
    return frozenset({call.name for call in calls} | ({choice.name} if choice is not None and choice.name else set()))


def _custom_names(tools: Sequence[Tool]) -> frozenset[str]:
    return frozenset(tool.name for tool in tools if tool.kind == "custom")


def _render_instructions(system: Sequence[Text]) -> str:
    return "\n\n".join(block.text for block in system if block.text)


def _render_at_home(
    transcript: Transcript, original: Mapping[str, Any], items: list[JsonObject], context: Spelling
) -> JsonObject:
    """The original body with the changes merged into it."""
    body = _lay_options(transcript, original, context)
    # Replies return instructions as a list, which requests reject.
    if transcript.system != transcript.request.system or isinstance(original.get("instructions"), list):
        body["instructions"] = _render_instructions(transcript.system)
    if original.get("input") is None and not items:
        pass
    elif not isinstance(original.get("input"), str) or items != _items(original, context.dialect):
        _lay_list(body, "input", _with_respelled_tools(items, transcript.tools, context))
    if isinstance(original.get("tools"), list):
        _lay_list(body, "tools", respelled_tools(original["tools"], context))
    choice = object_or_none(body.get("tool_choice"))
    if choice is not None and choice.get("type") == "allowed_tools":
        body["tool_choice"] = respelled_choice(choice, context.spell)
    if choice is not None and choice.get("type") in ("function", "custom") and not _is_named(choice):
        del body["tool_choice"]
        context.report.add("adjusted", "tool_choice dropped: it names no tool", subject="tool_choice")
    # OAI-RESP-24
    if body.get("previous_response_id") and body.get("conversation") is not None:
        del body["conversation"]
        context.report.add(
            "adjusted", "conversation dropped: not allowed together with previous_response_id", subject="conversation"
        )
    return body if context.dialect.mend_body is None else context.dialect.mend_body(body, context.report)


def _is_named(choice: JsonObject) -> bool:
    return isinstance(choice.get("name"), str) and bool(choice["name"])


def _with_respelled_tools(items: list[JsonObject], tools: Sequence[Tool], context: Spelling) -> list[JsonObject]:
    """The items with projected names in the tool declarations that some of them hold."""
    if not any(tool.extra and "declared_in" in tool.extra for tool in tools):
        return items
    return [_respelled_item(item, context) for item in items]


def _respelled_item(item: JsonObject, context: Spelling) -> JsonObject:
    given = item.get("tools")
    if item.get("type") not in DECLARING or not isinstance(given, list):
        return item
    projected = respelled_tools(cast("list[Any]", given), context)
    same = all(a is b for a, b in zip(projected, cast("list[Any]", given), strict=True))
    return item if same else {**item, "tools": projected}


def _lay_list(body: JsonObject, key: str, items: list[Any]) -> None:
    """Replace a list only if one of its items is another object than before."""
    given = cast("list[object]", body[key]) if isinstance(body.get(key), list) else None
    if given is not None and len(given) == len(items) and all(a is b for a, b in zip(items, given, strict=True)):
        return
    if items or given is not None or key in body:
        body[key] = items


def _lay_options(transcript: Transcript, original: Mapping[str, Any], context: Spelling) -> JsonObject:
    request = transcript.request
    declared = frozenset(tool.name for tool in request.tools if tool.kind != "hosted")
    custom = _custom_names(request.tools)
    options = transcript.options
    if transcript.model != request.model:
        everything = declared | {tool.name for tool in request.tools}
        options = lawful_options(options, identify(transcript.model), everything, context)
    before = render_options(request.options, str, custom, original)
    after = render_options(options, lambda name: context.spell(name) if name in declared else name, custom, original)
    if request.model is not None:
        before["model"] = request.model
    if transcript.model is not None:
        after["model"] = transcript.model
    body = laid_over(original, before, after)
    for key in ("reasoning", "text"):
        inner = object_or_none(original.get(key))
        if inner is not None and before.get(key) != after.get(key):
            kept = laid_over(inner, before.get(key, {}), after.get(key, {}))
            body = {**body, key: kept} if kept else {name: value for name, value in body.items() if name != key}
    return body
