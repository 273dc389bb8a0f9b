"""Thinking blocks and prefill in Anthropic bodies: ANT-22 to ANT-27, ANT-30 and ANT-31.

Only the provider can verify a signature; the check is that it is present and plausible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.anthropic.request import MCP_RESULT, SERVER_RESULTS, AnthropicRequest, Block, MergedMessage
from segue.conformance.lookup import member
from segue.conformance.rule import ModelFilter, Problem, RuleTable, Severity
from segue.conformance.values import ENVELOPE, has_text, is_envelope, is_object, quote, text_or_empty, type_name
from segue.models import Model

table: RuleTable[AnthropicRequest] = RuleTable()

_THINKING = ("thinking", "redacted_thinking")
_ON = ("enabled", "adaptive")
_SERVER_SIDE = SERVER_RESULTS | {"server_tool_use", "mcp_tool_use", MCP_RESULT}
_NOT_CONTINUED = _SERVER_SIDE | {"compaction"}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def _supports_prefill(model: Model) -> bool:
    """Return whether the model supports prefill: 4.5 and older."""
    return model.family == "claude" and bool(model.version) and not model.at_least(4, 6)


OLDER = ModelFilter("4.5 and older", _supports_prefill)


def _find_prefill(request: AnthropicRequest) -> MergedMessage | None:
    """Return the last message if it is a prefill: the start of an assistant message that the model continues.

    A message with unanswered calls is not one (ANT-04), nor one that ends within a server tool or with a compaction
    (ANT-39). A compaction request continues nothing.
    """
    if is_object(request.body.get("compaction")):
        return None
    message = request.merged_messages[-1] if request.merged_messages else None
    if message is None or message.role != "assistant" or any(block.type == "tool_use" for block in message.blocks):
        return None
    return None if message.blocks and message.blocks[-1].type in _NOT_CONTINUED else message


@table.rule("ANT-22")
def no_prefill(request: AnthropicRequest) -> Iterator[Problem]:
    """Models after 4.5, and older ones with thinking on, require a user message at the end.

    An unknown model is checked as the newest.
    """
    prefill = _find_prefill(request)
    if prefill is None:
        return
    older = _supports_prefill(request.model)
    if older and request.thinking_type not in _ON:
        return
    if older:
        why = "with thinking on the model does not support prefill"
    elif request.model.version:
        why = f"{request.model.name} does not support prefill"
    else:
        name = f"{quote(request.model.name)} has no version" if request.model.name else "no model given"
        why = f"{name}, checked as the newest, which does not support prefill"
    # ANT-16: an empty message at the end is known to be accepted.
    severity: Severity = "reject" if prefill.blocks else "risk"
    where = request.messages[-1].path
    yield Problem(where, f"the last message has the role assistant; {why}, so it must have the role user", severity)


@table.rule("ANT-23", applies_to=OLDER)
def prefill_without_trailing_space(request: AnthropicRequest) -> Iterator[Problem]:
    """A prefill does not end in white space."""
    prefill = _find_prefill(request)
    if prefill is None or not prefill.blocks or request.thinking_type in _ON:
        return
    last = prefill.blocks[-1]
    text = text_or_empty(last.data.get("text")) if last.type == "text" else ""
    if text != text.rstrip():
        yield Problem(last.path, "the last message has the role assistant (a prefill) and ends in white space")


@table.rule("ANT-24")
def loop_starts_with_thinking(request: AnthropicRequest) -> Iterator[Problem]:
    """With thinking enabled, the first assistant message of the current tool loop starts with thinking."""
    if request.thinking_type != "enabled":
        return
    first_reply: MergedMessage | None = None
    for message in request.merged_messages:
        if message.has_user_content():
            first_reply = None
        elif message.role == "assistant" and first_reply is None:
            first_reply = message
    if first_reply is None or not any(block.type == "tool_use" for block in first_reply.blocks):
        return
    # A compaction at a threshold is in front of the reply's own blocks.
    first_block = next(block for block in first_reply.blocks if block.type != "compaction")
    if first_block.type not in _THINKING:
        seen = f"the current tool loop starts with {quote(first_block.type)}"
        yield Problem(
            first_block.path, f"{seen}; with thinking enabled it must start with thinking or redacted_thinking"
        )


@table.rule("ANT-25")
def thinking_as_returned(request: AnthropicRequest) -> Iterator[Problem]:
    """A thinking block is sent back as returned: in an assistant message, with a string."""
    for block in request.blocks_of(*_THINKING):
        if block.role != "assistant":
            yield Problem(block.path, f"a {block.type} block is in a {block.role} message")
        if block.type == "thinking" and not isinstance(block.data.get("thinking"), str):
            yield Problem(
                f"{block.path}.thinking", f"thinking is {type_name(block.data.get('thinking'))}; a string is expected"
            )


@table.rule("ANT-26")
def signature_plausible(request: AnthropicRequest) -> Iterator[Problem]:
    """A replayed thinking block has its signature, a base64 string."""
    for block in request.blocks_of("thinking"):
        signature = block.data.get("signature")
        if not has_text(signature):
            seen = type_name(signature) if "signature" in block.data else "missing"
            yield Problem(f"{block.path}.signature", f"the signature is {seen}; drop the block or send it unchanged")
        elif is_envelope(signature):
            yield Problem(f"{block.path}.signature", f"the signature is {ENVELOPE}; drop the block")
        elif not _BASE64.fullmatch(signature):
            # Only the provider can verify it: the rule covers rejected signatures, not their format.
            seen = f"the signature {quote(signature)} is not base64"
            yield Problem(
                f"{block.path}.signature", f"{seen}, so it is probably not from this provider; drop the block", "risk"
            )


@table.rule("ANT-27")
def no_thinking_at_end(request: AnthropicRequest) -> Iterator[Problem]:
    """With thinking disabled, an assistant message at the very end holds no thinking."""
    if (
        not request.merged_messages
        or request.merged_messages[-1].role != "assistant"
        or request.thinking_type not in ("", "disabled")
    ):
        return
    # If omitted, thinking is disabled on older models; newer ones may think by default.
    certain = request.thinking_type == "disabled" or _supports_prefill(request.model)
    severity: Severity = "reject" if certain else "risk"
    for block in _thinking_blocks(request.merged_messages[-1]):
        yield Problem(block.path, f"a {block.type} block in the final message, and thinking is disabled", severity)


def _thinking_blocks(message: MergedMessage) -> Iterator[Block]:
    return (block for block in message.blocks if block.type in _THINKING)


@table.rule("ANT-30")
def no_forced_tool(request: AnthropicRequest) -> Iterator[Problem]:
    """tool_choice can't force a call with a thinking budget; with adaptive thinking only Opus 4.6 surely allows it."""
    forced = member(request.body, "tool_choice", "type")
    adapts = request.thinking_type == "adaptive" and request.model.line == "opus" and request.model.version == (4, 6)
    if forced in ("any", "tool") and request.thinking_type in _ON and not adapts:
        severity: Severity = "reject" if request.thinking_type == "enabled" else "risk"
        seen = f"tool_choice {quote(forced)} forces a call and thinking is {request.thinking_type}; drop one"
        yield Problem("tool_choice.type", seen, severity)


_LEVELS = ("low", "medium", "high", "xhigh", "max")


def _effort_levels(model: Model) -> tuple[str, ...]:
    """Return the levels of effort of a model; all of them if that is unknown."""
    version = model.version
    if model.family != "claude" or not version or version >= (4, 7):
        return _LEVELS
    if version >= (4, 6):
        return ("low", "medium", "high", "max") if model.line in ("opus", "sonnet") else _LEVELS
    return _LEVELS[:3] if model.line == "opus" and version == (4, 5) else ()


@table.rule("ANT-42")
def effort_supported(request: AnthropicRequest) -> Iterator[Problem]:
    """output_config.effort is a level of the model; models up to 4.5 have none, except Opus 4.5."""
    effort = member(request.body, "output_config", "effort")
    levels = _effort_levels(request.model)
    if effort is None or effort in levels:
        return
    if not levels:
        seen = "This model does not support the effort parameter."
    else:
        seen = f"This model does not support effort level {quote(effort)}. Supported levels: "
        seen += f"{', '.join(sorted(levels))}."
    yield Problem("output_config.effort", seen)


@table.rule("ANT-31")
def redacted_has_data(request: AnthropicRequest) -> Iterator[Problem]:
    """A redacted_thinking block has its data."""
    for block in request.blocks_of("redacted_thinking"):
        if is_envelope(block.data.get("data")):
            yield Problem(f"{block.path}.data", f"data is {ENVELOPE}; drop the block")
        elif not has_text(block.data.get("data")):
            seen = type_name(block.data["data"]) if "data" in block.data else "missing"
            yield Problem(f"{block.path}.data", f"data is {seen}; send back what the server returned")
