"""The content of blocks and messages in Anthropic bodies: ANT-11 to ANT-20, ANT-32 and ANT-33.

The keys of a block whose type is not in `KEYS` are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.anthropic.request import SERVER_RESULTS, AnthropicRequest, Block, nested_entries
from segue.conformance.lookup import list_entries, list_objects, member
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_list, is_object, quote, text_or_empty, type_name

table: RuleTable[AnthropicRequest] = RuleTable()

_RESULT_KEYS = frozenset({"type", "tool_use_id", "content", "cache_control"})

# The keys of the request types of the SDK (2.8.0, stable and beta).
KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "citations", "cache_control"}),
    "image": frozenset({"type", "source", "transformations", "cache_control"}),
    "document": frozenset({"type", "source", "title", "context", "citations", "cache_control"}),
    "search_result": frozenset({"type", "source", "title", "content", "citations", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "caller", "toolset_name", "cache_control"}),
    "tool_result": _RESULT_KEYS | {"is_error", "toolset_name"},
    "tool_reference": frozenset({"type", "tool_name", "cache_control"}),
    "browser_state": frozenset({"type", "tabs", "state_changes", "cache_control"}),
    "server_tool_use": frozenset({"type", "id", "name", "input", "caller", "cache_control"}),
    **dict.fromkeys(SERVER_RESULTS, _RESULT_KEYS),
    "web_search_tool_result": _RESULT_KEYS | {"caller"},
    "web_fetch_tool_result": _RESULT_KEYS | {"caller"},
    "web_search_result": frozenset({"type", "title", "url", "encrypted_content", "page_age"}),
    "mcp_tool_use": frozenset({"type", "id", "name", "input", "server_name", "cache_control"}),
    "mcp_tool_result": _RESULT_KEYS | {"is_error"},
    "mcp_tool_listing": frozenset({"type", "mcp_server_name", "tools"}),
    "container_upload": frozenset({"type", "file_id", "cache_control"}),
    "compaction": frozenset({"type", "content", "encrypted_content", "signature", "tool_changes", "cache_control"}),
    "tool_addition": frozenset({"type", "tool", "cache_control"}),
    "tool_removal": frozenset({"type", "tool", "cache_control"}),
    "fallback": frozenset({"type", "from", "to", "trigger"}),
}
_MESSAGE_KEYS = frozenset({"role", "content"})
_IN_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})


@table.rule("ANT-11")
def input_is_object(request: AnthropicRequest) -> Iterator[Problem]:
    """The input of a tool call is an object."""
    for block in request.blocks_of("tool_use", "server_tool_use", "mcp_tool_use"):
        value = block.data.get("input")
        if not is_object(value):
            seen = type_name(value) if "input" in block.data else "missing"
            yield Problem(f"{block.path}.input", f"input is {seen}; an object is expected")


@table.rule("ANT-12")
def keys_known(request: AnthropicRequest) -> Iterator[Problem]:
    """Blocks have a type and only the keys of that type."""
    for path, data in _all_blocks(request):
        block_type = data.get("type")
        known = KEYS.get(text_or_empty(block_type))
        if not has_text(block_type):
            yield Problem(f"{path}.type", f"the type of the block is {type_name(block_type)}; a string is expected")
        elif known is not None and not data.keys() <= known:
            unknown = (key for key in data if key not in known)
            yield from (
                Problem(f"{path}.{key}", f"{quote(key)} is not a key of {block_type} blocks") for key in unknown
            )
    for message in request.messages:
        if message.role in ("user", "assistant") and not message.data.keys() <= _MESSAGE_KEYS:
            unknown = (key for key in message.data if key not in _MESSAGE_KEYS)
            for key in unknown:
                yield Problem(f"{message.path}.{key}", f"{quote(key)} is not a key of a message", "risk")


def _all_blocks(request: AnthropicRequest) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the blocks of the messages, of the results in them, and of the system prompt."""
    for message in request.messages:
        yield from ((block.path, block.data) for block in message.blocks)
    for block in request.blocks_of("tool_result", "web_search_tool_result"):
        yield from ((path, entry) for path, entry in nested_entries(block) if is_object(entry))
    yield from list_objects(request.body.get("system"), "system")


@table.rule("ANT-13")
def no_empty_text(request: AnthropicRequest) -> Iterator[Problem]:
    """Text blocks are not empty, not even next to a call or inside a result."""
    for block in request.blocks_of("text"):
        yield from _check_text(block.path, block.data)
    for block in request.blocks_of("tool_result"):
        for path, entry in nested_entries(block):
            if is_object(entry) and entry.get("type") == "text":
                yield from _check_text(path, entry)


def _check_text(path: str, data: Mapping[str, object]) -> Iterator[Problem]:
    text = data.get("text")
    if not has_text(text):
        yield Problem(f"{path}.text", f"the text is {type_name(text)}; a text block must not be empty")


@table.rule("ANT-14")
def not_only_blank(request: AnthropicRequest) -> Iterator[Problem]:
    """A message is not only white space."""
    for message in request.messages:
        texts = [text_or_empty(block.data.get("text")) if block.type == "text" else "…" for block in message.blocks]
        if any(texts) and not any(text.strip() for text in texts):
            yield Problem(f"{message.path}.content", "the message is only white space")


@table.rule("ANT-15")
def user_has_content(request: AnthropicRequest) -> Iterator[Problem]:
    """User content is not empty."""
    for message in request.messages:
        if message.role == "user" and not message.content:
            seen = "an empty list" if is_list(message.content) else type_name(message.content)
            yield Problem(f"{message.path}.content", f"content is {seen}; a user message needs content")


@table.rule("ANT-16", severity="risk")
def assistant_has_content(request: AnthropicRequest) -> Iterator[Problem]:
    """Assistant content is not empty, except at the end; older deployments (until early 2026) reject it."""
    last = len(request.messages) - 1
    for message in request.messages:
        if message.role != "assistant" or message.content:
            continue
        if message.content is None:
            yield Problem(f"{message.path}.content", "content is null; a string or a list is expected", "reject")
        elif message.index != last:
            seen = "an empty list" if is_list(message.content) else "an empty string"
            yield Problem(f"{message.path}.content", f"content is {seen}; older deployments reject it")


@table.rule("ANT-18")
def result_content_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """A tool_result holds a string or text, image, document, search_result and tool_reference blocks.

    is_error is a boolean, and an error result is not empty and holds text only.
    """
    for block in request.blocks_of("tool_result"):
        error = block.data.get("is_error", False)
        if not isinstance(error, bool):
            yield Problem(f"{block.path}.is_error", f"is_error is {type_name(error)}; a boolean is expected")
        content = block.data.get("content", "")
        if not isinstance(content, str) and not is_list(content):
            yield Problem(f"{block.path}.content", f"content is {type_name(content)}; a string or a list is expected")
        elif error is True and not content:
            yield Problem(f"{block.path}.content", "content cannot be empty if is_error is true")
        yield from _check_result_entries(block, error=error is True)


def _check_result_entries(block: Block, *, error: bool) -> Iterator[Problem]:
    for path, entry in nested_entries(block):
        if not is_object(entry):
            yield Problem(path, f"{type_name(entry)} in the content of a result; a block object is expected")
            continue
        entry_type = text_or_empty(entry.get("type"))
        if entry_type in KEYS and entry_type not in _IN_RESULTS:
            yield Problem(path, f"a {entry_type} block is not allowed in a tool_result")
        elif error and entry_type in _IN_RESULTS and entry_type != "text":
            yield Problem(path, f"this {entry_type} block is in a result with is_error; error results hold text only")


@table.rule("ANT-19")
def system_not_blank(request: AnthropicRequest) -> Iterator[Problem]:
    """The system prompt is absent, the empty string, or has no blank block."""
    if "system" not in request.body:
        return
    system = request.body["system"]
    if isinstance(system, str):
        if system and not system.strip():
            yield Problem("system", "system is white space; omit it or send an empty string")
    elif not is_list(system):
        severity: Severity = "risk" if system is None else "reject"
        yield Problem(
            "system", f"system is {type_name(system)}; a string or a list of text blocks is expected", severity
        )
    else:
        for path, entry in list_entries(system, "system"):
            text = member(entry, "text")
            if not is_object(entry):
                yield Problem(path, f"{type_name(entry)} in system; a text block is expected")
            elif entry.get("type") == "text" and not text_or_empty(text).strip():
                seen = "white space" if has_text(text) else type_name(text)
                yield Problem(f"{path}.text", f"the text is {seen}; a text block must not be blank")


@table.rule("ANT-20")
def roles_known(request: AnthropicRequest) -> Iterator[Problem]:
    """Messages have the role user or assistant; only the newest API accepts the role system."""
    for message in request.messages:
        if message.role == "system":
            seen = "a message with the role system; use the top-level system"
            yield Problem(f"{message.path}.role", seen, "risk")
        elif message.role not in ("user", "assistant"):
            yield Problem(f"{message.path}.role", f"the role is {quote(message.role)}; user or assistant is expected")


@table.rule("ANT-32")
def search_content_valid(request: AnthropicRequest) -> Iterator[Problem]:
    """The encrypted_content of a web_search_result is the string that the server returned."""
    for path, entry in _search_results(request):
        if "encrypted_content" in entry and not has_text(entry["encrypted_content"]):
            seen = type_name(entry["encrypted_content"])
            yield Problem(
                f"{path}.encrypted_content", f"encrypted_content is {seen}; send back what the server returned"
            )


@table.rule("ANT-33")
def search_content_present(request: AnthropicRequest) -> Iterator[Problem]:
    """A web_search_result has its encrypted_content."""
    for path, entry in _search_results(request):
        if "encrypted_content" not in entry:
            yield Problem(
                f"{path}.encrypted_content", "encrypted_content is missing; send back what the server returned"
            )


def _search_results(request: AnthropicRequest) -> Iterator[tuple[str, Mapping[str, object]]]:
    for block in request.blocks_of("web_search_tool_result"):
        for path, entry in nested_entries(block):
            if is_object(entry) and entry.get("type") == "web_search_result":
                yield path, entry
