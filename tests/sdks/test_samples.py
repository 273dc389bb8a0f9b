"""The samples of `make sdks` cover every API with a vendor's SDK, and hang together."""

from __future__ import annotations

from collections import Counter

import segue
from tests.recorded.__main__ import run
from tests.sdks.samples import samples


def test_every_vendor_is_sampled_and_plain_types_have_no_difference() -> None:
    every = list(samples())
    counts = Counter(sample.wire.name for sample in every)
    assert counts.keys() == {"openai-responses", "openai-chat", "anthropic", "gemini", "mistral", "bedrock"}
    assert min(counts.values()) > 30
    assert sum(sample.reply is not None for sample in every) > 500
    plain = (
        "openai.ResponseFunctionToolCallParam",
        "google.Part.text",
        "anthropic.ToolUseBlockParam",
        "botocore.ToolUse",
    )
    chosen = [sample for sample in every if sample.name.startswith(plain)]
    assert len({sample.wire.name for sample in chosen}) == len(plain)
    assert run(chosen) == 0
    assert all(segue.check(sample.body, sample.wire.name) for sample in chosen)
