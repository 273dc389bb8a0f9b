"""Token estimates: by the characters of a message, calibrated with the usage that providers report.

Most models have no public tokenizer. The ratio of reported to estimated tokens is learned for each model family. Where
exact counts are needed, callers can pass a `TokenCounter` instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct, UnsetType

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text
from segue.canonical.request import Request

TokenCounter: TypeAlias = Callable[[Message], int]
"""Returns the number of tokens of a message."""

TextKind = Literal["text", "json", "cjk", "other"]
# Characters per token. `other` is every script but Latin and those of East Asia; encrypted reasoning is base64.
CHARACTERS_PER_TOKEN: dict[TextKind, float] = {"text": 4.0, "json": 3.0, "cjk": 1.0, "other": 2.5}
# What providers charge for a file of medium size.
MEDIA_TOKENS: dict[str, float] = {"image": 1100.0, "audio": 1500.0, "video": 5000.0, "document": 3000.0}
_MESSAGE_OVERHEAD = 4.0
_CALL_OVERHEAD = 8.0

_CJK_CHARACTER = re.compile("[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_OTHER_CHARACTER = re.compile("[\u0250-\u10ff\u1200-\u1fff\ufb50-\ufdff\ufe70-\ufefe\U0001f000-\U0001faff]")

# A reported ratio is clamped to these bounds: beyond them, the provider counted something else.
_MIN_RATIO, _MAX_RATIO = 0.5, 2.0
_MAX_SAMPLES = 8
MIN_TOKENS = 64


class TokenEstimator(Struct):
    """Estimates the tokens of a message: by its characters, times the learned ratio of a model family.

    `family` is the family that was calibrated last. `learned` holds the ratio and the number of reports of each family.
    """

    family: str = ""
    learned: dict[str, tuple[float, int]] = {}

    def __call__(self, message: Message) -> int:
        return self.count(message)

    def count(self, message: Message, family: str | None = None) -> int:
        return ceil(estimate_message(message) * self.ratio(family))

    def ratio(self, family: str | None = None) -> float:
        """Return the ratio of reported to estimated tokens: 1 if nothing was learned."""
        return self.learned.get(self.family if family is None else family, (1.0, 0))[0]

    def calibrate(self, estimated: float, reported: int, family: str = "") -> None:
        """Record the tokens a provider reported for `estimated` tokens. Small requests are ignored."""
        if estimated < MIN_TOKENS or reported <= 0:
            return
        sample = min(_MAX_RATIO, max(_MIN_RATIO, reported / estimated))
        ratio, reports = self.learned.get(family, (1.0, 0))
        ratio += (sample - ratio) / min(reports + 1, _MAX_SAMPLES)
        self.learned[family] = (ratio, reports + 1)
        self.family = family


def estimate_message(message: Message) -> float:
    """Return the estimated tokens of a message, uncalibrated."""
    return _MESSAGE_OVERHEAD + sum(map(_estimate_block, message.blocks))


def estimate_settings(request: Request) -> float:
    """Return the estimated tokens of system text and tool declarations, uncalibrated."""
    system = sum(_estimate_text(block.text) for block in request.system)
    tools = sum(
        _estimate_json([tool.name, tool.description, tool.parameters])
        if tool.native is None
        else _estimate_json(tool.native.fragment)
        for tool in request.tools
    )
    return system + tools


def _estimate_block(block: Block) -> float:
    match block:
        case Text():
            return _estimate_text(block.text)
        case Thinking():
            return _estimate_text(block.text) + len(block.encrypted or "") / CHARACTERS_PER_TOKEN["text"]
        case ToolCall():
            arguments = block.arguments if block.arguments_text is None else block.arguments_text
            return (
                _CALL_OVERHEAD
                + _estimate_text(block.name)
                + (_estimate_text(arguments) if isinstance(arguments, str) else _estimate_json(arguments))
            )
        case ToolResponse():
            content = sum(map(_estimate_block, block.content or ()))
            return _CALL_OVERHEAD + max(
                content, 0.0 if isinstance(block.structured, UnsetType) else _estimate_json(block.structured)
            )
        case Media():
            return MEDIA_TOKENS[block.kind]
        case Code():
            return _estimate_text(block.code, "json")
        case Opaque():
            return _estimate_text(block.text) if block.native is None else _estimate_json(block.native.fragment)
        case _:
            assert_never(block)


def _estimate_json(value: object) -> float:
    return _estimate_text(encode_json_text(value), "json")


def _estimate_text(text: str, kind: TextKind = "text") -> float:
    if text.isascii():
        return len(text) / CHARACTERS_PER_TOKEN[kind]
    cjk, other = _CJK_CHARACTER.subn("", text)[1], _OTHER_CHARACTER.subn("", text)[1]
    rest = len(text) - cjk - other
    return cjk / CHARACTERS_PER_TOKEN["cjk"] + other / CHARACTERS_PER_TOKEN["other"] + rest / CHARACTERS_PER_TOKEN[kind]
