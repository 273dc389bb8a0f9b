"""The content of messages: content or calls (MIS-11), chunk types and prefixes (MIS-14)."""

from __future__ import annotations

from collections.abc import Iterator

from segue.conformance.chat_request import ChatRequest
from segue.conformance.mistral.tokenizer import V3, is_older_than, tokenizer_version
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import is_list, is_object, quote, type_name
from segue.models import Model

table: RuleTable[ChatRequest] = RuleTable()


@table.rule("MIS-11")
def assistant_has_content(request: ChatRequest) -> Iterator[Problem]:
    """An assistant message has content or calls."""
    for message in request.messages:
        if message.role == "assistant" and not message.content and not message.data.get("tool_calls"):
            seen = "an empty list" if is_list(message.content) else type_name(message.content)
            reason = f"Assistant message must have either content or tool_calls: content is {seen}"
            yield Problem(f"{message.path}.content", reason)


@table.rule("MIS-11", applies_to=V3)
def content_or_calls(request: ChatRequest) -> Iterator[Problem]:
    """Up to v3 an assistant message has content or calls, never both."""
    for message in request.messages:
        if message.role == "assistant" and message.content and message.data.get("tool_calls"):
            reason = "Assistant message must have either content or tool_calls, but not both."
            yield Problem(f"{message.path}.content", reason)


@table.rule("MIS-14")
def prefix_last(request: ChatRequest) -> Iterator[Problem]:
    """Only the last message may be a prefix."""
    for message in request.messages[:-1]:
        if message.role == "assistant" and message.data.get("prefix") is True:
            yield Problem(f"{message.path}.prefix", "Assistant message with prefix True must be last message")


# The chunk types of the vendor's library; the hosted API supports more.
_COMMON = frozenset({"text", "image_url", "input_audio", "thinking"})
_ONLY_HOSTED = frozenset({"document_url", "reference", "file", "resource", "resource_link"})
CHUNKS = _COMMON | _ONLY_HOSTED


@table.rule("MIS-14")
def chunk_types_allowed(request: ChatRequest) -> Iterator[Problem]:
    """Before v15 results hold text only; thinking is allowed in assistant (since v11) and system messages."""
    for message in request.messages:
        for path, part in message.parts():
            chunk = part.get("type", "text")
            severity = _chunk_severity(message.role, chunk, request.model)
            if severity is not None:
                seen = f"Unexpected content chunk types in {message.role} message: {quote(chunk)}"
                yield Problem(f"{path}.type", seen, severity)


def _chunk_severity(role: str, chunk: object, model: Model) -> Severity | None:
    if chunk == "text":
        return None
    if not isinstance(chunk, str) or chunk not in CHUNKS:
        return "reject"
    if chunk in _ONLY_HOSTED:
        # Replies contain references and may be sent back unchanged; the rest is documented for users.
        return None if role == "user" or (role == "assistant" and chunk == "reference") else "risk"
    if chunk == "thinking":
        return _thinking_severity(role, model)
    if role == "tool":
        # Only the newest validator accepts them; for the API it is unknown.
        return "reject" if is_older_than(15, model) else "risk"
    return None if role == "user" or (role == "system" and chunk == "input_audio") else "reject"


def _thinking_severity(role: str, model: Model) -> Severity | None:
    if role == "assistant":
        return "reject" if is_older_than(11, model) else None
    if role == "system":
        return "reject" if is_older_than(7, model) else "risk" if tokenizer_version(model) == 15 else None
    return "reject"


@table.rule("MIS-14", severity="risk")
def thinking_is_a_list(request: ChatRequest) -> Iterator[Problem]:
    """A thinking chunk holds a list of text chunks; the vendor's library also accepts a string."""
    for message in request.messages:
        for path, part in message.parts():
            if part.get("type") == "thinking" and not is_list(part.get("thinking")):
                seen = type_name(part.get("thinking"))
                yield Problem(f"{path}.thinking", f"thinking is {seen}; a list of text chunks is expected")


@table.rule("OAI-CHAT-07")
def calls_are_a_list(request: ChatRequest) -> Iterator[Problem]:
    """tool_calls is a list or null."""
    for message in request.messages:
        calls = message.data.get("tool_calls")
        if message.role == "assistant" and calls is not None and not is_list(calls):
            yield Problem(f"{message.path}.tool_calls", f"tool_calls is {type_name(calls)}; a list is expected")


@table.rule("OAI-CHAT-10")
def arguments_present(request: ChatRequest) -> Iterator[Problem]:
    """function.arguments is a JSON string or the object itself."""
    for call in request.calls:
        if call.is_function and call.function:
            arguments = call.function.get("arguments")
            if not isinstance(arguments, str) and not is_object(arguments):
                # The vendor's library parses null as no arguments.
                null = arguments is None and "arguments" in call.function
                seen = type_name(arguments) if "arguments" in call.function else "missing"
                reason = f"arguments is {seen}; a JSON string or an object is expected"
                yield Problem(f"{call.path}.function.arguments", reason, "risk" if null else None)


@table.rule("OAI-CHAT-11")
def others_have_content(request: ChatRequest) -> Iterator[Problem]:
    """User, system and tool messages have content."""
    for message in request.messages:
        if message.role in ("user", "system", "tool") and message.content is None:
            # The API's types allow null for user and tool, the vendor's library does not.
            null = "content" in message.data and message.role != "system"
            seen = type_name(message.content) if "content" in message.data else "missing"
            reason = f"content is {seen}; a string or a list is expected"
            yield Problem(f"{message.path}.content", reason, "risk" if null else None)
