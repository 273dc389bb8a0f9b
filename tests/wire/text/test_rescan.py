"""The text of a broken call is scanned again once, and never copied whole for each call in it."""

from __future__ import annotations

import pytest

from segue.wire.text.gemma import GEMMA
from segue.wire.text.hermes import HERMES
from segue.wire.text.kimi import KIMI_TEXT
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.regions import BrokenCall
from segue.wire.text.scan import scan_text
from segue.wire.text.text_format import TextFormat
from tests.wire.text.parsing import work

BROKEN = {
    "hermes": (HERMES, '<tool_call>{"a": "', "<tool_call>", '" x'),
    "kimi": (KIMI_TEXT, '<|tool_call_begin|>a<|tool_call_argument_begin|>{"a": "', "<|tool_call_begin|>", '" x'),
    "mistral": (MISTRAL_TEXT, '[TOOL_CALLS]a[ARGS]{"a": "', "[TOOL_CALLS]", '" x'),
    "gemma": (GEMMA, '<|tool_call>call:a{b:<|"|>', "<|tool_call>", '<|"|> x'),
    "gemma, cut off": (GEMMA, '<|tool_call>call:a{b:<|"|>', "<|tool_call>", ""),
}


@pytest.mark.parametrize(("form", "head", "unit", "tail"), BROKEN.values(), ids=BROKEN)
def test_rescanning_markers_in_a_broken_string_is_linear(form: TextFormat, head: str, unit: str, tail: str) -> None:
    once, more = (work(head + unit * (size // len(unit)) + tail, form) for size in (32_000, 128_000))
    assert more < 5 * once
    assert sum(isinstance(piece, BrokenCall) for piece in scan_text(head + unit * 5 + tail, form)) == 6
