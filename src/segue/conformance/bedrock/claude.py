"""Claude behind Converse: its own rules of thinking and endings surface there (BED-11), told by their own numbers.

The body is read as the Messages body that the service makes of it; the checks are those of `anthropic`. To which
prefix, model and account a block is bound (ANT-28, ANT-29) no body shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from segue.conformance.anthropic import BOOK as MESSAGES
from segue.conformance.anthropic.request import AnthropicRequest
from segue.conformance.anthropic.request import Block as AnthropicBlock
from segue.conformance.anthropic.request import Message as AnthropicMessage
from segue.conformance.anthropic.request import Turn as AnthropicTurn
from segue.conformance.bedrock.families import is_claude
from segue.conformance.bedrock.request import BedrockRequest, Block
from segue.conformance.rule import Finding, Holds, Rule
from segue.conformance.values import is_object
from segue.models import Model

__all__ = ["RULES", "SHARED"]

# The checks of Messages that hold here too, by their names. ANT-25 is the service's own here: BED-11.
SHARED = frozenset(
    {
        *("no_prefill", "prefill_ends_in_text", "loop_opens_with_thinking", "signature_plausible"),
        *("no_thinking_at_end", "no_forced_tool", "redacted_has_data"),
    }
)
_SAID = "The model returned the following errors:"
# Members of Messages blocks by their paths here.
_HERE = (
    (".redactedContent.data", ".redactedContent"),
    ("tool_choice.type", "toolConfig.toolChoice"),
)


def _as_messages_block(block: Block, role: str) -> AnthropicBlock:
    data, path = block.data, block.path
    match block.type:
        case "text":
            return AnthropicBlock(path, role, "text", {"type": "text", "text": block.text})
        case "toolUse":
            call_type = "tool_use" if block.is_call else "server_tool_use"
            return AnthropicBlock(path, role, call_type, {"id": block.id})
        case "toolResult":
            return AnthropicBlock(path, role, "tool_result", {"tool_use_id": block.id})
        case "reasoningContent" if is_object(data.get("reasoningText")):
            said = data["reasoningText"]
            signed = {"signature": said["signature"]} if is_object(said) and "signature" in said else {}
            thought: Mapping[str, object] = {"thinking": said.get("text") if is_object(said) else None, **signed}
            return AnthropicBlock(f"{path}.reasoningText", role, "thinking", thought)
        case "reasoningContent" if "redactedContent" in data:
            kept = data["redactedContent"]
            # Raw bytes are what an SDK has in memory; on the wire they are text.
            shown = "…" if isinstance(kept, bytes | bytearray) and kept else kept
            return AnthropicBlock(f"{path}.redactedContent", role, "redacted_thinking", {"data": shown})
        case _:
            return AnthropicBlock(path, role, block.type or "block", {})


def _as_messages(request: BedrockRequest) -> AnthropicRequest:
    """The request as Messages has it, with the paths of this body. Cache points are no blocks there."""
    messages: list[AnthropicMessage] = []
    turns: list[AnthropicTurn] = []
    kinds: dict[str, list[AnthropicBlock]] = {}
    for turn in request.turns:
        turns.append(AnthropicTurn(turn.role, []))
        for message in turn.messages:
            blocks = [_as_messages_block(block, turn.role) for block in message.blocks if block.type != "cachePoint"]
            messages.append(AnthropicMessage(message.index, turn.role, {}, blocks))
            turns[-1].blocks.extend(blocks)
            for block in blocks:
                kinds.setdefault(block.type, []).append(block)
    return AnthropicRequest(_settings(request.body), request.model, messages, turns, kinds, ())


def _settings(body: Mapping[str, object]) -> dict[str, object]:
    """Thinking and the choice of a tool as Messages has them."""
    settings: dict[str, object] = {}
    extra = body.get("additionalModelRequestFields")
    if is_object(extra):
        # The second name is that of Claude 3.7.
        settings["thinking"] = extra.get("thinking", extra.get("reasoning_config"))
    config = body.get("toolConfig")
    choice = config.get("toolChoice") if is_object(config) else None
    if is_object(choice) and len(choice) == 1:
        settings["tool_choice"] = {"type": next(iter(choice))}
    return settings


def _here(path: str) -> str:
    for ending, ours in _HERE:
        if path.endswith(ending):
            return path.removesuffix(ending) + ours
    return path


def _behind_converse(rule: Rule[AnthropicRequest]) -> Rule[BedrockRequest]:
    def check(request: BedrockRequest) -> Iterator[Finding]:
        # What the service refuses by its own model never reaches Claude.
        refused = {finding.path for finding in request.found.get("BED-11", ())}
        for finding in rule.check(_as_messages(request)):
            path = _here(finding.path)
            if path not in refused:
                yield Finding(path, f"{_SAID} {finding.message}", finding.severity)

    def holds(model: Model) -> bool:
        return is_claude(model) and rule.holds.test(model)

    return Rule(rule.number, rule.name, rule.says, rule.severity, Holds(f"Claude, {rule.holds.models}", holds), check)


RULES = tuple(_behind_converse(rule) for rule in MESSAGES.rules if rule.name in SHARED)
