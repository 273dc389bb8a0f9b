"""The item types of the API, each with its conversion to blocks.

Types in `CALL_TYPES` are calls, other than functions, whose output is a separate item. Same-API, call and output keep
their type if both are unchanged or `render_output` can build the output; otherwise both are sent as a function call and
its output, which the API accepts for any tool.

Types in `HOSTED_TYPES` hold call and output in one item: they become a call and, if the output is disclosed, its
result, both with the whole item as fragment. Types in `OPAQUE_TYPES` become `Opaque` blocks with a text for other APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from msgspec import UNSET, Struct

from segue.canonical.blocks import NO_ORIGIN, Block, Media, OmitReason, Opaque, Origin, Text, ToolCall, ToolResponse
from segue.canonical.envelope import is_envelope
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.errors import InputError
from segue.wire.foundry_items import FOUNDRY_TOOLS
from segue.wire.json_values import JsonObject, json_type_name, object_list, object_or_none, string_or_none
from segue.wire.names import join_name
from segue.wire.openai_responses.context import ParseContext, parse_arguments
from segue.wire.openai_responses.parts import parse_image_url
from segue.wire.vendor_tools.client_run import is_in_container

# The call types for any tool, each with its output type: OAI-RESP-17.
FUNCTION_TYPES = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
APPROVAL_REQUEST, _APPROVAL_RESPONSE = "mcp_approval_request", "mcp_approval_response"


def item_type(item: JsonObject) -> str:
    """Return the type of an item; messages and references may omit it."""
    kind = item_type_or_none(item)
    if kind is None:
        found_type = json_type_name(item.get("type"))
        raise InputError(f"an item needs a `type` or a `role`; its type is {found_type}", path="type")
    return kind


def item_type_or_none(item: JsonObject) -> str | None:
    kind = item.get("type")
    if kind is None:
        is_reference = item.get("id") is not None and item.keys() <= {"id", "type"}
        return "message" if "role" in item else "item_reference" if is_reference else None
    return kind if isinstance(kind, str) and kind else None


# -------------------------------------------------------------------------------------------- calls with an output item


def _never(_item: JsonObject) -> bool:
    return False


def _always(_item: JsonObject) -> bool:
    return True


def _no_value(_item: JsonObject) -> Any:
    return UNSET


class CallType(Struct, frozen=True):
    """`is_hosted`: whether the provider runs the call; `id_optional`: hosted calls may have no `call_id`;
    `output_required`: a call without an output is rejected. If `tool_name` is empty, the name is a field of the item.
    """

    output_type: str
    tool_name: str
    arguments: Callable[[JsonObject], Any]
    content: Callable[[JsonObject], tuple[Block, ...]]
    is_error: Callable[[JsonObject], bool] = _never
    is_hosted: Callable[[JsonObject], bool] = _never
    render_output: Callable[[ToolResponse, str], JsonObject] | None = None
    id_optional: bool = False
    output_required: bool = False
    arguments_are_text: bool = False
    """Whether the arguments are JSON in a string."""
    structured: Callable[[JsonObject], Any] = _no_value
    """The output if it is JSON and not text."""
    is_pending: Callable[[JsonObject], bool] = _never
    function_output: bool = False
    """Whether a `function_call_output` answers it too."""

    def get_name(self, item: JsonObject) -> str:
        return self.tool_name or string_or_none(item.get("name")) or ""


def _get_field(name: str) -> Callable[[JsonObject], Any]:
    return lambda item: item.get(name, {})


def _pick_fields(*names: str) -> Callable[[JsonObject], Any]:
    return lambda item: {name: item[name] for name in names if name in item}


def _text_field(name: str) -> Callable[[JsonObject], tuple[Block, ...]]:
    return lambda item: (Text(string_or_none(item.get(name)) or ""),)


def _screenshot(item: JsonObject) -> tuple[Block, ...]:
    if isinstance(item.get("output"), str):
        return (Text(item["output"]),)
    output = object_or_none(item.get("output")) or {}
    picture = parse_image_url(output, output.get("image_url"), intact=False)
    return () if picture is None else (picture,)


def _shell_output(item: JsonObject) -> tuple[Block, ...]:
    output = item.get("output")
    if isinstance(output, str):
        return (Text(output),)
    lines: list[str] = []
    for entry in object_list(output):
        lines += [text for key in ("stdout", "stderr") if (text := string_or_none(entry.get(key)))]
        outcome = object_or_none(entry.get("outcome")) or {}
        if outcome.get("type") == "timeout":
            lines.append("[timed out]")
        elif outcome.get("exit_code"):
            lines.append(f"[exit code {outcome['exit_code']}]")
    return (Text("\n".join(lines)),)


def _render_shell_output(response: ToolResponse, text: str) -> JsonObject:
    code = 0 if response.outcome is None else 1
    return {"output": [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": code}}]}


def _found_tools(item: JsonObject) -> tuple[Block, ...]:
    return (Text(f"[tools found: {', '.join(_list_names(item)) or 'none'}]"),)


def _list_names(item: JsonObject) -> Iterator[str]:
    """Return the names of all tools; those in a namespace have its name before their own."""
    for entry in object_list(item.get("tools")):
        name = string_or_none(entry.get("name"))
        if name is not None and entry.get("type") == "namespace":
            yield from (join_name(name, inner) for inner in _list_names(entry))
        elif name:
            yield name


def _text_outputs(item: JsonObject) -> tuple[Block, ...]:
    return tuple(Text(text) for entry in object_list(item.get("output")) if (text := string_or_none(entry.get("text"))))


def _text_output(item: JsonObject) -> tuple[Block, ...]:
    output = item.get("output")
    return (Text(output),) if isinstance(output, str) else ()


def _structured_output(item: JsonObject) -> Any:
    output = item.get("output")
    return UNSET if output is None or isinstance(output, str) else output


CALL_TYPES: dict[str, CallType] = {
    "computer_call": CallType("computer_call_output", "computer", _pick_fields("action", "actions"), _screenshot),
    "local_shell_call": CallType(
        "local_shell_call_output",
        "local_shell",
        _get_field("action"),
        _text_field("output"),
        render_output=lambda _response, text: {"output": text},
    ),
    "shell_call": CallType(
        "shell_call_output",
        "shell",
        _get_field("action"),
        _shell_output,
        is_hosted=is_in_container,
        render_output=_render_shell_output,
        output_required=True,
    ),
    "apply_patch_call": CallType(
        "apply_patch_call_output",
        "apply_patch",
        _get_field("operation"),
        _text_field("output"),
        is_error=lambda item: item.get("status") == "failed",
        render_output=lambda response, text: {
            "status": "completed" if response.outcome is None else "failed",
            "output": text,
        },
    ),
    "tool_search_call": CallType(
        "tool_search_output",
        "tool_search",
        _get_field("arguments"),
        _found_tools,
        is_hosted=lambda item: item.get("execution") != "client" or not item.get("call_id"),
        id_optional=True,
        # OAI-RESP-17
        function_output=True,
    ),
    "program": CallType("program_output", "program", _pick_fields("code"), _text_field("result"), is_hosted=_always),
    "multi_agent_call": CallType(
        "multi_agent_call_output", "multi_agent", _pick_fields("action", "arguments"), _text_outputs, is_hosted=_always
    ),
    # AZF-08, AZF-09: only in replies; paired by `call_id`.
    **{
        f"{stem}_call": CallType(
            f"{stem}_call_output",
            tool,
            _get_field("arguments"),
            _text_output,
            is_error=lambda item: item.get("status") == "failed",
            is_hosted=_always,
            arguments_are_text=True,
            structured=_structured_output,
            is_pending=lambda item: item.get("status") == "in_progress",
        )
        for stem, tool in FOUNDRY_TOOLS.items()
    },
}
CALL_TYPE_BY_OUTPUT = {row.output_type: kind for kind, row in CALL_TYPES.items()}
OUTPUT_TYPES = frozenset({*FUNCTION_TYPES.values(), *CALL_TYPE_BY_OUTPUT})


# ------------------------------------------------------------------------------------------ call and output in one item


def _has_failed(item: JsonObject) -> bool:
    return item.get("status") == "failed"


class _HostedType(Struct, frozen=True):
    """`result` returns None if the provider does not disclose the output; `structured` the part of it that is JSON.

    `name_key` is the key of the tool name if it is not `name`. `output_only`: the item is a result without a call.
    """

    tool_name: str
    arguments: Callable[[JsonObject], Any]
    result: Callable[[JsonObject], tuple[Block, ...] | None]
    is_error: Callable[[JsonObject], bool] = _has_failed
    structured: Callable[[JsonObject], Any] = _no_value
    name_key: str = "name"
    output_only: bool = False


def _list_or_none(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def _sources(item: JsonObject) -> tuple[Block, ...] | None:
    sources = _list_or_none((object_or_none(item.get("action")) or {}).get("sources"))
    return None if not sources else (Text(encode_json_text(sources)),)


def _search_action(item: JsonObject) -> JsonObject:
    action = object_or_none(item.get("action")) or {}
    return {key: value for key, value in action.items() if key != "sources"}


def _search_results(item: JsonObject) -> tuple[Block, ...] | None:
    results = _list_or_none(item.get("results"))
    return None if results is None else (Text(encode_json_text(results)),)


def _code_outputs(item: JsonObject) -> tuple[Block, ...] | None:
    outputs = _list_or_none(item.get("outputs"))
    if outputs is None:
        return None
    blocks: list[Block] = []
    for entry in map(object_or_none, outputs):
        match entry:
            case {"type": "logs", "logs": str(logs)}:
                blocks.append(Text(logs))
            case {"type": "image", "url": str(url)}:
                blocks.append(Media("image", url=url))
            case _:
                blocks.append(Text(encode_json_text(entry)))
    return tuple(blocks)


def _generated_image(item: JsonObject) -> tuple[Block, ...] | None:
    data = string_or_none(item.get("result"))
    if data is not None:
        return (Media("image", f"image/{string_or_none(item.get('output_format')) or 'png'}", data),)
    error = object_or_none(item.get("error"))
    return None if error is None else (Text(string_or_none(error.get("message")) or encode_json_text(error)),)


def _prompt(item: JsonObject) -> JsonObject:
    prompt = string_or_none(item.get("revised_prompt"))
    return {} if prompt is None else {"prompt": prompt}


def _mcp_arguments(item: JsonObject) -> Any:
    text = string_or_none(item.get("arguments")) or ""
    value, exact = parse_argument_text(text)
    return text if value is None and exact is not None else value


def _mcp_result(item: JsonObject) -> tuple[Block, ...] | None:
    if item.get("error") is not None:
        return (Text(encode_json_text(item["error"])),)
    output = item.get("output")
    return None if output is None else (Text(output if isinstance(output, str) else encode_json_text(output)),)


def _memories(item: JsonObject) -> tuple[Block, ...] | None:
    results = _list_or_none(item.get("results"))
    if results is None:
        return None
    memories = [object_or_none((object_or_none(result) or {}).get("memory_item")) or {} for result in results]
    return tuple(Text(content) for memory in memories if isinstance(content := memory.get("content"), str))


def _no_arguments(_item: JsonObject) -> Any:
    return {}


def _no_content(_item: JsonObject) -> tuple[Block, ...]:
    return ()


def _pick_set_fields(*names: str) -> Callable[[JsonObject], Any]:
    return lambda item: {name: item[name] for name in names if item.get(name) is not None}


HOSTED_TYPES: dict[str, _HostedType] = {
    "web_search_call": _HostedType("web_search", _search_action, _sources),
    "file_search_call": _HostedType(
        "file_search", lambda item: {"queries": item.get("queries") or []}, _search_results
    ),
    "code_interpreter_call": _HostedType(
        "code_interpreter", lambda item: {"code": string_or_none(item.get("code")) or ""}, _code_outputs
    ),
    "image_generation_call": _HostedType("image_generation", _prompt, _generated_image),
    "mcp_call": _HostedType("mcp", _mcp_arguments, _mcp_result, lambda item: item.get("error") is not None),
    # AZF-09: the query is not disclosed.
    "memory_search_call": _HostedType("memory_search", _no_arguments, _memories),
    "workflow_action": _HostedType(
        "workflow_action",
        _no_arguments,
        _no_content,
        structured=_pick_set_fields("action_id", "parent_action_id", "previous_action_id", "status"),
        name_key="kind",
        output_only=True,
    ),
    "oauth_consent_request": _HostedType(
        "oauth_consent",
        _no_arguments,
        _no_content,
        structured=_pick_set_fields("server_label", "consent_link"),
        name_key="",
        output_only=True,
    ),
    "structured_outputs": _HostedType(
        "capture_structured_outputs", _no_arguments, _text_output, structured=_structured_output, output_only=True
    ),
}


def parse_hosted(item: JsonObject, context: ParseContext, *, valid_id: bool) -> list[Block]:
    row = HOSTED_TYPES[item["type"]]
    # OAI-RESP-20: the item id is the only id; call and output are one item, so they are paired by it.
    item_id = raw_id_or_none(item.get("id"))
    identity = "conflated" if item_id else "absent"
    origin = Origin(context.dialect.provider, context.model, item_id, item_id, identity)
    native = context.native(item, valid_id and context.is_valid_item(item["type"], item))
    tool = _qualified_tool_name(item, row.name_key) or row.tool_name
    call = ToolCall(tool, row.arguments(item), kind="hosted", origin=origin, native=native)
    content = row.result(item)
    if content is None:
        return [call]
    response = ToolResponse(
        name=tool,
        content=content,
        structured=row.structured(item),
        error=row.is_error(item),
        is_complete=not (row.output_only and item.get("status") == "in_progress"),
        outcome="cancelled" if item.get("status") == "cancelled" else None,
        hosted=True,
        origin=origin,
        native=native,
    )
    return [response] if row.output_only else [call, response]


def _qualified_tool_name(item: JsonObject, key: str = "name") -> str | None:
    """Return the tool name, prefixed with the MCP server label: servers may have tools of the same name."""
    name, server = string_or_none(item.get(key)), string_or_none(item.get("server_label"))
    return f"{server}.{name}" if name and server else name


def is_embedded(response: ToolResponse) -> bool:
    """Return whether this result is in the same item as its call."""
    return response.native is not None and response.native.fragment.get("type") in HOSTED_TYPES


# ---------------------------------------------------------------------------------------------------------- other items


class _OpaqueType(Struct, frozen=True):
    """`side`: its speaker; `none` for instructions to the API. `omit_reason`: why other APIs do not get it."""

    side: Literal["ai", "human", "none"]
    text: Callable[[JsonObject], str] = lambda _item: ""
    omit_reason: OmitReason | None = None


def _tools_of_server(item: JsonObject) -> str:
    tools = [object_or_none(tool) or {} for tool in _list_or_none(item.get("tools")) or []]
    names = [name for tool in tools if (name := string_or_none(tool.get("name")))]
    return f"{item.get('server_label')}: {', '.join(names)}"


def format_approval(is_approved: bool, reason: object = None) -> str:
    """Return the text of an approval response."""
    verdict = "approved" if is_approved else "refused"
    return f"{verdict}: {reason}" if isinstance(reason, str) and reason else verdict


def _item_id(item: JsonObject) -> str:
    return string_or_none(item.get("id")) or ""


COMPACTION_TYPES = ("compaction", "compaction_summary", "context_compaction")
OPAQUE_TYPES: dict[str, _OpaqueType] = {
    "mcp_list_tools": _OpaqueType("ai", _tools_of_server, "listing"),
    _APPROVAL_RESPONSE: _OpaqueType(
        "human", lambda item: format_approval(item.get("approve") is True, item.get("reason"))
    ),
    **dict.fromkeys(COMPACTION_TYPES, _OpaqueType("ai", omit_reason="compaction")),
    "item_reference": _OpaqueType("ai", _item_id, "missing"),
    "additional_tools": _OpaqueType("none", omit_reason="declaring"),
    "configuration_update": _OpaqueType("none", omit_reason="instruction"),
    "compaction_trigger": _OpaqueType("none", omit_reason="instruction"),
}


def parse_opaque(item: JsonObject, kind: str, context: ParseContext, *, valid_id: bool) -> Opaque:
    """Parse an item into an `Opaque` block; that of an unknown type has its `text`, if there is one."""
    row = OPAQUE_TYPES.get(kind)
    text = row.text(item) if row is not None else string_or_none(item.get("text")) or ""
    is_valid = context.is_valid_item(kind, item)
    origin = NO_ORIGIN
    if kind == "item_reference":
        is_valid = is_valid and valid_id
    if kind == _APPROVAL_RESPONSE:
        approval_id = raw_id_or_none(item.get("approval_request_id"))
        # OAI-RESP-21
        is_valid = is_valid and (context.continues or approval_id in context.approval_ids)
        origin = _approval_origin(approval_id, raw_id_or_none(item.get("id")), context)
    omit_reason = row.omit_reason if row is not None else None
    extra: JsonObject | None = None
    if omit_reason == "compaction":
        encrypted = string_or_none(item.get("encrypted_content"))
        omit_reason, extra = ("compaction", {"size": len(encrypted)}) if encrypted else ("notice", None)
        # Only the gateway or transport that sealed it can open it.
        is_valid = is_valid and not is_envelope(encrypted)
    native = context.native(item, is_valid)
    return Opaque(kind, text=text, native=native, omit_reason=omit_reason, extra=extra, origin=origin)


def parse_repeated(item: JsonObject, kind: str, context: ParseContext) -> Opaque:
    """Parse an item that is already in the body."""
    return Opaque(kind, text=_item_id(item), native=context.native(item, intact=False), omit_reason="repeated")


# ------------------------------------------------------------------------------------------------------------ approvals


def _approval_origin(raw_id: str | None, item_id: str | None, context: ParseContext) -> Origin:
    identity = "natural" if raw_id else "synthetic"
    return Origin(context.dialect.provider, context.model, raw_id, item_id, identity, family="mcp-approval")


def parse_approval(item: JsonObject, context: ParseContext, *, valid_id: bool) -> ToolCall:
    """Parse an MCP approval request: it has no result; the approval response refers to its id."""
    approval_id = raw_id_or_none(item.get("id"))
    arguments, text = parse_arguments(item.get("arguments"))
    is_valid = valid_id and approval_id is not None and context.is_valid_item(APPROVAL_REQUEST, item)
    context.approval_ids.update([approval_id] if is_valid and approval_id is not None else [])
    return ToolCall(
        _qualified_tool_name(item) or "",
        arguments,
        arguments_text=text,
        kind="hosted",
        origin=_approval_origin(approval_id, None, context),
        native=context.native(item, is_valid),
        awaited=False,
    )
