"""Token estimates: by the characters of a message, calibrated with the usage that providers report.

There is no tokenizer for most models, and budgets are round numbers. The estimate is deterministic and cheap, and the
ratio of reported to estimated tokens is learned for each model family. An exact counter can be passed instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct, UnsetType

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.jsontext import write_text
from segue.canonical.request import Request

__all__ = ["CHARACTERS", "MEDIA", "Count", "Estimate", "weigh", "weigh_settings"]

Count: TypeAlias = Callable[[Message], int]
"""Returns the number of tokens of a message."""

Kind = Literal["text", "json", "cjk", "other"]
# Characters per token. `other` is every script but Latin and those of East Asia; encrypted reasoning is base64.
CHARACTERS: dict[Kind, float] = {"text": 4.0, "json": 3.0, "cjk": 1.0, "other": 2.5}
# What providers charge for a file of medium size, whatever its bytes.
MEDIA: dict[str, float] = {"image": 1100.0, "audio": 1500.0, "video": 5000.0, "document": 3000.0}
_MESSAGE = 4.0
_CALL = 8.0

_CJK = re.compile("[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_OTHER = re.compile("[\u0250-\u10ff\u1200-\u1fff\ufb50-\ufdff\ufe70-\ufefe\U0001f000-\U0001faff]")

# A reported ratio is clamped to these bounds: beyond them, the provider counted something else.
_LEAST, _MOST = 0.5, 2.0
_MEMORY = 8
_ENOUGH = 64


class Estimate(Struct):
    """Tokens by characters, times the learned ratio of the family used last, or of the given one.

    `learned` holds the ratio and the number of reports for each family.
    """

    family: str = ""
    learned: dict[str, tuple[float, int]] = {}

    def __call__(self, message: Message) -> int:
        return self.count(message)

    def count(self, message: Message, family: str | None = None) -> int:
        return ceil(weigh(message) * self.ratio(family))

    def ratio(self, family: str | None = None) -> float:
        """Return the ratio of reported to estimated tokens: 1 where nothing was learned."""
        return self.learned.get(self.family if family is None else family, (1.0, 0))[0]

    def learn(self, estimated: float, reported: int, family: str = "") -> None:
        """Record the tokens a provider reported for `estimated` tokens. Small requests are ignored."""
        if estimated < _ENOUGH or reported <= 0:
            return
        sample = min(_MOST, max(_LEAST, reported / estimated))
        ratio, reports = self.learned.get(family, (1.0, 0))
        ratio += (sample - ratio) / min(reports + 1, _MEMORY)
        self.learned[family] = (ratio, reports + 1)
        self.family = family


def weigh(message: Message) -> float:
    """Return the estimated tokens of a message, uncalibrated."""
    return _MESSAGE + sum(map(_block, message.blocks))


def weigh_settings(request: Request) -> float:
    """Return the estimated tokens of system text and tool declarations, uncalibrated."""
    system = sum(_text(block.text) for block in request.system)
    tools = sum(
        _json([tool.name, tool.description, tool.parameters]) if tool.native is None else _json(tool.native.fragment)
        for tool in request.tools
    )
    return system + tools


def _block(block: Block) -> float:
    match block:
        case Text():
            return _text(block.text)
        case Thinking():
            return _text(block.text) + len(block.sealed or "") / CHARACTERS["text"]
        case ToolCall():
            arguments = block.arguments if block.arguments_text is None else block.arguments_text
            return _CALL + _text(block.name) + (_text(arguments) if isinstance(arguments, str) else _json(arguments))
        case ToolResponse():
            content = sum(map(_block, block.content or ()))
            return _CALL + max(content, 0.0 if isinstance(block.structured, UnsetType) else _json(block.structured))
        case Media():
            return MEDIA[block.kind]
        case Code():
            return _text(block.code, "json")
        case Opaque():
            return _text(block.text) if block.native is None else _json(block.native.fragment)
        case _:
            assert_never(block)


def _json(value: object) -> float:
    return _text(write_text(value), "json")


def _text(text: str, kind: Kind = "text") -> float:
    if text.isascii():
        return len(text) / CHARACTERS[kind]
    cjk, other = _CJK.subn("", text)[1], _OTHER.subn("", text)[1]
    rest = len(text) - cjk - other
    return cjk / CHARACTERS["cjk"] + other / CHARACTERS["other"] + rest / CHARACTERS[kind]
