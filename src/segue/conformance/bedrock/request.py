"""A Converse body parsed for its rules: messages, merged messages, blocks, mismatches with the service model.

The type of a block is its only member (`toolUse`). Parsing never fails: malformed values are reported as problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from segue.conformance.body_types import is_integral_float
from segue.conformance.lookup import list_entries, member, object_or_empty
from segue.conformance.rule import Problem, Severity
from segue.conformance.values import format_list, has_text, is_list, is_object, quote, text_or_empty, type_name
from segue.models import Model
from segue.specs.types import Mismatch, find_mismatches, load_types


class Block(msgspec.Struct, frozen=True, gc=False):
    """A content block. `data` is its only member if that is an object, else empty; `type` is `""` if malformed."""

    path: str
    type: str
    data: Mapping[str, object]
    text: str = ""

    @property
    def id(self) -> str:
        return text_or_empty(self.data.get("toolUseId"))

    @property
    def is_call(self) -> bool:
        """True for a call that the client must answer; the service runs hosted tools itself."""
        return self.type == "toolUse" and self.data.get("type") != "server_tool_use"


class Message(msgspec.Struct, frozen=True, gc=False):
    index: int
    role: str
    content: object
    blocks: Sequence[Block]

    @property
    def path(self) -> str:
        return f"messages[{self.index}]"


class MergedMessage(msgspec.Struct, frozen=True, gc=False):
    """Consecutive messages of one role; system messages are skipped."""

    role: str
    messages: list[Message]

    def blocks_of(self, block_type: str) -> Iterator[Block]:
        return (block for message in self.messages for block in message.blocks if block.type == block_type)

    def calls(self) -> Iterator[Block]:
        """Yield the calls that the client must answer."""
        return (block for block in self.blocks_of("toolUse") if block.is_call)


class BedrockRequest(msgspec.Struct, frozen=True):
    """The body, parsed once for all rules."""

    body: Mapping[str, object]
    model: Model
    messages: Sequence[Message]
    merged_messages: Sequence[MergedMessage]
    problems: Mapping[str, Sequence[Problem]]
    """Rule → mismatches of the body with the service model."""

    def blocks_of(self, *types: str) -> Iterator[tuple[Message, Block]]:
        """Yield the blocks of these types in the order of the body, with their messages."""
        return ((message, block) for message in self.messages for block in message.blocks if block.type in types)


def _parse_block(path: str, entry: object) -> Block:
    if not is_object(entry) or len(entry) != 1:
        return Block(path, "", {})
    ((name, value),) = entry.items()
    return Block(f"{path}.{name}", str(name), object_or_empty(value), text_or_empty(value))


def _parse_messages(entries: object) -> Iterator[Message]:
    for index, entry in enumerate(entries if is_list(entries) else ()):
        content = member(entry, "content")
        blocks = [_parse_block(path, block) for path, block in list_entries(content, f"messages[{index}].content")]
        yield Message(index, text_or_empty(member(entry, "role")), content, blocks)


def _merge_messages(messages: Sequence[Message]) -> list[MergedMessage]:
    merged: list[MergedMessage] = []
    for message in messages:
        if message.role == "system":
            continue
        if not merged or merged[-1].role != message.role:
            merged.append(MergedMessage(message.role, []))
        merged[-1].messages.append(message)
    return merged


def _rule_number(mismatch: Mismatch) -> str:
    """Return the rule that a mismatch breaks: BED-09 if there is no more specific one."""
    last = mismatch.path.rsplit(".", 1)[-1]
    if last == "toolUseId":
        return "BED-01"
    name = mismatch.spec.name
    if name == "ToolName" or (last == "name" and mismatch.kind == "missing" and _is_tool_name(mismatch.path)):
        return "BED-02"
    if name == "NonEmptyString" and mismatch.path.startswith("system"):
        return "BED-08"
    if name == "ConversationRole" or (last == "role" and mismatch.kind == "missing"):
        return "BED-10"
    return "BED-11" if ".reasoningContent" in mismatch.path else "BED-09"


def _is_tool_name(path: str) -> bool:
    return path.endswith(("toolUse.name", "toolSpec.name", "systemTool.name", "toolChoice.tool.name"))


_CLOSED_ENUMS = (".role", ".status", ".format", ".toolUse.type")
_STEP = re.compile(r"\[(\d+)\]")
_PYTHON_TYPES = {"string": "str", "list": "list", "object": "dict", "map": "dict", "integer": "int", "number": "float"}


def _service_path(path: str) -> str:
    """Format a path as the service does: `messages.2.member.content`, counted from one."""
    return _STEP.sub(lambda step: f".{int(step[1]) + 1}.member", path)


def _format_message(mismatch: Mismatch) -> str:
    spec, path = mismatch.spec, mismatch.path
    parent = path[: -len(mismatch.key) - 1] or "input"
    constraint = f"Value at '{_service_path(path)}' failed to satisfy constraint: Member must"
    match mismatch.kind:
        case "type":
            valid = _PYTHON_TYPES.get(spec.kind, spec.kind)
            return f"Invalid type for parameter {path}: {type_name(mismatch.value)}, valid types: {valid}"
        case "missing":
            return f'Missing required parameter in {parent}: "{mismatch.key}"'
        case "unknown" | "choice":
            return f"Unknown parameter in {parent}: {quote(mismatch.key)}, must be one of: {format_list(spec.members)}"
        case "none":
            return f"Must set one of the following keys for tagged union structure {path}: {format_list(spec.members)}."
        case "several":
            seen = f"Invalid number of parameters set for tagged union structure {path}."
            return f"{seen} Can only set one of the following keys: {format_list(spec.members)}."
        case "value":
            return f"{constraint} satisfy enum value set: {format_list(spec.values)}"
        case "short" | "long":
            bound, side = (spec.minimum, "greater") if mismatch.kind == "short" else (spec.maximum, "less")
            quantity = "value" if spec.kind in ("integer", "number") else "length"
            return f"{constraint} have {quantity} {side} than or equal to {bound}"
        case "pattern":
            return f"{constraint} satisfy regular expression pattern: {spec.pattern}"


def _find_severity(mismatch: Mismatch) -> Severity | None:
    # Parsers of JSON differ in whether 8192.0 is an integer.
    if is_integral_float(mismatch):
        return "risk"
    # The service may have newer values than its published model, but not in these members.
    is_open = mismatch.kind == "value" and not mismatch.path.endswith(_CLOSED_ENUMS)
    return "risk" if is_open else None


def _check_open_objects(body: Mapping[str, object], messages: Sequence[Message]) -> Iterator[Problem]:
    """Report values that may be anything in the service model, but that the service requires to be objects."""
    places = [
        (f"{block.path}.input", block.data["input"])
        for message in messages
        for block in message.blocks
        if block.type == "toolUse" and "input" in block.data
    ]
    for path, tool in list_entries(member(body, "toolConfig", "tools"), "toolConfig.tools"):
        schema = member(tool, "toolSpec", "inputSchema")
        if is_object(schema) and "json" in schema:
            places.append((f"{path}.toolSpec.inputSchema.json", schema["json"]))
    if "additionalModelRequestFields" in body:
        places.append(("additionalModelRequestFields", body["additionalModelRequestFields"]))
    for path, value in places:
        if not is_object(value):
            yield Problem(path, f"Invalid type for parameter {path}: {type_name(value)}, valid types: dict")


def parse_request(body: Mapping[str, object], model: Model) -> BedrockRequest:
    """Parse a body; any object is accepted."""
    messages = list(_parse_messages(body.get("messages")))
    problems: dict[str, list[Problem]] = {"BED-09": list(_check_open_objects(body, messages))}
    for mismatch in find_mismatches(load_types("bedrock")["ConverseRequest"], body):
        problem = Problem(mismatch.path, _format_message(mismatch), _find_severity(mismatch))
        problems.setdefault(_rule_number(mismatch), []).append(problem)
    return BedrockRequest(body, model, messages, _merge_messages(messages), problems)


def is_stored_prompt(body: Mapping[str, object], model: Model) -> bool:
    """Return whether the model is a stored prompt, which has its own messages."""
    return any(has_text(name) and ":prompt/" in name for name in (model.name, body.get("modelId")))
