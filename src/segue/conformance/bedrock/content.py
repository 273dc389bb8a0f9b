"""The content and the roles of Converse messages: BED-06 to BED-11."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from segue.conformance.bedrock.models import (
    BESIDE_RESULTS_UNSURE,
    CLAUDE,
    NOT_CLAUDE,
    OWN_MEDIA,
    USER_FIRST,
    WRITER,
    is_claude,
    is_deepseek,
    is_named,
    needs_separate_results,
)
from segue.conformance.bedrock.request import BedrockRequest, Block, is_stored_prompt
from segue.conformance.lookup import list_objects, member
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import ENVELOPE, is_envelope, is_list, is_object, text_or_empty, type_name

table: RuleTable[BedrockRequest] = RuleTable()

_START = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
_CLAUDE_SETTINGS = ("thinking", "reasoning_config", "output_config")
_MEDIA = ("image", "document", "video")
_VALID_NAME = re.compile(r"(?!.*\s\s)[a-zA-Z0-9\s\-()\[\]]*")


@table.rule("BED-06")
def messages_present(request: BedrockRequest) -> Iterator[Problem]:
    """There is a message, unless the model is a stored prompt, which has its own messages."""
    messages = request.body.get("messages", [])
    if is_list(messages) and not messages and not is_stored_prompt(request.body, request.model):
        yield Problem("messages", _START)


@table.rule("BED-06", applies_to=USER_FIRST)
def user_first(request: BedrockRequest) -> Iterator[Problem]:
    """The first message is the user's; without the name of a model it is a risk."""
    severity: Severity = "reject" if is_named(request.model) else "risk"
    first = request.merged_messages[0] if request.merged_messages else None
    if first is not None and first.role == "assistant":
        yield Problem(first.messages[0].path, _START, severity)


@table.rule("BED-07", applies_to=BESIDE_RESULTS_UNSURE)
def results_separate(request: BedrockRequest) -> Iterator[Problem]:
    """A user message with results has no other blocks; only Llama and Mistral are known to reject them."""
    severity: Severity = "reject" if needs_separate_results(request.model) else "risk"
    for merged in request.merged_messages:
        if any(merged.blocks_of("toolResult")):
            for message in merged.messages:
                for block in message.blocks:
                    if block.type not in ("toolResult", "cachePoint", "") and merged.role == "user":
                        reason = "Conversation blocks and tool result blocks cannot be provided in the same turn."
                        yield Problem(block.path, f"messages.{message.index}.content: {reason}", severity)


@table.rule("BED-07", severity="risk", applies_to=CLAUDE)
def documents_with_text(request: BedrockRequest) -> Iterator[Problem]:
    """A document beside results has a text block beside it."""
    for merged in request.merged_messages:
        if merged.role == "user" and any(merged.blocks_of("toolResult")) and not any(merged.blocks_of("text")):
            for block in merged.blocks_of("document"):
                yield Problem(block.path, "a document is in the same message as tool result blocks, without any text")


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


@table.rule("BED-08", severity="risk")
def texts_not_blank(request: BedrockRequest) -> Iterator[Problem]:
    """Text is not only white space: several models reject it, Claude if the whole message is blank."""
    not_blank = {
        message.path
        for message in request.messages
        for block in message.blocks
        if block.type != "cachePoint" and (block.type != "text" or block.text.strip())
    }
    for path, text in _texts(request):
        if text and not text.strip():
            claude = is_claude(request.model) and ".toolResult." not in path
            if claude and path.split(".")[0] in not_blank:
                continue
            severity: Severity = "reject" if claude else "risk"
            yield Problem(path, "messages: text content blocks must contain non-whitespace text", severity)
    for _, block in request.blocks_of("toolResult"):
        if is_list(block.data.get("content")) and not block.data["content"]:
            yield Problem(f"{block.path}.content", "the content of this result is an empty list; some models reject it")


def _result_parts(block: Block) -> Iterator[tuple[str, Mapping[str, object]]]:
    content = block.data.get("content") if block.type == "toolResult" else None
    return list_objects(content, f"{block.path}.content")


def _texts(request: BedrockRequest) -> Iterator[tuple[str, str | None]]:
    """Yield the text blocks of messages and results with their paths."""
    for message in request.messages:
        entries = message.content if is_list(message.content) else ()
        for block, entry in zip(message.blocks, entries, strict=False):
            if block.type == "text" and is_object(entry) and isinstance(entry["text"], str):
                yield block.path, block.text
            for path, inner in _result_parts(block):
                if isinstance(inner.get("text"), str):
                    yield f"{path}.text", text_or_empty(inner["text"])


@table.rule("BED-09")
def matches_service_model(request: BedrockRequest) -> Iterator[Problem]:
    """The body has the members of the service model and no others, each with its type, values and bounds.

    The input of a call is an object, the content of a result a list, and toolChoice is auto, any or a tool.
    """
    yield from request.problems.get("BED-09", ())


def _media(request: BedrockRequest) -> Iterator[tuple[str, str, Mapping[str, object], bool]]:
    """Yield path, type and data of the media blocks, and whether they are in a result."""
    for _, block in request.blocks_of(*_MEDIA, "toolResult"):
        if block.type in _MEDIA:
            yield block.path, block.type, block.data, False
        for path, entry in _result_parts(block):
            for kind, data in entry.items():
                if kind in _MEDIA and is_object(data):
                    yield f"{path}.{kind}", kind, data, True


@table.rule("BED-09")
def document_names(request: BedrockRequest) -> Iterator[Problem]:
    """The name of a document has only the documented characters."""
    for path, kind, data, _ in _media(request):
        name = data.get("name")
        if kind == "document" and isinstance(name, str) and not _VALID_NAME.fullmatch(name):
            yield Problem(
                f"{path}.name",
                "the name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and "
                "square brackets, with no more than one consecutive whitespace character",
            )


@table.rule("BED-09", applies_to=OWN_MEDIA)
def media_supported(request: BedrockRequest) -> Iterator[Problem]:
    """Claude has no videos, and no s3Location but that of a document in a result, which it does not see.

    Nova has no s3Location of documents and videos in results.
    """
    for path, kind, data, in_result in _media(request):
        source = data.get("source")
        in_s3 = is_object(source) and "s3Location" in source
        where = f"{path}.source.s3Location"
        if not is_claude(request.model):
            if in_s3 and in_result and kind != "image":
                yield Problem(where, "extraneous key [toolResult] is not permitted")
        elif kind == "video":
            yield Problem(path, "This model doesn't support the video content block that you provided.")
        elif in_s3 and kind == "document" and in_result:
            yield Problem(where, "the model does not see a document of S3 in a result", "risk")
        elif in_s3:
            yield Problem(where, "This model doesn't support the s3Uri field.")


@table.rule("BED-09", severity="risk", applies_to=CLAUDE)
def settings_are_objects(request: BedrockRequest) -> Iterator[Problem]:
    """Claude's own settings in additionalModelRequestFields are objects; other models have text there."""
    for name in _CLAUDE_SETTINGS:
        value = member(request.body, "additionalModelRequestFields", name)
        if value is not None and not is_object(value):
            path = f"additionalModelRequestFields.{name}"
            yield Problem(path, f"{name} is {type_name(value)}; Claude takes an object")


@table.rule("BED-09", applies_to=WRITER)
def no_status(request: BedrockRequest) -> Iterator[Problem]:
    """Palmyra does not support the status of a result."""
    for _, block in request.blocks_of("toolResult"):
        if "status" in block.data:
            reason = "This model doesn't support the status field. Remove status and try again."
            yield Problem(f"{block.path}.status", reason)


@table.rule("BED-10")
def roles_known(request: BedrockRequest) -> Iterator[Problem]:
    """Messages have the role user or assistant; no model is known to accept the role system."""
    yield from request.problems.get("BED-10", ())
    for message in request.messages:
        if message.role == "system":
            yield Problem(f"{message.path}.role", "a message with the role system; use the top-level system", "risk")


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


@table.rule("BED-11")
def reasoning_valid(request: BedrockRequest) -> Iterator[Problem]:
    """reasoningContent is a reasoningText with its text, or redactedContent, in a reply; none of DeepSeek."""
    yield from request.problems.get("BED-11", ())
    for message, block in request.blocks_of("reasoningContent"):
        if message.role == "user" or is_deepseek(request.model):
            reason = (
                "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
            )
            yield Problem(block.path, reason)


@table.rule("BED-11", severity="risk", applies_to=NOT_CLAUDE)
def reasoning_not_sealed(request: BedrockRequest) -> Iterator[Problem]:
    """Signatures and redacted content are the model's own; Claude rejects others (ANT-26, ANT-31)."""
    for _, block in request.blocks_of("reasoningContent"):
        reasoning = block.data.get("reasoningText")
        if is_object(reasoning) and is_envelope(reasoning.get("signature")):
            yield Problem(f"{block.path}.reasoningText.signature", f"the signature is {ENVELOPE}; drop the block")
        if is_envelope(block.data.get("redactedContent")):
            yield Problem(f"{block.path}.redactedContent", f"redactedContent is {ENVELOPE}; drop the block")
