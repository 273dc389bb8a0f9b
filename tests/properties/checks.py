"""What must hold for an output body, whatever the story: each function fails with what it saw."""

from __future__ import annotations

import json
import re
from typing import Any

import segue

from .readers import Reading, read
from .story import Result, Story, word_of

Body = dict[str, Any]

TARGETS = tuple(row.name for row in segue.formats() if getattr(row, "kind", "wire") != "text")
MODELS: dict[str, tuple[str | None, ...]] = {
    "openai-chat": (None, "gpt-4.1", "gpt-5"),
    "anthropic": (*(None, "claude-3-5-sonnet-20241022", "claude-sonnet-4-5", "claude-opus-4-6", "claude-fable-5-1"),),
    "kimi": (None, "kimi-k2-0905-preview", "kimi-k2-thinking", "kimi-k3"),
}
INTERRUPTED = "[interrupted: no result was recorded]"
UNSUPPORTED = "not supported here"

_CANONICAL = re.compile(r"hist_tool_[A-Za-z0-9_-]{1,54}")
_ABROAD = {"openai-chat": re.compile(r"call_.{1,35}"), "anthropic": re.compile(r"toolu_[A-Za-z0-9_-]+")}


def models(api: str) -> tuple[str | None, ...]:
    """Target models worth telling apart; a new wire starts with its default."""
    return MODELS.get(api, (None,))


def dumped(value: Any) -> str:
    """JSON text: key order and the difference of int and float count."""
    return json.dumps(value, ensure_ascii=False)


def accepted(body: Body, api: str, model: str | None, *, pending: bool = False) -> None:
    """No `reject`, and on Kimi no foreign id (KIM-01)."""
    allowed = {"ANT-04", "OAI-CHAT-03", "KIM-02"} if pending else set()
    bad = [
        str(violation)
        for violation in segue.check(body, api, model=model)
        if (violation.severity == "reject" and violation.rule not in allowed) or violation.rule == "KIM-01"
    ]
    assert not bad, "\n".join([*bad, dumped(body)])


def words_meet(reading: Reading, story: Story) -> None:
    """Each call holds its arguments, and the result that was meant for it stands at its id."""
    assert not reading.surplus, f"results at no call: {reading.surplus}"
    for call in story.calls:
        found = reading.at(call.word)
        assert len(found) == 1, f"the call {call.word} stands {len(found)} times"
        (one,) = found
        if isinstance(call.arguments, dict):
            assert dumped(one.arguments) == dumped(call.arguments), f"arguments of {call.word} changed"
        expected = story.answers[call.word]
        assert one.text is not None, f"the call {call.word} has no result"
        if expected is None:
            assert INTERRUPTED in one.text, f"the call {call.word} was never answered, but has {one.text!r}"
        else:
            result_is(one.text, expected)


def result_is(text: str, expected: Result) -> None:
    """The text of the result; a mark before an error and a note about a picture may stand beside it."""
    word = word_of(expected.text)
    if word:
        assert word in text, f"{expected.text!r} was meant, {text!r} is there"
    else:
        assert word_of(text.replace(expected.picture.word, "") if expected.picture else text) is None, text
        assert INTERRUPTED not in text, f"an empty result is a result, not {text!r}"
    if not expected.error and not expected.picture:
        assert text == expected.text, f"{expected.text!r} became {text!r}"


def nothing_lost(body: Body, report: Any, story: Story) -> None:
    """Every word that the policy keeps stands in the body; losers of duplicates stand in the report instead."""
    spoken = dumped(body)
    lost = {word for word in story.kept_words() if word not in spoken}
    assert not lost, f"lost: {sorted(lost)}"
    for picture in story.pictures():
        assert picture.token in spoken or UNSUPPORTED in spoken, f"lost the picture {picture}"
    told = dumped(report.to_dict())
    for word in story.lost_words():
        assert word not in spoken, f"the losing result {word} stands in the body"
        assert word in told, f"the losing result {word} is not in the report"


def ids_in_order(reading: Reading, report: Any, *, home: bool, api: str, model: str | None) -> None:
    """Ids are one to one, in the form of the target, the same in report and body."""
    ids = reading.ids
    if not home:
        assert len(set(ids)) == len(ids), f"ids repeat: {ids}"
    calls, results = [tuple(pair) for pair in report.emitted_calls], [tuple(pair) for pair in report.emitted_results]
    if "legacy" not in ids:
        assert [wire for _, wire in calls] == ids
    canonical = [name for name, _ in calls]
    assert len(set(canonical)) == len(canonical), f"canonical ids repeat: {canonical}"
    assert all(_CANONICAL.fullmatch(name) for name in canonical), canonical
    assert sorted(calls) == sorted(results), "calls and results of the report differ"
    if not home and api in _ABROAD:
        assert all(_ABROAD[api].fullmatch(one) for one in ids), ids
    if not home and api == "kimi" and model != "kimi-k3":
        assert ids == [f"functions.{one.name}:{index}" for index, one in enumerate(reading.interactions)]


def converted(story: Story, out: Any, source: str, target: str, model: str | None) -> None:
    """All of the above for one conversion with the default policy."""
    accepted(out.body, target, model)
    reading = read(out.body, target)
    words_meet(reading, story)
    nothing_lost(out.body, out.report, story)
    ids_in_order(reading, out.report, home=source == target, api=target, model=model)


def up_to_last_reply(body: Body) -> list[str]:
    """The encoded messages up to and including the last assistant message."""
    messages = body.get("messages", [])
    last = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return [dumped(message) for message in messages[: last + 1]]
