"""Code blocks as fenced text: a fence inside the code never ends the block."""

from __future__ import annotations

import pytest

from segue import Conversation
from segue.canonical.blocks import Code
from segue.wire.code import fence_code


@pytest.mark.parametrize(
    ("code", "fence"),
    [("x = 1", "```"), ("a `b` ``c``", "```"), ("```\nx\n```", "````"), ("````md\n```\n````", "`````")],
)
def test_fence_is_longer_than_any_in_the_code(code: str, fence: str) -> None:
    lines = fence_code(Code(code, "python")).split("\n")
    assert (lines[0], lines[-1]) == (f"{fence}python", fence)
    assert fence not in code


@pytest.mark.parametrize("api", ["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock"])
def test_code_with_a_fence_is_one_block_on_every_api(api: str) -> None:
    conversation = Conversation()
    conversation.add_user([Code("````\nx\n````", "md")])
    assert "`````md\\n````\\nx\\n````\\n`````" in conversation.render(api).data.decode()
