"""Reasoning through callers of other APIs: sealed, stored, restored, and never taken from another conversation."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import segue
from segue.bridge.bridge import DEFAULT_MAX_AGE
from segue.bridge.entries import EntryMemory
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.secret import Secret
from segue.canonical.blocks import Thinking
from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.render.reasoning import has_reasoning_content
from segue.wire.registry import WIRES
from segue.wire.stream.parse import DEFAULT_TURN_KEY
from tests.bridge.exchanges import KEYS, MODELS, NOW, Answer, Response, Shell, endpoint, make_reply, path_of, whole
from tests.vendors.clients import CLIENTS

CALLERS = ("openai-chat", "openai-responses", "anthropic", "gemini")
# The upstreams whose reasoning is sent back.
UPSTREAMS = ("anthropic", "gemini", "openai-responses", "kimi", "deepseek", "qwen", "mistral", "bedrock")
PAIRS = [(caller, api) for caller in CALLERS for api in UPSTREAMS if caller != api]
EVERY_PAIR = pytest.mark.parametrize(("caller", "api"), PAIRS)
Body = dict[str, Any]

_REASONING: dict[str, Body] = {
    "openai-chat": {"model": "an-alias", "reasoning_effort": "high"},
    "openai-responses": {
        "model": "an-alias",
        "reasoning": {"effort": "high"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
    },
    "anthropic": {"model": "an-alias", "max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}},
    "gemini": {"generationConfig": {"thinkingConfig": {"thinkingLevel": "high", "includeThoughts": True}}},
}


def first_body(caller: str) -> Body:
    return {**CLIENTS[caller].start(["look"]), **_REASONING[caller]}


def strip_reasoning(body: Body) -> Body:
    """Return a Chat body without `reasoning_content`, as many clients send it."""
    messages = [{key: value for key, value in one.items() if key != "reasoning_content"} for one in body["messages"]]
    return {**body, "messages": messages}


class Chat:
    """A client of an API that keeps its history as given."""

    def __init__(self, caller: str, *, change: Callable[[Body], Body] = lambda body: body) -> None:
        self.caller = caller
        self.body = first_body(caller)
        self._change = change

    def ask(
        self, shell: Shell, api: str, thought: str | None = None, *, args: Body | None = None, client: str = ""
    ) -> Answer:
        """Send the history; the model thinks and calls a tool whose id is always the same, or ends."""
        calls = [("call_x", "look", args or {"city": "Oslo"})] if thought is not None else []
        response = whole(api, make_reply(api, thought=thought, calls=calls))
        answer = shell.run(path_of(self.caller), self._change(self.body), [response], client=client)
        assert answer.status == 200, answer.data
        self.body, _ = CLIENTS[self.caller].go_on(self.body, answer.body, lambda call: "seen")
        return answer


def thoughts_in(api: str, body: Body) -> list[Thinking]:
    request = WIRES[api].parse_request(body)
    blocks = [block for message in request.messages for block in message.blocks if isinstance(block, Thinking)]
    return [block for block in blocks if has_reasoning_content(block.text, block.signature, block.encrypted)]


def check_sent(answer: Answer, api: str, expected: list[str]) -> None:
    """Assert that the request to the provider is valid and has exactly these thoughts of its own."""
    body = answer.sent_bodies[-1]
    body = {**body, "model": MODELS[api]} if api not in ("gemini", "bedrock") else body
    assert segue.check(body, api, model=MODELS[api]), str(segue.check(body, api, model=MODELS[api]))
    assert [block.text for block in thoughts_in(api, body)] == expected
    assert ENVELOPE_PREFIX not in json.dumps(body)


def envelope_findings(answer: Answer) -> list[str]:
    report = answer.relay.report
    return [] if report is None else [one.message for one in report.findings if one.subject == "envelope"]


# ------------------------------------------------------------------------------------------------------------- restored


@EVERY_PAIR
def test_reasoning_comes_back(caller: str, api: str) -> None:
    shell, chat = Shell(endpoint(api)), Chat(caller)
    for number in range(3):
        answer = chat.ask(shell, api, f"Thought {number}.")
        check_sent(answer, api, [f"Thought {earlier}." for earlier in range(number)])
        assert envelope_findings(answer) == []


@pytest.mark.parametrize("api", UPSTREAMS)
def test_chat_client_may_strip_or_echo_reasoning(api: str) -> None:
    for change in (strip_reasoning, lambda body: body):
        shell, chat = Shell(endpoint(api)), Chat("openai-chat", change=change)
        chat.ask(shell, api, "A thought.")
        check_sent(chat.ask(shell, api), api, ["A thought."])


@EVERY_PAIR
def test_client_that_drops_the_envelopes_gets_the_entry(caller: str, api: str) -> None:
    """Of all blocks and fields with an envelope nothing is left, as after a client's own compaction."""

    def drop(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: drop(inner) for key, inner in value.items() if not is_sealed(inner)}
        return [drop(inner) for inner in value if not holds(inner)] if isinstance(value, list) else value

    def is_sealed(value: Any) -> bool:
        return isinstance(value, str) and value.startswith(ENVELOPE_PREFIX)

    def holds(value: Any) -> bool:
        kinds = ("thinking", "redacted_thinking", "reasoning")
        return isinstance(value, dict) and (value.get("type") in kinds or value.get("thought") is True)

    shell, chat = Shell(endpoint(api)), Chat(caller, change=drop)
    chat.ask(shell, api, "A thought.")
    answer = chat.ask(shell, api)
    first = next(iter(answer.sent_bodies))
    expected = ["A thought."] if _has_call_ids(chat.body, caller) else []
    check_sent(answer, api, expected)
    assert first


def _has_call_ids(body: Body, caller: str) -> bool:
    return caller != "gemini" or '"id":' in json.dumps(body["contents"])


@pytest.mark.parametrize("api", UPSTREAMS)
def test_client_that_serializes_arguments_again(api: str) -> None:
    """Other key order and blanks, and `1.0` as `1`: what a client in JavaScript sends."""

    def rewrite(body: Body) -> Body:
        body = json.loads(json.dumps(strip_reasoning(body)))
        for message in body["messages"]:
            for call in message.get("tool_calls", []):
                arguments = json.loads(call["function"]["arguments"])
                arguments = {key: arguments[key] for key in reversed(arguments)}
                call["function"]["arguments"] = json.dumps(arguments, indent=1).replace("1.0", "1")
        return body

    shell, chat = Shell(endpoint(api)), Chat("openai-chat", change=rewrite)
    chat.ask(shell, api, "A thought.", args={"n": 1.0, "list": [{"b": 1.0, "a": 1}], "c": None})
    check_sent(chat.ask(shell, api), api, ["A thought."])


@EVERY_PAIR
def test_reasoning_above_the_envelope_size_is_in_the_store(caller: str, api: str) -> None:
    thought = random.Random(1).randbytes(400_000).hex()
    shell, chat = Shell(endpoint(api)), Chat(caller)
    answer = chat.ask(shell, api, thought)
    assert ENVELOPE_PREFIX not in answer.data.decode()
    expected = [thought] if _has_call_ids(chat.body, caller) else []
    answer = chat.ask(shell, api)
    assert [block.text for block in thoughts_in(api, answer.sent_bodies[-1])] == expected


@EVERY_PAIR
def test_without_a_store_only_envelopes_carry_reasoning(caller: str, api: str) -> None:
    shell, chat = Shell(endpoint(api), has_store=False), Chat(caller, change=_echo_nothing(caller))
    chat.ask(shell, api, "A thought.")
    check_sent(chat.ask(shell, api), api, [] if caller == "openai-chat" else ["A thought."])
    assert shell.memory.load([]) == {}


def _echo_nothing(caller: str) -> Callable[[Body], Body]:
    return strip_reasoning if caller == "openai-chat" else lambda body: body


# -------------------------------------------------------------------------------------------------------------- dropped


def _edit(text: str) -> str:
    middle = len(text) // 2
    return text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :]


def _change_envelopes(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _change_envelopes(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_change_envelopes(inner, change) for inner in value]
    return change(value) if isinstance(value, str) and value.startswith(ENVELOPE_PREFIX) else value


@pytest.mark.parametrize("kind", ["edited", "cut", "garbage", "long"])
@pytest.mark.parametrize(("caller", "api"), [pair for pair in PAIRS if pair[0] != "openai-chat"])
def test_forged_envelope_is_dropped_and_reported(caller: str, api: str, kind: str) -> None:
    change: dict[str, Callable[[str], str]] = {
        "edited": _edit,
        "cut": lambda text: text[: len(text) // 2],
        "garbage": lambda text: ENVELOPE_PREFIX + "!" * 40,
        "long": lambda text: ENVELOPE_PREFIX + "A" * 20_000_000 if api == "anthropic" else text + "A",
    }
    shell, chat = Shell(endpoint(api)), Chat(caller)
    chat.ask(shell, api, "A thought.")
    chat.body = _change_envelopes(chat.body, change[kind])
    answer = chat.ask(shell, api)
    check_sent(answer, api, [])
    assert any("changed, cut off" in message for message in envelope_findings(answer))


def _others(api: str) -> dict[str, Callable[[EntryMemory], Shell]]:
    later = NOW + timedelta(seconds=DEFAULT_MAX_AGE + 1)
    return {
        "another endpoint": lambda memory: Shell(endpoint(api, 1), memory=memory),
        "another API key": lambda memory: Shell(endpoint(api, key=Secret("other")), memory=memory),
        "older": lambda memory: Shell(endpoint(api), memory=memory, now=lambda: later),
        "another secret": lambda memory: Shell(endpoint(api), memory=memory, keys=EnvelopeKeys(b"z" * 32)),
    }


@pytest.mark.parametrize("kind", _others("anthropic"))
@EVERY_PAIR
def test_envelope_of_another_place_is_dropped_and_reported(caller: str, api: str, kind: str) -> None:
    first, chat = Shell(endpoint(api)), Chat(caller)
    chat.ask(first, api, "A thought.")
    answer = chat.ask(_others(api)[kind](first.memory), api)
    # `reasoning_content` that a Chat client echoes is no envelope: it is the provider's own form for some.
    texts = [block.text for block in thoughts_in(api, answer.sent_bodies[-1])]
    assert texts == [] or (caller == "openai-chat" and WIRES[api].base_api == "openai-chat")
    is_stored = caller == "openai-chat"
    if kind != "another secret" or not is_stored:
        assert any(kind in message for message in envelope_findings(answer)), envelope_findings(answer)


@EVERY_PAIR
def test_switch_of_model_and_back(caller: str, api: str) -> None:
    other = next(other for other in ("gemini", "anthropic", "bedrock") if other not in (api, caller))
    memory, chat = EntryMemory(), Chat(caller, change=_echo_nothing(caller))
    own, foreign = Shell(endpoint(api), memory=memory), Shell(endpoint(other, 1), memory=memory)
    chat.ask(own, api, "First.")
    answer = chat.ask(foreign, other, "Second.")
    check_sent(answer, other, [])
    assert any("another provider" in message for message in envelope_findings(answer))
    answer = chat.ask(own, api, "Third.")
    assert "First." in [block.text for block in thoughts_in(api, answer.sent_bodies[-1])]
    assert "Second." not in [block.text for block in thoughts_in(api, answer.sent_bodies[-1])]
    answer = chat.ask(own, api)
    texts = [block.text for block in thoughts_in(api, answer.sent_bodies[-1])]
    assert texts == ["First.", "Third."]


# ------------------------------------------------------------------------------------------------------------ unwrapped


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", CALLERS)
def test_same_api_reasoning_is_never_wrapped(api: str, stream: bool) -> None:
    from tests.bridge.exchanges import streamed

    reply = make_reply(api, thought="A thought.", calls=[("call_1", "look", {"city": "Oslo"})])
    response = streamed(api, reply, 30) if stream else whole(api, reply)
    body = {**first_body(api), **({"stream": True} if stream and api != "gemini" else {})}
    shell = Shell(endpoint(api))
    answer = shell.run(path_of(api, stream=stream), body, [response])
    assert answer.status == 200
    assert ENVELOPE_PREFIX.encode() not in answer.data
    if api in ("anthropic", "gemini"):
        assert b"c2lnbmVk" in answer.data
    if stream:
        parser = WIRES[api].open_stream(DEFAULT_TURN_KEY)
        parser.feed(answer.data)
        assert parser.close().thinking == "A thought." or api == "openai-chat"


def test_route_without_envelopes_seals_nothing() -> None:
    for caller in CALLERS[1:]:
        shell, chat = Shell(endpoint("kimi"), envelopes=False), Chat(caller)
        answer = chat.ask(shell, "kimi", "A thought.")
        assert ENVELOPE_PREFIX not in answer.data.decode()
        check_sent(chat.ask(shell, "kimi"), "kimi", [])


# --------------------------------------------------------------------------------------------------------- side by side


@EVERY_PAIR
def test_equal_conversations_never_share_thoughts(caller: str, api: str) -> None:
    """The same prompt, the same call and the same constant id, in turns: only the thoughts differ."""
    memory = EntryMemory()
    shared = Shell(endpoint(api), memory=memory)
    for clients in (("one", "two"), ("one", "one")):
        chats = [Chat(caller, change=_echo_nothing(caller)) for _ in clients]
        for number in range(3):
            for name, chat, client in zip("AB", chats, clients, strict=True):
                answer = chat.ask(shared, api, f"{name}{number}", client=client)
                check_sent(answer, api, [f"{name}{earlier}" for earlier in range(number)])


def test_two_bridges_with_one_store_do_not_mix() -> None:
    """Both draw the same randomness here: even then the client keeps them apart."""
    memory = EntryMemory()
    chats = [Chat("openai-chat", change=strip_reasoning) for _ in range(2)]
    shells = [Shell(endpoint("anthropic"), memory=memory) for _ in range(2)]
    for name, chat, shell, client in zip("AB", chats, shells, ("one", "two"), strict=True):
        chat.ask(shell, "anthropic", name, client=client)
    for name, chat, shell, client in zip("AB", chats, shells, ("one", "two"), strict=True):
        check_sent(chat.ask(shell, "anthropic", client=client), "anthropic", [name])


# ------------------------------------------------------------------------------------------------------------- rotation


@EVERY_PAIR
def test_key_rotation_in_mid_conversation(caller: str, api: str) -> None:
    memory, chat = EntryMemory(), Chat(caller, change=_echo_nothing(caller))
    chat.ask(Shell(endpoint(api), memory=memory), api, "Before.")
    rotated = EnvelopeKeys(b"n" * 32, KEYS.current)
    check_sent(chat.ask(Shell(endpoint(api), memory=memory, keys=rotated), api, "After."), api, ["Before."])
    check_sent(chat.ask(Shell(endpoint(api), memory=memory, keys=rotated), api), api, ["Before.", "After."])


# -------------------------------------------------------------------------------------------------- a 400 that names it


def _rejection(api: str, message: str) -> Response:
    from tests.bridge.test_fallback import error_response

    return error_response(api, 400, message)


@pytest.mark.parametrize("api", UPSTREAMS)
def test_rejected_reasoning_is_sent_once_more_without_it(api: str) -> None:
    shell, chat = Shell(endpoint(api)), Chat("openai-chat")
    chat.ask(shell, api, "A thought.")
    rejection = _rejection(api, "messages.1: Invalid `signature` in `thinking` block")
    answer = shell.run(path_of("openai-chat"), chat.body, [rejection, whole(api)])
    assert answer.status == 200
    assert len(answer.sent) == 2
    assert thoughts_in(api, answer.sent_bodies[0])
    assert not thoughts_in(api, answer.sent_bodies[1])
    assert answer.relay.report is not None
    assert any("sent again without reasoning" in one.message for one in answer.relay.report.findings)
    twice = shell.run(path_of("openai-chat"), chat.body, [rejection, rejection])
    assert (twice.status, len(twice.sent)) == (400, 2)


@pytest.mark.parametrize("api", UPSTREAMS)
def test_other_rejections_are_not_repeated(api: str) -> None:
    shell, chat = Shell(endpoint(api)), Chat("openai-chat")
    chat.ask(shell, api, "A thought.")
    other = shell.run(path_of("openai-chat"), chat.body, [_rejection(api, "max_tokens is too large")])
    assert (other.status, len(other.sent)) == (400, 1)
    # Nothing could be left out of this request.
    plain = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    answer = shell.run(path_of("openai-chat"), plain, [_rejection(api, "Unknown field `reasoning`")])
    assert (answer.status, len(answer.sent)) == (400, 1)
