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
from segue.wire.fields import JsonObject, integer_or_none, kind_of, object_or_none
from segue.wire.server_tools.mcp import (
    read_anthropic_server,
    read_gemini_servers,
    read_openai_server,
    write_anthropic_server,
    write_gemini_server,
    write_openai_server,
)

__all__ = ["KINDS", "ROWS", "Options", "Row", "ToolKind", "row_of", "row_to"]

ToolKind = Literal["web_search", "web_fetch", "code_execution", "mcp", "tool_search", "image_generation"]
Options: TypeAlias = dict[str, Any]
KINDS: dict[ToolKind, str] = {
    "web_search": "web search",
    "web_fetch": "web fetch",
    "code_execution": "code execution",
    "mcp": "remote MCP server",
    "tool_search": "tool search",
    "image_generation": "image generation",
}


def _any_model(_model: Model) -> bool:
    return True


def _texts(value: object) -> list[str] | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    texts = [item for item in items if isinstance(item, str)]
    return texts if len(texts) == len(items) else None


def _size(value: object) -> str | None:
    return value if value in ("low", "medium", "high") else None


def _location(value: object) -> JsonObject | None:
    given = object_or_none(value) or {}
    fields = {key: given[key] for key in ("city", "country", "region", "timezone") if isinstance(given.get(key), str)}
    return {"type": "approximate", **fields} if fields else None


# The parser of each shared option; None for an invalid value.
_OPTIONS: dict[str, Callable[[object], Any]] = {
    "allowed_domains": _texts,
    "blocked_domains": _texts,
    "max_uses": integer_or_none,
    "search_context_size": _size,
    "user_location": _location,
}


# Restrictions of a search: if one is invalid, the tool is not declared.
_BOUNDS = ("allowed_domains", "blocked_domains")


def _read_options(given: Mapping[str, object]) -> Options:
    """The parsed options, and unusable values under names that no row renders (so they are reported)."""
    options: Options = {}
    for name, value in given.items():
        read = options[name] = _OPTIONS[name](value)
        if read is None and value is not None:
            options[f"{name} ({kind_of(value)})"] = value
        elif isinstance(value, dict) and isinstance(read, dict):
            fields = cast("JsonObject", value)
            options |= {f"{name}.{key}": fields[key] for key in fields if key not in read and fields[key] is not None}
    return options


class Row(Struct, frozen=True):
    """`type_pattern` matches the types it parses; `declared_type` is the type it renders, None if it only parses.

    `option_paths` maps shared option names to keys of the declaration; `fixed_members` are always rendered.
    """

    api: str
    kind: ToolKind
    matches: str
    written: str | None = None
    paths: Mapping[str, str] = {}
    always: Mapping[str, Any] = {}
    suits: Callable[[Model], bool] = _any_model
    reads: Callable[[JsonObject], Options | None] | None = None
    writes: Callable[[Options], JsonObject | None] | None = None
    unless: Callable[[JsonObject], bool] = lambda _members: False

    def read(self, members: JsonObject) -> Options | None:
        """The options; None if the declaration cannot be converted to another API."""
        if self.reads is not None:
            return self.reads(members)
        given = {name: _at(members, path) for name, path in self.paths.items()}
        known = _read_options(given)
        if any(name in _BOUNDS and value is not None and known.get(name) is None for name, value in given.items()):
            return None
        heads = {path.partition(".")[0] for path in self.paths.values()} | {"name", *self.always}
        rest = {key: value for key, value in members.items() if key not in heads}
        return {name: value for name, value in (known | rest).items() if value not in (None, [], {}, False)}

    def write(self, options: Options) -> JsonObject | None:
        if self.writes is not None:
            return self.writes(options)
        members: JsonObject = dict(self.always)
        for name, path in self.paths.items():
            if name in options:
                _put(members, path, options[name])
        return members


def _at(members: JsonObject, path: str) -> Any:
    head, _, rest = path.partition(".")
    return _at(object_or_none(members.get(head)) or {}, rest) if rest else members.get(head)


def _put(members: JsonObject, path: str, value: object) -> None:
    head, _, rest = path.partition(".")
    if rest:
        _put(members.setdefault(head, {}), rest, value)
    else:
        members[head] = value


# ------------------------------------------------------------------------------------------------------ which models


def _searches_tools(model: Model) -> bool:
    """Claude from 4.5 on, GPT from 5.4 on; a model without a version counts as new."""
    since = (4, 5) if model.family == "claude" else (5, 4)
    return not model.version or model.at_least(*since)


def _reads_addresses(model: Model) -> bool:
    return not model.version or model.at_least(2, 5)


def _newest_gemini(model: Model) -> bool:
    return not model.version or model.at_least(3)


def _only_searches(model: Model) -> bool:
    """`gpt-4o-search-preview`, `gpt-5-search-api`."""
    return "search" in re.split(r"[^a-z0-9]+", model.name.lower())


def _on_own_machine(members: JsonObject) -> bool:
    kind = (object_or_none(members.get("environment")) or {}).get("type")
    return kind not in ("container_auto", "container_reference")


def _by_client(members: JsonObject) -> bool:
    return members.get("execution") == "client"


def _read_search_options(members: JsonObject) -> Options:
    where = members.get("user_location")
    given = {
        "search_context_size": members.get("search_context_size"),
        "user_location": (object_or_none(where) or {}).get("approximate", where),
    }
    options = {**{key: value for key, value in members.items() if key not in given}, **_read_options(given)}
    return {key: value for key, value in options.items() if value is not None}


def _write_search_options(options: Options) -> JsonObject:
    members = {key: options[key] for key in ("search_context_size",) if key in options}
    where = {key: value for key, value in options.get("user_location", {}).items() if key != "type"}
    return members | ({"user_location": {"type": "approximate", "approximate": where}} if where else {})


# ----------------------------------------------------------------------------------------------------------- the table

_DOMAINS = {"allowed_domains": "allowed_domains", "blocked_domains": "blocked_domains"}

_OWN: tuple[Row, ...] = (
    Row(
        "anthropic",
        "web_search",
        r"web_search_\d+",
        "web_search_20250305",
        {**_DOMAINS, "max_uses": "max_uses", "user_location": "user_location"},
        {"name": "web_search"},
    ),
    Row(
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
    Row("gemini", "web_search", "googleSearch", "googleSearch"),
    # Excluded domains exist on Vertex only; the older tool has a threshold for when to search.
    Row("gemini", "web_search", "googleSearchRetrieval|enterpriseWebSearch", None),
    Row(
        "openai-chat",
        "web_search",
        "web_search_options",
        "web_search_options",
        suits=_only_searches,
        reads=_read_search_options,
        writes=_write_search_options,
    ),
    Row("qwen", "web_search", "enable_search", "enable_search"),
    # The client must return the arguments as the result, which a client of another API does not do.
    Row("kimi", "web_search", r"\$web_search", None),
    Row(
        "anthropic",
        "web_fetch",
        r"web_fetch_\d+",
        "web_fetch_20250910",
        {**_DOMAINS, "max_uses": "max_uses"},
        {"name": "web_fetch"},
    ),
    Row("gemini", "web_fetch", "urlContext", "urlContext", suits=_reads_addresses),
    Row(
        "anthropic",
        "code_execution",
        r"code_execution_\d+",
        "code_execution_20250825",
        always={"name": "code_execution"},
    ),
    Row(
        "openai-responses",
        "code_execution",
        "code_interpreter",
        "code_interpreter",
        always={"container": {"type": "auto"}},
    ),
    Row("openai-responses", "code_execution", "shell", None, unless=_on_own_machine),
    Row("gemini", "code_execution", "codeExecution", "codeExecution"),
    Row("anthropic", "mcp", "mcp_toolset", "mcp_toolset", reads=read_anthropic_server, writes=write_anthropic_server),
    Row("openai-responses", "mcp", "mcp", "mcp", reads=read_openai_server, writes=write_openai_server),
    Row(
        "gemini",
        "mcp",
        "mcpServers",
        "mcpServers",
        reads=read_gemini_servers,
        writes=write_gemini_server,
        suits=_newest_gemini,
    ),
    Row(
        "anthropic",
        "tool_search",
        r"tool_search_tool_(regex|bm25)(_\d+)?",
        "tool_search_tool_bm25_20251119",
        always={"name": "tool_search_tool_bm25"},
        suits=_searches_tools,
    ),
    Row("openai-responses", "tool_search", "tool_search", "tool_search", suits=_searches_tools, unless=_by_client),
    Row("openai-responses", "image_generation", "image_generation", "image_generation"),
)
# Foundry declares them like OpenAI, except tool search, which it is not known to accept.
_AS_OPENAI = [row for row in _OWN if row.api == "openai-responses" and row.kind != "tool_search"]
ROWS = (*_OWN, *(msgspec.structs.replace(row, api="azure-foundry") for row in _AS_OPENAI))


def row_of(api: str, kind: str, members: JsonObject) -> Row | None:
    """The row that parses a declaration of this type."""
    return next(
        (row for row in ROWS if row.api == api and re.fullmatch(row.matches, kind) and not row.unless(members)), None
    )


def row_to(api: str, kind: ToolKind, model: Model) -> Row | None:
    """The row that renders this kind of tool for an API and model."""
    found = (row for row in ROWS if row.api == api and row.kind == kind and row.written is not None)
    return next((row for row in found if row.suits(model)), None)
