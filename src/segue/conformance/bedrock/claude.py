"""Claude behind Converse: its own rules about thinking, prefill (BED-11) and error results, under their own numbers.

The body is converted to the Messages body that the service sends to Claude and checked by the rules of `anthropic`. A
body does not show the prefix, model and account of a thinking block (ANT-28, ANT-29).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.anthropic import RULE_SET as MESSAGES
from segue.conformance.anthropic.request import AnthropicRequest
from segue.conformance.anthropic.request import Block as AnthropicBlock
from segue.conformance.anthropic.request import MergedMessage as AnthropicTurn
from segue.conformance.anthropic.request import Message as AnthropicMessage
from segue.conformance.bedrock.models import is_claude
from segue.conformance.bedrock.request import BedrockRequest, Block
from segue.conformance.lookup import member
from segue.conformance.rule import ModelFilter, Problem, Rule
from segue.conformance.values import is_list, is_object
from segue.models import Model

# The checks of Messages that apply here too, by name. Instead of ANT-25 the service has its own rule, BED-11.
SHARED_CHECKS = frozenset(
    {
        *("no_prefill", "prefill_without_trailing_space", "loop_starts_with_thinking", "signature_plausible"),
        *("no_thinking_at_end", "no_forced_tool", "redacted_has_data", "result_content_valid"),
        "effort_supported",
    }
)
_MODEL_ERROR_PREFIX = "The model returned the following errors:"
# Endings of Messages paths, and the endings of the Converse paths for them.
_PATH_ENDINGS = (
    (".redactedContent.data", ".redactedContent"),
    ("tool_choice.type", "toolConfig.toolChoice"),
    ("output_config.effort", "additionalModelRequestFields.output_config.effort"),
)


def _to_messages_block(block: Block, role: str) -> AnthropicBlock:
    data, path = block.data, block.path
    match block.type:
        case "text":
            return AnthropicBlock(path, role, "text", {"type": "text", "text": block.text})
        case "toolUse":
            call_type = "tool_use" if block.is_call else "server_tool_use"
            return AnthropicBlock(path, role, call_type, {"id": block.id})
        case "toolResult":
            content = data.get("content")
            entries = [_to_result_entry(entry) for entry in content] if is_list(content) else []
            is_error = data.get("status") == "error"
            return AnthropicBlock(
                path, role, "tool_result", {"tool_use_id": block.id, "content": entries, "is_error": is_error}
            )
        case "reasoningContent" if is_object(data.get("reasoningText")):
            reasoning = data["reasoningText"]
            signed = {"signature": reasoning["signature"]} if is_object(reasoning) and "signature" in reasoning else {}
            thinking = member(reasoning, "text")
            thinking_data: Mapping[str, object] = {"thinking": thinking, **signed}
            return AnthropicBlock(f"{path}.reasoningText", role, "thinking", thinking_data)
        case "reasoningContent" if "redactedContent" in data:
            redacted = data["redactedContent"]
            # An SDK holds raw bytes in memory; in the HTTP body they are text.
            data_text = "…" if isinstance(redacted, bytes | bytearray) and redacted else redacted
            return AnthropicBlock(f"{path}.redactedContent", role, "redacted_thinking", {"data": data_text})
        case _:
            return AnthropicBlock(path, role, block.type or "block", {})


def _to_result_entry(entry: object) -> object:
    """Convert an entry of a result: JSON is sent as text."""
    kind = next(iter(entry), "") if is_object(entry) else ""
    return {"type": {"json": "text", "searchResult": "search_result"}.get(kind, kind)}


def _to_messages_request(request: BedrockRequest) -> AnthropicRequest:
    """Convert the request to a Messages request with the paths of this body, without cache points."""
    messages: list[AnthropicMessage] = []
    merged_messages: list[AnthropicTurn] = []
    blocks_by_type: dict[str, list[AnthropicBlock]] = {}
    for merged in request.merged_messages:
        merged_messages.append(AnthropicTurn(merged.role, []))
        for message in merged.messages:
            blocks = [_to_messages_block(block, merged.role) for block in message.blocks if block.type != "cachePoint"]
            messages.append(AnthropicMessage(message.index, merged.role, {}, blocks))
            merged_messages[-1].blocks.extend(blocks)
            for block in blocks:
                blocks_by_type.setdefault(block.type, []).append(block)
    return AnthropicRequest(
        _to_messages_settings(request.body), request.model, messages, merged_messages, blocks_by_type, ()
    )


def _to_messages_settings(body: Mapping[str, object]) -> dict[str, object]:
    """Convert thinking, effort and tool choice to those of Messages."""
    settings: dict[str, object] = {}
    extra = body.get("additionalModelRequestFields")
    if is_object(extra):
        # Claude 3.7 calls it reasoning_config.
        settings["thinking"] = extra.get("thinking", extra.get("reasoning_config"))
        settings["output_config"] = extra.get("output_config")
    choice = member(body, "toolConfig", "toolChoice")
    if is_object(choice) and len(choice) == 1:
        settings["tool_choice"] = {"type": next(iter(choice))}
    return settings


def _to_converse_path(path: str) -> str:
    for ending, converse_ending in _PATH_ENDINGS:
        if path.endswith(ending):
            return path.removesuffix(ending) + converse_ending
    return path


def _adapt_rule(rule: Rule[AnthropicRequest]) -> Rule[BedrockRequest]:
    def check(request: BedrockRequest) -> Iterator[Problem]:
        # Values that the service itself rejects never reach Claude.
        rejected = {problem.path for problem in request.problems.get("BED-11", ())}
        for problem in rule.check(_to_messages_request(request)):
            path = _to_converse_path(problem.path)
            if path not in rejected:
                yield Problem(path, f"{_MODEL_ERROR_PREFIX} {problem.message}", problem.severity)

    def applies(model: Model) -> bool:
        return is_claude(model) and rule.applies_to.matches(model)

    return Rule(
        rule.number,
        rule.name,
        rule.description,
        rule.severity,
        ModelFilter(f"Claude, {rule.applies_to.description}", applies),
        check,
    )


RULES = tuple(_adapt_rule(rule) for rule in MESSAGES.rules if rule.name in SHARED_CHECKS)
