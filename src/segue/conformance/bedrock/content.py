"""The content and the roles of Converse messages: BED-06 to BED-11."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from segue.conformance.bedrock.models import CLAUDE, NOT_CLAUDE, SEPARATE_RESULTS, USER_FIRST, WRITER, is_claude
from segue.conformance.bedrock.request import BedrockRequest, is_stored_prompt
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import ENVELOPE, is_envelope, is_list, is_object, text_or_empty

table: RuleTable[BedrockRequest] = RuleTable()

_START = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
_NOT_BESIDE_RESULTS = ("document", "video")


# BED-06
@table.rule("BED-06")
def messages_present(request: BedrockRequest) -> Iterator[Problem]:
    """There is a message, unless the model is a stored prompt, which has its own messages."""
    messages = request.body.get("messages", [])
    if is_list(messages) and not messages and not is_stored_prompt(request.body, request.model):
        yield Problem("messages", _START)


# BED-06
@table.rule("BED-06", applies_to=USER_FIRST)
def user_first(request: BedrockRequest) -> Iterator[Problem]:
    """The first message is the user's."""
    first = request.merged_messages[0] if request.merged_messages else None
    if first is not None and first.role == "assistant":
        yield Problem(first.messages[0].path, _START)


# BED-07
@table.rule("BED-07", applies_to=SEPARATE_RESULTS)
def results_separate(request: BedrockRequest) -> Iterator[Problem]:
    """A user message with results has no other blocks."""
    for merged in request.merged_messages:
        if any(merged.blocks_of("toolResult")):
            for message in merged.messages:
                for block in message.blocks:
                    if block.type not in ("toolResult", "cachePoint", "") and merged.role == "user":
                        reason = "Conversation blocks and tool result blocks cannot be provided in the same turn."
                        yield Problem(block.path, f"messages.{message.index}.content: {reason}")


# BED-07
@table.rule("BED-07", applies_to=CLAUDE)
def no_documents_beside_results(request: BedrockRequest) -> Iterator[Problem]:
    """Documents and videos are not in a message with results, except inside the results."""
    for merged in request.merged_messages:
        if merged.role == "user" and any(merged.blocks_of("toolResult")):
            for block_type in _NOT_BESIDE_RESULTS:
                for block in merged.blocks_of(block_type):
                    yield Problem(block.path, f"a {block_type} block is in the same message as tool result blocks")


# BED-08
@table.rule("BED-08")
def texts_not_empty(request: BedrockRequest) -> Iterator[Problem]:
    """Text blocks and content lists are not empty, also in results and in the system prompt."""
    yield from request.problems.get("BED-08", ())
    for message in request.messages:
        if is_list(message.content) and not message.content:
            reason = f"The content field in the Message object at messages.{message.index} is empty."
            yield Problem(f"{message.path}.content", reason)
    for path, text in _texts(request):
        if text == "":
            yield Problem(path, "messages: text content blocks must be non-empty")


# BED-08
@table.rule("BED-08", severity="risk")
def texts_not_blank(request: BedrockRequest) -> Iterator[Problem]:
    """Text is not only white space: several models reject it, Claude if the whole message is blank."""
    blank = {
        message.path
        for message in request.messages
        if message.blocks and all(block.type == "text" and not block.text.strip() for block in message.blocks)
    }
    for path, text in _texts(request):
        if text and not text.strip():
            rejected = is_claude(request.model) and path.split(".")[0] in blank
            severity: Severity = "reject" if rejected else "risk"
            yield Problem(path, "messages: text content blocks must contain non-whitespace text", severity)
    for _, block in request.blocks_of("toolResult"):
        if is_list(block.data.get("content")) and not block.data["content"]:
            yield Problem(f"{block.path}.content", "the content of this result is an empty list; some models reject it")


def _texts(request: BedrockRequest) -> Iterator[tuple[str, str | None]]:
    """Yield the text blocks of messages and results with their paths."""
    for message in request.messages:
        entries = message.content if is_list(message.content) else ()
        for block, entry in zip(message.blocks, entries, strict=False):
            if block.type == "text" and is_object(entry) and isinstance(entry["text"], str):
                yield block.path, block.text
            content = block.data.get("content") if block.type == "toolResult" else None
            for position, inner in enumerate(content if is_list(content) else ()):
                if is_object(inner) and isinstance(inner.get("text"), str):
                    yield f"{block.path}.content[{position}].text", text_or_empty(inner["text"])


# BED-09
@table.rule("BED-09")
def matches_service_model(request: BedrockRequest) -> Iterator[Problem]:
    """The body has the members of the service model and no others, each with its type, values and bounds.

    The input of a call is an object, the content of a result a list, and toolChoice is auto, any or a tool.
    """
    yield from request.problems.get("BED-09", ())


# BED-09
@table.rule("BED-09", applies_to=WRITER)
def no_status(request: BedrockRequest) -> Iterator[Problem]:
    """Palmyra does not support the status of a result."""
    for _, block in request.blocks_of("toolResult"):
        if "status" in block.data:
            reason = "This model doesn't support the status field. Remove status and try again."
            yield Problem(f"{block.path}.status", reason)


# BED-10
@table.rule("BED-10")
def roles_known(request: BedrockRequest) -> Iterator[Problem]:
    """Messages have the role user or assistant; no model is known to accept the role system."""
    yield from request.problems.get("BED-10", ())
    for message in request.messages:
        if message.role == "system":
            yield Problem(f"{message.path}.role", "a message with the role system; use the top-level system", "risk")


# BED-10
@table.rule("BED-10")
def roles_alternate(request: BedrockRequest) -> Iterator[Problem]:
    """The roles user and assistant alternate; Claude merges consecutive messages of one role."""
    # ANT-21: Claude's own API merges them.
    severity: Severity = "risk" if is_claude(request.model) else "reject"
    reason = "A conversation must alternate between user and assistant roles."
    for merged in request.merged_messages:
        for _, message in pairwise(merged.messages):
            if merged.role in ("user", "assistant"):
                advice = f"Make sure the conversation alternates; {message.path} has the role {merged.role} again."
                yield Problem(message.path, f"{reason} {advice}", severity)


# BED-11
@table.rule("BED-11")
def reasoning_valid(request: BedrockRequest) -> Iterator[Problem]:
    """reasoningContent is a reasoningText with its text, or redactedContent, in an assistant message."""
    yield from request.problems.get("BED-11", ())
    for message, block in request.blocks_of("reasoningContent"):
        if message.role == "user":
            reason = (
                "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
            )
            yield Problem(block.path, reason)


# BED-11
@table.rule("BED-11", severity="risk", applies_to=NOT_CLAUDE)
def reasoning_not_sealed(request: BedrockRequest) -> Iterator[Problem]:
    """Signatures and redacted content are the model's own; Claude rejects others (ANT-26, ANT-31)."""
    for _, block in request.blocks_of("reasoningContent"):
        reasoning = block.data.get("reasoningText")
        if is_object(reasoning) and is_envelope(reasoning.get("signature")):
            yield Problem(f"{block.path}.reasoningText.signature", f"the signature is {ENVELOPE}; drop the block")
        if is_envelope(block.data.get("redactedContent")):
            yield Problem(f"{block.path}.redactedContent", f"redactedContent is {ENVELOPE}; drop the block")
