"""The one table of conversations. Every wire runs all of it: a new wire is done when its column is reviewed."""

from __future__ import annotations

import segue
from tests.conversations import (
    bedrock,
    content,
    deepseek,
    dialects,
    foundry,
    gemini,
    hosted,
    ids,
    mistral,
    pairing,
    qwen,
    reasoning,
    requests,
    responses,
    switching,
    tools,
)
from tests.conversations.build import Case

KNOWN = {row.name for row in segue.formats() if row.kind != "text"}
ALL: tuple[Case, ...] = (
    *pairing.CASES,
    *ids.CASES,
    *reasoning.CASES,
    *content.CASES,
    *tools.CASES,
    *requests.CASES,
    *switching.CASES,
    *dialects.CASES,
    *responses.CASES,
    *gemini.CASES,
    *bedrock.CASES,
    *hosted.CASES,
    *mistral.CASES,
    *deepseek.CASES,
    *qwen.CASES,
    *foundry.CASES,
)
CASES = tuple(case for case in ALL if case.source in KNOWN)
BY_NAME = {case.name: case for case in ALL}
assert len(BY_NAME) == len(ALL), "two conversations share a name"
