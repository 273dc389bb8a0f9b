"""Call and output items ⇄ `ToolCall` and `ToolResponse`: functions, custom tools, and the types in `CALL_TYPES`.

`call_id` pairs a call with its output; `id` is the item's own and never a substitute. Same-API, an item is sent as the
original object with only `call_id` and name merged into it; a newly rendered item has no `id`, which is always valid
(OAI-RESP-02).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from segue.canonical.blocks import Block, Message, Native, Origin, Text, ToolCall, ToolResponse, text_of
from segue.canonical.ids import raw_id_or_none
from segue.canonical.jsontext import write_text
from segue.errors import InputError
from segue.wire.fields import JsonObject, kind_of, object_or_none, string_or_none
from segue.wire.openai_responses.parts import parse_parts, render_content
from segue.wire.openai_responses.shapes import has_call_id, has_lawful_status
from segue.wire.openai_responses.shared import Reading, Spelling, joined_name, parse_arguments, split_name
from segue.wire.openai_responses.typed import TYPE_OF_OUTPUT, TYPED
from segue.wire.overlay import rewritten
from segue.wire.tools import render_arguments_text, repeated

__all__ = [
    "ABORTED",
    "CALL_KEYS",
    "FUNCTIONS",
    "OUTPUTS",
    "OUTPUT_LIMIT",
    "is_hosted_output",
    "own_types",
    "parse_call",
    "parse_output",
    "relabelled",
    "render_call",
    "render_output",
]

# The call types for any tool, each with its output type: OAI-RESP-17.
FUNCTIONS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
OUTPUTS = frozenset({*FUNCTIONS.values(), *TYPE_OF_OUTPUT})
CALL_KEYS = frozenset(
    {"type", "id", "call_id", "name", "namespace", "arguments", "input", "output", "status"}
    | {"action", "actions", "operation", "code", "result", "tools"}
)
_ANEW = frozenset({"type", "id", "call_id", "name", "namespace", "arguments", "input", "output"})
# OAI-RESP-16
OUTPUT_LIMIT = 10_485_760
# The output that Codex writes for an open call when it is killed; the real one may follow.
ABORTED = "aborted"
# OAI-RESP-19
_NAMESPACE = re.compile(r"[a-zA-Z0-9_-]{1,64}")


# ------------------------------------------------------------------------------------------------------------------ in


def _origin(item: JsonObject, key: str, context: Reading, *, absent: bool = False) -> Origin:
    given = item.get(key)
    raw_id = raw_id_or_none(given)
    invalid_id = given if raw_id is None and isinstance(given, str) and given else None
    item_id = raw_id_or_none(item.get("id")) if key != "id" else None
    identity = "natural" if raw_id else "nullable" if absent else "synthetic"
    parent = raw_id_or_none((object_or_none(item.get("caller")) or {}).get("caller_id"))
    return Origin(context.dialect.provider, context.model, raw_id, item_id or invalid_id, identity, parent)


def parse_call(item: JsonObject, context: Reading, *, sound: bool) -> ToolCall:
    kind = item["type"]
    row = TYPED.get(kind)
    if row is None:
        return _parse_function(item, context, sound=sound)
    # OAI-RESP-04
    hosted = row.hosted(item) and (not row.missed or raw_id_or_none(item.get("call_id")) in context.hosted)
    # Hosted calls are sent back with their own ids or not at all.
    named = not hosted or has_call_id(item) or (row.unnamed and item.get("call_id") is None)
    first = context.is_first(kind, item)
    given = row.arguments(item)
    arguments, text = parse_arguments(given) if row.written else (given, None)
    return ToolCall(
        row.name(item),
        arguments,
        arguments_text=text,
        kind="hosted" if hosted else "function",
        origin=_origin(item, "call_id", context, absent=hosted),
        native=context.native(item, sound and context.is_whole(kind, item) and named and (first or not hosted)),
        # A tool search without output has not been observed to be rejected.
        awaited=not context.referred and not row.unnamed,
    )


def _parse_function(item: JsonObject, context: Reading, *, sound: bool) -> ToolCall:
    given = item.get("name")
    if given is not None and not isinstance(given, str):
        raise InputError(f"a tool's name must be a string, not {kind_of(given)}", path="name")
    name, namespace = given or "", string_or_none(item.get("namespace"))
    context.is_first(item["type"], item)
    free = item["type"] == "custom_tool_call"
    value = item.get("input" if free else "arguments")
    arguments: Any
    text: str | None = None
    if free:
        arguments = value if isinstance(value, str) else "" if value is None else write_text(value)
    else:
        arguments, text = parse_arguments(value)
    return ToolCall(
        joined_name(namespace, name) if namespace else context.names.get(name, name),
        arguments,
        arguments_text=text,
        kind="custom" if free else "function",
        extra=None if free else repeated(value, arguments),
        origin=_origin(item, "call_id", context),
        # OAI-RESP-17: always a string
        native=context.native(item, sound and isinstance(value, str) and has_lawful_status(item["type"], item)),
        awaited=item.get("async") is not True and not context.referred,
    )


def parse_output(item: JsonObject, context: Reading, *, sound: bool) -> ToolResponse:
    kind = item["type"]
    call_type = TYPE_OF_OUTPUT.get(kind)
    row = TYPED[call_type] if call_type is not None else None
    # OAI-RESP-20: for the local shell, the output's item id may be the id of its call.
    key = _id_key(item)
    origin = _origin(item, key, context, absent=True)
    if key == "id" and origin.raw_id is not None:
        origin = msgspec.structs.replace(origin, raw_id=context.shells.get(origin.raw_id, origin.raw_id))
    structured: Any = UNSET
    hosted = is_hosted_output(item, context)
    if row is not None:
        named = not hosted or has_call_id(item) or (row.unnamed and item.get("call_id") is None)
        content, structured = row.content(item), row.value(item)
        lawful = context.is_whole(kind, item) and named and (not hosted or context.knows_call(item))
    else:
        content, structured, lawful = _parse_output_content(item.get("output"), context)
        lawful = lawful and has_lawful_status(kind, item) and _has_lawful_name(item)
    first = context.is_first(kind, item)
    return ToolResponse(
        name=_output_name(item) if row is None else row.name(item) or None,
        content=content,
        structured=structured,
        error=row is not None and row.failed(item),
        is_complete=row is None or not row.pending(item),
        outcome="interrupted" if item.get("output") == ABORTED and origin.raw_id in context.crowded else None,
        hosted=hosted,
        origin=origin,
        native=context.native(item, sound and lawful and (first or not hosted)),
    )


def _id_key(item: Mapping[str, Any]) -> str:
    """The key of an output that holds the id of its call."""
    local = item.get("type") == "local_shell_call_output"
    return "id" if local and raw_id_or_none(item.get("call_id")) is None else "call_id"


def _has_lawful_name(item: JsonObject) -> bool:
    # OAI-RESP-19
    name, namespace = item.get("name"), item.get("namespace")
    named = name is None or (isinstance(name, str) and len(name) <= 128)
    return named and (namespace is None or (isinstance(namespace, str) and bool(_NAMESPACE.fullmatch(namespace))))


def is_hosted_output(item: JsonObject, context: Reading) -> bool:
    """Whether the provider made this output."""
    call_type = TYPE_OF_OUTPUT.get(item["type"])
    call_id = raw_id_or_none(item.get("call_id"))
    return call_type is not None and (call_id in context.hosted or TYPED[call_type].hosted(item))


def _output_name(item: JsonObject) -> str | None:
    name, namespace = string_or_none(item.get("name")), string_or_none(item.get("namespace"))
    return joined_name(namespace, name) if name and namespace else name or None


def _parse_output_content(output: object, context: Reading) -> tuple[tuple[Block, ...], Any, bool]:
    """Blocks, structured value or UNSET, and whether the API accepts it as it is (OAI-RESP-16)."""
    if isinstance(output, str):
        return (Text(output),), UNSET, len(output) <= OUTPUT_LIMIT
    if isinstance(output, list):
        blocks = parse_parts(cast("list[object]", output), "input", "output", context.dialect)
        return tuple(blocks), UNSET, all(block.native is not None and block.native.intact for block in blocks)
    return (), UNSET if output is None else output, False


# ----------------------------------------------------------------------------------------------------------------- out


def own_types(messages: Sequence[Message], context: Spelling) -> frozenset[str]:
    """The ids of calls that keep their own item type: call and output are intact or can be rendered."""
    responses = {
        block.call_id: block for message in messages for block in message.blocks if isinstance(block, ToolResponse)
    }
    return frozenset(call.id for call in context.calls.values() if _in_own_type(call, responses.get(call.id), context))


def _in_own_type(call: ToolCall, response: ToolResponse | None, context: Spelling) -> bool:
    home = context.home(call.native)
    row = TYPED.get(home.fragment["type"]) if home is not None and "type" in home.fragment else None
    if home is None or row is None or not home.intact:
        return False
    # The item may have lost a required id.
    if not context.dialect.takes(home.fragment["type"], cast("JsonObject", home.fragment)):
        return False
    answer = context.home(response.native) if response is not None else None
    if response is None or (answer is not None and answer.intact and answer.fragment.get("type") == row.output):
        return True
    return row.answer is not None and all(isinstance(block, Text) for block in response.content or ())


def render_call(call: ToolCall, context: Spelling) -> JsonObject:
    wire_id, name = context.ids.render(call.id), context.spell(call.name)
    home = context.home(call.native)
    if home is not None and home.intact and (home.fragment["type"] in FUNCTIONS or call.id in context.own_type):
        return relabelled(cast("JsonObject", home.fragment), call, context)
    rendered: JsonObject = {"type": "function_call", "call_id": wire_id, **_named(name)}
    if call.kind == "custom":
        text = call.arguments if isinstance(call.arguments, str) else write_text(call.arguments)
        rendered |= {"type": "custom_tool_call", "input": text}
    else:
        rendered["arguments"] = render_arguments_text(call, context.report)
    if home is None or home.fragment.get("type") != rendered["type"]:
        return rendered
    return _rewritten(home.fragment, rendered, _ANEW)


def _rewritten(fragment: Mapping[str, Any], rendered: JsonObject, modelled: frozenset[str]) -> JsonObject:
    known = modelled if has_lawful_status(rendered["type"], dict(fragment)) else modelled | {"status"}
    return rewritten(fragment, rendered, known)


def relabelled(item: JsonObject, call: ToolCall, context: Spelling) -> JsonObject:
    """The item of a call with projected id and name; the same object if they do not change."""
    wire_id = context.ids.render(call.id)
    changes: JsonObject = {} if item.get("call_id") == wire_id else {"call_id": wire_id}
    if item["type"] in FUNCTIONS:
        namespace, bare = split_name(context.spell(call.name))
        given = item.get("namespace")
        if item.get("name") != bare:
            changes["name"] = bare
        if namespace is None and given is not None:
            item = {key: value for key, value in item.items() if key != "namespace"}
        # OAI-RESP-18: a custom tool call may omit the namespace.
        elif given != namespace and (given is not None or item["type"] == "function_call"):
            changes["namespace"] = namespace
    return {**item, **changes} if changes else item


def _named(name: str) -> JsonObject:
    # OAI-RESP-18
    namespace, bare = split_name(name)
    return {"name": name} if namespace is None else {"name": bare, "namespace": namespace}


def render_output(response: ToolResponse, context: Spelling) -> JsonObject:
    home = context.home(response.native)
    # OAI-RESP-05: the call may be stored with the provider.
    call = context.calls.get(response.call_id)
    wire_id = response.origin.raw_id if call is None else context.ids.render(response.call_id)
    kind = _output_type(response, call, home, context)
    if home is not None and home.intact and home.fragment.get("type") == kind:
        same = wire_id is None or wire_id == response.origin.raw_id
        return cast("JsonObject", home.fragment) if same else {**home.fragment, _id_key(home.fragment): wire_id}
    rendered: JsonObject = {"type": kind} if wire_id is None else {"type": kind, "call_id": wire_id}
    answer = TYPED[TYPE_OF_OUTPUT[kind]].answer if kind in TYPE_OF_OUTPUT else None
    if answer is not None:
        rendered |= answer(response, _plain_text(response))
        if kind == "local_shell_call_output" and wire_id is not None:
            rendered["id"] = wire_id
    else:
        rendered["output"] = _render_output_content(response, context)
    if home is None or home.fragment.get("type") != kind:
        return rendered
    named = frozenset({"name", "namespace"}) if _has_lawful_name(dict(home.fragment)) else frozenset[str]()
    return _rewritten(home.fragment, rendered, _ANEW - named)


def _output_type(response: ToolResponse, call: ToolCall | None, home: Native | None, context: Spelling) -> str:
    """OAI-RESP-17: the type of an output is that of its call."""
    if call is None and home is not None:
        return home.fragment["type"]
    if call is not None and call.id in context.own_type and call.native is not None:
        return TYPED[call.native.fragment["type"]].output
    return FUNCTIONS["custom_tool_call" if call is not None and call.kind == "custom" else "function_call"]


def _plain_text(response: ToolResponse) -> str:
    if response.structured is not UNSET:
        return write_text(response.structured)
    return text_of(response.content)


def _render_output_content(response: ToolResponse, context: Spelling) -> str | list[JsonObject]:
    if response.structured is not UNSET and not _has_text(response.content or ()):
        written = write_text(response.structured)
        content = written if not response.content else render_content((Text(written), *response.content), context)
    else:
        content = render_content(response.content or (), context)
    if isinstance(content, str) and len(content) > OUTPUT_LIMIT:
        context.report.add(
            "dropped", f"tool output cut to {OUTPUT_LIMIT} characters (maximum)", call_id=response.call_id
        )
        return content[: OUTPUT_LIMIT - 1] + "…"
    return content


def _has_text(blocks: Iterable[Block]) -> bool:
    return any(isinstance(block, Text) for block in blocks)
