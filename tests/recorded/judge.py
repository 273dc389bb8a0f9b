"""What recorded traffic says about segue: requests, replies and streams, each with the ways in which it differs."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

import segue
from segue.canonical.request import Reply
from segue.errors import SegueError
from segue.wire.registry import WIRES
from tests.recorded.cassettes import Body, Exchange

_REJECTED = (400, 422)
_SPLITS = 3
_MAX_DETAIL = 160
_THOUGHT = re.compile(r"\s*<think>(?:.*?(?P<end></think>))?", re.DOTALL)


class Difference(Struct, frozen=True):
    """One exchange that differs. `kind` is what was tried, with the API: `home`, `check`, `convert anthropic`."""

    name: str
    kind: str
    expected: str
    found: str

    @property
    def line(self) -> str:
        return f"{self.name}  {self.kind}: expected {self.expected}; found {self.found}"

    def __str__(self) -> str:
        return f"{self.name}  {self.kind}: expected {_shorten(self.expected)}; found {_shorten(self.found)}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_DETAIL else f"{line[: _MAX_DETAIL - 1]}…"


def judge(exchange: Exchange) -> Iterator[Difference]:
    """Yield all differences of one exchange. What raises is a difference, as a user would get the error."""
    steps: list[tuple[str, Callable[[Exchange], Iterator[Difference]]]] = [("request", judge_request)]
    if exchange.status == 200 and exchange.reply is not None:
        steps.append(("reply", judge_reply))
    if exchange.status == 200 and exchange.stream:
        steps.append(("stream", judge_stream))
    for kind, step in steps:
        try:
            yield from step(exchange)
        except SegueError as error:
            yield Difference(exchange.name, kind, "no error", f"{type(error).__name__}: {error}")


# ------------------------------------------------------------------------------------------------------------- requests


def judge_request(exchange: Exchange) -> Iterator[Difference]:
    """The checker's verdict is the provider's; the body is the same at home, and valid in every other API."""
    wire, body = exchange.wire, exchange.named_body
    data = json.dumps(body).encode()
    if exchange.status == 200 or exchange.status in _REJECTED:
        verdict = segue.check(data, wire.name, profile=wire.profile)
        if bool(verdict) != (exchange.status == 200):
            rules = "accepted" if verdict else ", ".join(str(each) for each in verdict if each.severity == "reject")
            answer = f"{exchange.status} {json.dumps(exchange.reply)}" if exchange.status != 200 else "200"
            yield Difference(exchange.name, "check", answer, rules)
    yield from _judge_conversions(exchange, body, is_accepted=exchange.status == 200)


def _judge_conversions(exchange: Exchange, body: Body, kind: str = "", *, is_accepted: bool) -> Iterator[Difference]:
    """A body is valid in every API, and the same at home if the provider accepts it."""
    wire, data = exchange.wire, json.dumps(body).encode()
    if is_accepted:
        found = segue.convert(data, source=wire.name, target=wire.name, profile=wire.profile).body
        for path, before, after in list(find_changes(body, found))[:1]:
            yield Difference(exchange.name, f"{kind}home", f"{path} {json.dumps(before)}", json.dumps(after))
    for target in WIRES:
        profile = wire.profile if target == wire.name else None
        try:
            converted = segue.convert(data, source=wire.name, target=target, profile=profile)
            verdict = segue.check(converted.data, target, profile=profile)
            if not verdict:
                yield Difference(exchange.name, f"{kind}convert {target}", "a valid body", ", ".join(map(str, verdict)))
        except SegueError as error:
            found = f"{type(error).__name__}: {error}"
            yield Difference(exchange.name, f"{kind}convert {target}", "a valid body", found)


def find_changes(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path, the old and the new value of each place where two JSON values differ."""
    match before, after:
        case dict(), dict():
            for key in {**before, **after}:
                if key not in before or key not in after:
                    yield f"{path}.{key}", before.get(key, "nothing"), after.get(key, "nothing")
                else:
                    yield from find_changes(before[key], after[key], f"{path}.{key}")
        case list(), list() if len(before) == len(after):
            for index, pair in enumerate(zip(before, after, strict=True)):
                yield from find_changes(*pair, f"{path}[{index}]")
        case _ if before != after or isinstance(before, bool) != isinstance(after, bool):
            yield path, before, after
        case _:
            pass


# -------------------------------------------------------------------------------------------------------------- replies


def judge_reply(exchange: Exchange) -> Iterator[Difference]:
    """A reply means the same to every caller, and its conversation can go on in its own API, also as it came."""
    wire, reply = exchange.wire, json.dumps(exchange.reply).encode()
    whole = wire.parse_reply(json.loads(reply))
    for caller, converted in _callers(exchange):
        body = converted.reply(reply)
        yield from _compare(exchange, f"reply {caller}", whole, WIRES[caller].parse_reply(body))
    if (appended := _append_as_it_came(exchange)) is not None:
        # A call that nobody answers gets a result.
        is_accepted = bool(segue.check(appended, wire.name, profile=wire.profile)) and not meaning_of(whole)["calls"]
        yield from _judge_conversions(exchange, appended, "appended: ", is_accepted=is_accepted)
    chat = segue.Conversation.from_body(exchange.named_body, source=wire.name)
    chat.add_reply(reply, source=wire.name)
    for call in chat.pending:
        chat.add_result(call, "done")
    chat.add_user("Go on.")
    data = chat.render(wire.name, exchange.named_model, profile=wire.profile).data
    verdict = segue.check(data, wire.name, profile=wire.profile, model=exchange.model)
    if not verdict:
        yield Difference(exchange.name, "echo", "a valid body", ", ".join(map(str, verdict)))


def _append_as_it_came(exchange: Exchange) -> Body | None:
    """Return the body with the provider's own message and a question behind it; None if there is no message."""
    body, reply, key = exchange.named_body, exchange.reply or {}, exchange.wire.conversation_key
    match reply:
        case {"output": {"message": dict() as message}} | {"choices": [{"message": dict() as message}, *_]}:
            new: list[Any] = [message]
        case {"candidates": [{"content": dict() as message}, *_]} if message.get("parts"):
            new = [message]
        case {"output": [*items]}:
            new = items
        case {"role": "assistant", "content": [*blocks]}:
            new = [{"role": "assistant", "content": blocks}]
        case _:
            return None
    before = body.get(key) or []
    before = [{"role": "user", "content": before}] if isinstance(before, str) else before
    text: Any = [{"text": "Go on."}] if exchange.wire.base_api in ("gemini", "bedrock") else "Go on."
    user = {"role": "user", "parts" if exchange.wire.base_api == "gemini" else "content": text}
    return {**body, key: [*before, *new, user]}


def _callers(exchange: Exchange) -> Iterator[tuple[Any, segue.Converted]]:
    """Yield every caller's API, and the conversion of a body of that API that gives a body like the recorded one."""
    wire = exchange.wire
    for caller in WIRES:
        body = segue.convert(exchange.named_body, source=wire.name, target=caller).body
        yield (
            caller,
            segue.convert(body, source=caller, target=wire.name, profile=wire.profile, model=exchange.named_model),
        )


def _compare(exchange: Exchange, kind: str, expected: Reply, found: Reply) -> Iterator[Difference]:
    before, after = meaning_of(expected), meaning_of(found)
    for place in before:
        # A reply that failed, or whose caller did not ask for its tokens, has none.
        is_counted = before["finish"] != "error" and None not in (before[place], after[place])
        if before[place] != after[place] and (place != "tokens" or is_counted):
            yield Difference(exchange.name, kind, f"{place} {before[place]!r}", repr(after[place]))


def meaning_of(reply: Reply) -> Body:
    """Return what a reply says in any API: its text, the calls that the client has to answer, and how it ended.

    White space does not count: texts around a block that the caller's API lacks are joined with empty lines. The input
    of a custom tool is the argument `input` where the caller's API has only functions.
    """
    calls = [
        (call.name, {"input": call.arguments} if isinstance(call.arguments, str) else call.arguments)
        for call in reply.calls
        if call.kind != "hosted"
    ]
    text, usage = "".join(_drop_thoughts(reply).split()), reply.usage
    tokens = None if usage is None else (usage.input, usage.output, usage.cache_read)
    return {"text": text, "calls": calls, "finish": reply.finish, "tokens": tokens}


def _drop_thoughts(reply: Reply) -> str:
    """Return the text without the reasoning in tags, which callers get as such; cut off before its end, it is all."""
    found = _THOUGHT.match(reply.text)
    if found is None:
        return reply.text
    return reply.text[found.end() :] if found["end"] or reply.finish != "length" else ""


# -------------------------------------------------------------------------------------------------------------- streams


def judge_stream(exchange: Exchange) -> Iterator[Difference]:
    """A stream means the same in any pieces, and to every caller."""
    wire, data = exchange.wire, exchange.stream or b""
    whole = segue.assemble(data, wire.name)
    for seed in range(_SPLITS):
        pieces = split(data, random.Random(seed))
        if (found := segue.assemble(pieces, wire.name)) != whole:
            yield Difference(exchange.name, f"split {seed}", repr(whole), repr(found))
    for caller, converted in _callers(exchange):
        stream = converted.stream()
        rendered = [*map(stream.feed, split(data, random.Random(0))), stream.close()]
        yield from _compare(exchange, f"stream {caller}", whole, segue.assemble(b"".join(rendered), caller))


def split(data: bytes, chance: random.Random) -> Sequence[bytes]:
    cuts = sorted(chance.sample(range(len(data)), min(len(data), 9)))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]
