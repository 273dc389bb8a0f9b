"""Hosted tools: one row for each kind of tool and API.

A row recognises a declaration by its type, parses its options to names that all APIs share, and renders one from
them. `members` are a declaration's fields besides its type; `declarations` wraps and unwraps them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from segue.models import Model
from segue.wire.json_values import (
    JsonObject,
    get_path,
    integer_or_none,
    json_type_name,
    list_or_empty,
    object_or_none,
    set_path,
)
from segue.wire.vendor_tools.client_run import is_in_container
from segue.wire.vendor_tools.mcp import (
    parse_anthropic_server,
    parse_gemini_server,
    parse_openai_server,
    render_anthropic_server,
    render_gemini_server,
    render_openai_server,
)

ToolKind = Literal["web_search", "web_fetch", "code_execution", "mcp", "tool_search", "image_generation"]
ToolOptions: TypeAlias = dict[str, Any]
KIND_TITLES: dict[ToolKind, str] = {
    "web_search": "web search",
    "web_fetch": "web fetch",
    "code_execution": "code execution",
    "mcp": "remote MCP server",
    "tool_search": "tool search",
    "image_generation": "image generation",
}


def _string_list(value: object) -> list[str] | None:
    items = list_or_empty(value)
    texts = [item for item in items if isinstance(item, str)]
    return texts if len(texts) == len(items) else None


def _location(value: object) -> JsonObject | None:
    location = object_or_none(value) or {}
    fields = {
        key: location[key] for key in ("city", "country", "region", "timezone") if isinstance(location.get(key), str)
    }
    return {"type": "approximate", **fields} if fields else None


# The parser of each shared option; None for an invalid value.
_OPTION_PARSERS: dict[str, Callable[[object], Any]] = {
    "allowed_domains": _string_list,
    "blocked_domains": _string_list,
    "max_uses": integer_or_none,
    "search_context_size": lambda value: value if value in ("low", "medium", "high") else None,
    "user_location": _location,
}


# Restrictions of a search: if one is invalid, the tool is not declared.
_RESTRICTIONS = ("allowed_domains", "blocked_domains")


def _parse_options(raw_options: Mapping[str, object]) -> ToolOptions:
    """Parse options; unusable values get names that no row renders, so that they are reported."""
    options: ToolOptions = {}
    for name, value in raw_options.items():
        parsed = options[name] = _OPTION_PARSERS[name](value)
        if parsed is None and value is not None:
            options[f"{name} ({json_type_name(value)})"] = value
        elif isinstance(value, dict) and isinstance(parsed, dict):
            fields = cast("JsonObject", value)
            options |= {f"{name}.{key}": fields[key] for key in fields if key not in parsed and fields[key] is not None}
    return options


class HostedTool(Struct, frozen=True):
    """`type_pattern` matches the types it parses; `declared_type` is the type it renders, None if it only parses.

    `option_paths` maps shared option names to keys of the declaration; `fixed_members` are always rendered.
    """

    api: str
    kind: ToolKind
    type_pattern: str
    declared_type: str | None = None
    option_paths: Mapping[str, str] = {}
    fixed_members: Mapping[str, Any] = {}
    supports_model: Callable[[Model], bool] = lambda _model: True
    parser: Callable[[JsonObject], ToolOptions | None] | None = None
    renderer: Callable[[ToolOptions], JsonObject | None] | None = None
    is_excluded: Callable[[JsonObject], bool] = lambda _members: False

    def parse_options(self, members: JsonObject) -> ToolOptions | None:
        """Parse the options; None if the declaration cannot be converted to another API."""
        if self.parser is not None:
            return self.parser(members)
        raw_options = {name: get_path(members, path) for name, path in self.option_paths.items()}
        parsed = _parse_options(raw_options)
        if any(
            name in _RESTRICTIONS and value is not None and parsed.get(name) is None
            for name, value in raw_options.items()
        ):
            return None
        heads = {path.partition(".")[0] for path in self.option_paths.values()} | {"name", *self.fixed_members}
        other_members = {key: value for key, value in members.items() if key not in heads}
        return {name: value for name, value in (parsed | other_members).items() if value not in (None, [], {}, False)}

    def render_options(self, options: ToolOptions) -> JsonObject | None:
        if self.renderer is not None:
            return self.renderer(options)
        members: JsonObject = dict(self.fixed_members)
        for name, path in self.option_paths.items():
            if name in options:
                members = set_path(members, path, options[name])
        return members


# ------------------------------------------------------------------------------------------------------ which models


def _supports_tool_search(model: Model) -> bool:
    """Return True for Claude from 4.5 on and GPT from 5.4 on; a model without a version counts as new."""
    since = (4, 5) if model.family == "claude" else (5, 4)
    return not model.version or model.at_least(*since)


def _is_search_model(model: Model) -> bool:
    """Return True for models such as `gpt-4o-search-preview` and `gpt-5-search-api`."""
    return "search" in re.split(r"[^a-z0-9]+", model.name.lower())


def _parse_search_options(members: JsonObject) -> ToolOptions:
    location = members.get("user_location")
    raw_options = {
        "search_context_size": members.get("search_context_size"),
        "user_location": (object_or_none(location) or {}).get("approximate", location),
    }
    options = {
        **{key: value for key, value in members.items() if key not in raw_options},
        **_parse_options(raw_options),
    }
    return {key: value for key, value in options.items() if value is not None}


def _render_search_options(options: ToolOptions) -> JsonObject:
    members = {key: options[key] for key in ("search_context_size",) if key in options}
    location = {key: value for key, value in options.get("user_location", {}).items() if key != "type"}
    return members | ({"user_location": {"type": "approximate", "approximate": location}} if location else {})


# ----------------------------------------------------------------------------------------------------------- the table

_DOMAINS = {"allowed_domains": "allowed_domains", "blocked_domains": "blocked_domains"}

_BASE_ROWS: tuple[HostedTool, ...] = (
    HostedTool(
        "anthropic",
        "web_search",
        r"web_search_\d+",
        "web_search_20250305",
        {**_DOMAINS, "max_uses": "max_uses", "user_location": "user_location"},
        {"name": "web_search"},
    ),
    HostedTool(
        "openai-responses",
        "web_search",
        r"web_search(_preview)?(_\d{4}_\d\d_\d\d)?",
        "web_search",
        {
            "allowed_domains": "filters.allowed_domains",
            "user_location": "user_location",
            "search_context_size": "search_context_size",
        },
    ),
    HostedTool("gemini", "web_search", "googleSearch", "googleSearch"),
    # Excluded domains exist on Vertex only; the older tool has a threshold for when to search.
    HostedTool("gemini", "web_search", "googleSearchRetrieval|enterpriseWebSearch", None),
    HostedTool(
        "openai-chat",
        "web_search",
        "web_search_options",
        "web_search_options",
        supports_model=_is_search_model,
        parser=_parse_search_options,
        renderer=_render_search_options,
    ),
    HostedTool("qwen", "web_search", "enable_search", "enable_search"),
    # The client must return the arguments as the result, which a client of another API does not do.
    HostedTool("kimi", "web_search", r"\$web_search", None),
    HostedTool(
        "anthropic",
        "web_fetch",
        r"web_fetch_\d+",
        "web_fetch_20250910",
        {**_DOMAINS, "max_uses": "max_uses"},
        {"name": "web_fetch"},
    ),
    HostedTool(
        "gemini",
        "web_fetch",
        "urlContext",
        "urlContext",
        supports_model=lambda model: not model.version or model.at_least(2, 5),
    ),
    HostedTool(
        "anthropic",
        "code_execution",
        r"code_execution_\d+",
        "code_execution_20250825",
        fixed_members={"name": "code_execution"},
    ),
    HostedTool(
        "openai-responses",
        "code_execution",
        "code_interpreter",
        "code_interpreter",
        fixed_members={"container": {"type": "auto"}},
    ),
    HostedTool("openai-responses", "code_execution", "shell", is_excluded=lambda members: not is_in_container(members)),
    HostedTool("gemini", "code_execution", "codeExecution", "codeExecution"),
    HostedTool(
        "anthropic",
        "mcp",
        "mcp_toolset",
        "mcp_toolset",
        parser=parse_anthropic_server,
        renderer=render_anthropic_server,
    ),
    HostedTool("openai-responses", "mcp", "mcp", "mcp", parser=parse_openai_server, renderer=render_openai_server),
    HostedTool(
        "gemini",
        "mcp",
        "mcpServers",
        "mcpServers",
        parser=parse_gemini_server,
        renderer=render_gemini_server,
        supports_model=lambda model: not model.version or model.at_least(3),
    ),
    HostedTool(
        "anthropic",
        "tool_search",
        r"tool_search_tool_(regex|bm25)(_\d+)?",
        "tool_search_tool_bm25_20251119",
        fixed_members={"name": "tool_search_tool_bm25"},
        supports_model=_supports_tool_search,
    ),
    HostedTool(
        "openai-responses",
        "tool_search",
        "tool_search",
        "tool_search",
        supports_model=_supports_tool_search,
        is_excluded=lambda members: members.get("execution") == "client",
    ),
    HostedTool("openai-responses", "image_generation", "image_generation", "image_generation"),
)
# Foundry declares them like OpenAI, except tool search, which it is not known to accept.
_FOUNDRY_ROWS = [row for row in _BASE_ROWS if row.api == "openai-responses" and row.kind != "tool_search"]
ROWS = (*_BASE_ROWS, *(msgspec.structs.replace(row, api="azure-foundry") for row in _FOUNDRY_ROWS))


def find_source_row(api: str, kind: str, members: JsonObject) -> HostedTool | None:
    """Return the row that parses a declaration of this type."""
    rows = (row for row in ROWS if row.api == api and re.fullmatch(row.type_pattern, kind))
    return next((row for row in rows if not row.is_excluded(members)), None)


def find_target_row(api: str, kind: ToolKind, model: Model) -> HostedTool | None:
    """Return the row that renders this kind of tool for an API and model."""
    rows = (row for row in ROWS if row.api == api and row.kind == kind and row.declared_type is not None)
    return next((row for row in rows if row.supports_model(model)), None)
