"""The rules of `segue corpus check`: what a trainer rejects, or learns without anyone having meant it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from segue.canonical.blocks import Text
from segue.corpora.client_tools import undeclared_tools
from segue.corpora.rows import Row
from segue.corpora.turns import Turns


class Rule(Struct, frozen=True):
    """A rule of the check: `is_error` rules make it fail."""

    summary: str
    is_error: bool = True


RULES: Mapping[str, Rule] = {
    "unreadable": Rule("a file or a line could not be read"),
    "missing-result": Rule("a call has no result; a text that says so was added"),
    "orphan-result": Rule("a result belongs to no call; it is text"),
    "invalid-arguments": Rule("the arguments of a call are not valid JSON"),
    "empty-prompt": Rule("the first message of the user is empty, or there is none"),
    "undeclared-tool": Rule("a tool is called that is not declared", is_error=False),
    "truncated-result": Rule("a result seems to be cut off", is_error=False),
    "unfinished": Rule("the last message is not a reply", is_error=False),
    "mixed-models": Rule("replies of several models", is_error=False),
    "lost": Rule("content that only the provider can read, or that is of an unknown type", is_error=False),
    "secret": Rule("text that looks like a secret", is_error=False),
}


def find_problems(row: Row, turns: Turns) -> Iterator[str]:
    """Yield the names of the rules that a row breaks, once for each place."""
    for turn in turns.turns:
        if turn.result is not None and turn.result.synthetic is not None:
            yield "missing-result"
        if turn.is_cut_off:
            yield "truncated-result"
        for call in turn.calls:
            if call.arguments is None and call.arguments_text is not None:
                yield "invalid-arguments"
    for message, count in turns.changes.items():
        if "result without a call" in message:
            yield from ["orphan-result"] * count
        elif message.startswith("lost"):
            yield from ["lost"] * count
    yield from ["undeclared-tool"] * len(undeclared_tools(row.request))
    prompt = next((message for message in row.request.messages if message.speaker == "human"), None)
    if prompt is None or not any(not isinstance(block, Text) or block.text.strip() for block in prompt.blocks):
        yield "empty-prompt"
    last = turns.turns[-1] if turns.turns else None
    if last is None or last.role != "assistant" or last.calls:
        yield "unfinished"
    if len(turns.models) > 1:
        yield "mixed-models"
