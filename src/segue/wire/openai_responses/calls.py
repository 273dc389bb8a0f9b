"""Calls and outputs ⇄ canonical: functions, free text, and the types with a row of their own.

`call_id` is what the two meet on, `id` the item's own; neither stands in for the other. At home an item goes out as the
object that came in with no more than `call_id` and name laid over it; written anew it has no `id`, which is always
lawful (OAI-RESP-02).
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

# The two types that any tool can be called by, each with its output: OAI-RESP-17.
FUNCTIONS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
OUTPUTS = frozenset({*FUNCTIONS.values(), *TYPE_OF_OUTPUT})
CALL_KEYS = frozenset(
    {"type", "id", "call_id", "name", "namespace", "arguments", "input", "output", "status"}
    | {"action", "actions", "operation", "code", "result", "tools"}
)
_ANEW = frozenset({"type", "id", "call_id", "name", "namespace", "arguments", "input", "output"})
# OAI-RESP-16
OUTPUT_LIMIT = 10_485_760
# What Codex writes after a kill for a call without an output; the real one may come behind it.
ABORTED = "aborted"
# OAI-RESP-19
_NAMESPACE = re.compile(r"[a-zA-Z0-9_-]{1,64}")


# ------------------------------------------------------------------------------------------------------------------ in


def _origin(item: JsonObject, key: str, reading: Reading, *, absent: bool = False) -> Origin:
    given = item.get(key)
    raw_id = raw_id_or_none(given)
    stood = given if raw_id is None and isinstance(given, str) and given else None
    item_id = raw_id_or_none(item.get("id")) if key != "id" else None
    identity = "natural" if raw_id else "nullable" if absent else "synthetic"
    parent = raw_id_or_none((object_or_none(item.get("caller")) or {}).get("caller_id"))
    return Origin(reading.dialect.provider, reading.model, raw_id, item_id or stood, identity, parent)


def parse_call(item: JsonObject, reading: Reading, *, sound: bool) -> ToolCall:
    kind = item["type"]
    row = TYPED.get(kind)
    if row is None:
        return _parse_function(item, reading, sound=sound)
    # OAI-RESP-04
    hosted = row.hosted(item) and (not row.missed or raw_id_or_none(item.get("call_id")) in reading.hosted)
    # What the provider runs goes back under its own ids or not at all.
    named = not hosted or has_call_id(item) or (row.unnamed and item.get("call_id") is None)
    first = reading.is_first(kind, item)
    given = row.arguments(item)
    arguments, text = parse_arguments(given) if row.written else (given, None)
    return ToolCall(
        row.name(item),
        arguments,
        arguments_text=text,
        kind="hosted" if hosted else "function",
        origin=_origin(item, "call_id", reading, absent=hosted),
        native=reading.native(item, sound and reading.is_whole(kind, item) and named and (first or not hosted)),
        # Nobody is known to miss what a search for tools found.
        awaited=not reading.referred and not row.unnamed,
    )


def _parse_function(item: JsonObject, reading: Reading, *, sound: bool) -> ToolCall:
    given = item.get("name")
    if given is not None and not isinstance(given, str):
        raise InputError(f"a tool's name must be a string, not {kind_of(given)}", path="name")
    name, namespace = given or "", string_or_none(item.get("namespace"))
    reading.is_first(item["type"], item)
    free = item["type"] == "custom_tool_call"
    value = item.get("input" if free else "arguments")
    arguments: Any
    text: str | None = None
    if free:
        arguments = value if isinstance(value, str) else "" if value is None else write_text(value)
    else:
        arguments, text = parse_arguments(value)
    return ToolCall(
        joined_name(namespace, name) if namespace else reading.names.get(name, name),
        arguments,
        arguments_text=text,
        kind="custom" if free else "function",
        extra=None if free else repeated(value, arguments),
        origin=_origin(item, "call_id", reading),
        # OAI-RESP-17: always a string
        native=reading.native(item, sound and isinstance(value, str) and has_lawful_status(item["type"], item)),
        awaited=item.get("async") is not True and not reading.referred,
    )


def parse_output(item: JsonObject, reading: Reading, *, sound: bool) -> ToolResponse:
    kind = item["type"]
    call_type = TYPE_OF_OUTPUT.get(kind)
    row = TYPED[call_type] if call_type is not None else None
    # OAI-RESP-20: of the local shell the item's own id may be the one of its call.
    key = _id_key(item)
    origin = _origin(item, key, reading, absent=True)
    if key == "id" and origin.raw_id is not None:
        origin = msgspec.structs.replace(origin, raw_id=reading.shells.get(origin.raw_id, origin.raw_id))
    structured: Any = UNSET
    hosted = is_hosted_output(item, reading)
    if row is not None:
        named = not hosted or has_call_id(item) or (row.unnamed and item.get("call_id") is None)
        content, structured = row.content(item), row.value(item)
        lawful = reading.is_whole(kind, item) and named and (not hosted or reading.knows_call(item))
    else:
        content, structured, lawful = _parse_output_content(item.get("output"), reading)
        lawful = lawful and has_lawful_status(kind, item) and _has_lawful_name(item)
    first = reading.is_first(kind, item)
    return ToolResponse(
        name=_output_name(item) if row is None else row.name(item) or None,
        content=content,
        structured=structured,
        error=row is not None and row.failed(item),
        is_complete=row is None or not row.pending(item),
        outcome="interrupted" if item.get("output") == ABORTED and origin.raw_id in reading.crowded else None,
        hosted=hosted,
        origin=origin,
        native=reading.native(item, sound and lawful and (first or not hosted)),
    )


def _id_key(item: Mapping[str, Any]) -> str:
    """The key of an output that names its call."""
    local = item.get("type") == "local_shell_call_output"
    return "id" if local and raw_id_or_none(item.get("call_id")) is None else "call_id"


def _has_lawful_name(item: JsonObject) -> bool:
    # OAI-RESP-19
    name, namespace = item.get("name"), item.get("namespace")
    named = name is None or (isinstance(name, str) and len(name) <= 128)
    return named and (namespace is None or (isinstance(namespace, str) and bool(_NAMESPACE.fullmatch(namespace))))


def is_hosted_output(item: JsonObject, reading: Reading) -> bool:
    """Whether the provider itself gave this output."""
    call_type = TYPE_OF_OUTPUT.get(item["type"])
    call_id = raw_id_or_none(item.get("call_id"))
    return call_type is not None and (call_id in reading.hosted or TYPED[call_type].hosted(item))


def _output_name(item: JsonObject) -> str | None:
    name, namespace = string_or_none(item.get("name")), string_or_none(item.get("namespace"))
    return joined_name(namespace, name) if name and namespace else name or None


def _parse_output_content(output: object, reading: Reading) -> tuple[tuple[Block, ...], Any, bool]:
    """Blocks, the value where it is neither text nor parts, and whether the API takes it so (OAI-RESP-16)."""
    if isinstance(output, str):
        return (Text(output),), UNSET, len(output) <= OUTPUT_LIMIT
    if isinstance(output, list):
        blocks = parse_parts(cast("list[object]", output), "input", "output", reading.dialect)
        return tuple(blocks), UNSET, all(block.native is not None and block.native.intact for block in blocks)
    return (), UNSET if output is None else output, False


# ----------------------------------------------------------------------------------------------------------------- out


def own_types(messages: Sequence[Message], out: Spelling) -> frozenset[str]:
    """The calls that go out in a type of their own: what is there of the pair is intact, or can be written."""
    responses = {
        block.call_id: block for message in messages for block in message.blocks if isinstance(block, ToolResponse)
    }
    return frozenset(call.id for call in out.calls.values() if _in_own_type(call, responses.get(call.id), out))


def _in_own_type(call: ToolCall, response: ToolResponse | None, out: Spelling) -> bool:
    home = out.home(call.native)
    row = TYPED.get(home.fragment["type"]) if home is not None and "type" in home.fragment else None
    if home is None or row is None or not home.intact:
        return False
    # An item that lost its id may be one that can't be without.
    if not out.dialect.takes(home.fragment["type"], cast("JsonObject", home.fragment)):
        return False
    answer = out.home(response.native) if response is not None else None
    if response is None or (answer is not None and answer.intact and answer.fragment.get("type") == row.output):
        return True
    return row.answer is not None and all(isinstance(block, Text) for block in response.content or ())


def render_call(call: ToolCall, out: Spelling) -> JsonObject:
    wire_id, name = out.ids.render(call.id), out.spell(call.name)
    home = out.home(call.native)
    if home is not None and home.intact and (home.fragment["type"] in FUNCTIONS or call.id in out.own_type):
        return relabelled(cast("JsonObject", home.fragment), call, out)
    anew: JsonObject = {"type": "function_call", "call_id": wire_id, **_named(name)}
    if call.kind == "custom":
        text = call.arguments if isinstance(call.arguments, str) else write_text(call.arguments)
        anew |= {"type": "custom_tool_call", "input": text}
    else:
        anew["arguments"] = render_arguments_text(call, out.report)
    if home is None or home.fragment.get("type") != anew["type"]:
        return anew
    return _rewritten(home.fragment, anew, _ANEW)


def _rewritten(fragment: Mapping[str, Any], anew: JsonObject, modelled: frozenset[str]) -> JsonObject:
    known = modelled if has_lawful_status(anew["type"], dict(fragment)) else modelled | {"status"}
    return rewritten(fragment, anew, known)


def relabelled(item: JsonObject, call: ToolCall, out: Spelling) -> JsonObject:
    """The item of a call with the target's id and name; itself where they are what they were."""
    wire_id = out.ids.render(call.id)
    changes: JsonObject = {} if item.get("call_id") == wire_id else {"call_id": wire_id}
    if item["type"] in FUNCTIONS:
        namespace, bare = split_name(out.spell(call.name))
        given = item.get("namespace")
        if item.get("name") != bare:
            changes["name"] = bare
        if namespace is None and given is not None:
            item = {key: value for key, value in item.items() if key != "namespace"}
        # OAI-RESP-18: a free-text call may leave it out.
        elif given != namespace and (given is not None or item["type"] == "function_call"):
            changes["namespace"] = namespace
    return {**item, **changes} if changes else item


def _named(name: str) -> JsonObject:
    # OAI-RESP-18
    namespace, bare = split_name(name)
    return {"name": name} if namespace is None else {"name": bare, "namespace": namespace}


def render_output(response: ToolResponse, out: Spelling) -> JsonObject:
    home = out.home(response.native)
    # OAI-RESP-05: the call may lie in state that the provider holds.
    call = out.calls.get(response.call_id)
    wire_id = response.origin.raw_id if call is None else out.ids.render(response.call_id)
    kind = _output_type(response, call, home, out)
    if home is not None and home.intact and home.fragment.get("type") == kind:
        same = wire_id is None or wire_id == response.origin.raw_id
        return cast("JsonObject", home.fragment) if same else {**home.fragment, _id_key(home.fragment): wire_id}
    anew: JsonObject = {"type": kind} if wire_id is None else {"type": kind, "call_id": wire_id}
    answer = TYPED[TYPE_OF_OUTPUT[kind]].answer if kind in TYPE_OF_OUTPUT else None
    if answer is not None:
        anew |= answer(response, _plain_text(response))
        if kind == "local_shell_call_output" and wire_id is not None:
            anew["id"] = wire_id
    else:
        anew["output"] = _render_output_content(response, out)
    if home is None or home.fragment.get("type") != kind:
        return anew
    named = frozenset({"name", "namespace"}) if _has_lawful_name(dict(home.fragment)) else frozenset[str]()
    return _rewritten(home.fragment, anew, _ANEW - named)


def _output_type(response: ToolResponse, call: ToolCall | None, home: Native | None, out: Spelling) -> str:
    """OAI-RESP-17: the type of an output is that of its call."""
    if call is None and home is not None:
        return home.fragment["type"]
    if call is not None and call.id in out.own_type and call.native is not None:
        return TYPED[call.native.fragment["type"]].output
    return FUNCTIONS["custom_tool_call" if call is not None and call.kind == "custom" else "function_call"]


def _plain_text(response: ToolResponse) -> str:
    if response.structured is not UNSET:
        return write_text(response.structured)
    return text_of(response.content)


def _render_output_content(response: ToolResponse, out: Spelling) -> str | list[JsonObject]:
    if response.structured is not UNSET and not _has_text(response.content or ()):
        written = write_text(response.structured)
        content = written if not response.content else render_content((Text(written), *response.content), out)
    else:
        content = render_content(response.content or (), out)
    if isinstance(content, str) and len(content) > OUTPUT_LIMIT:
        out.report.add("dropped", f"an output of more than {OUTPUT_LIMIT} characters is cut", call_id=response.call_id)
        return content[: OUTPUT_LIMIT - 1] + "…"
    return content


def _has_text(blocks: Iterable[Block]) -> bool:
    return any(isinstance(block, Text) for block in blocks)
