"""What a request costs as its conversation grows: sessions of many turns through the bridge, in this process.

A turn is a reply with a call, and its result; each tenth reply has no call, and the user's next message follows. The
reasoning of the replies returns in envelopes or from the store, and some models bind it to the exact prompt. A request
that meets another worker finds the store, but no memory of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from _measure import decode, encode, time_once

from segue.bridge import Bridge, Route, Router
from segue.bridge.actions import Load, ResponseHead, Save, Send, Write
from segue.bridge.driver import Read, drive
from segue.bridge.entries import EntryMemory
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.providers import Endpoint
from segue.bridge.secret import Secret
from segue.conversion import sessions

TURNS = (20, 80, 120, 160)
HEADER = [
    "µs of CPU a request",
    *(f"turn {turn}" for turn in TURNS),
    "120 / 20",
    "160 / 20",
    "20, × without",
    "another worker, 20 and 160",
]
_NEIGHBOURS = 2
_EXCHANGE = 10
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_KEYS = EnvelopeKeys(b"k" * 32)
_PATHS = {"anthropic": "/v1/messages", "openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses"}
_THOUGHT = "The test fails in the second line, so the file has to be read before it is changed. " * 4
_RESULT = 'File "walk.py", line 41, in walk: raise KeyError(f"no {name!r}")  # see the docs\n' * 8
_SYSTEM = "You are a coding agent. Read files before you change them, and run the tests afterwards. " * 20
_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path"],
}
_TOOLS = ("read_file", "write_file", "edit_file", "run_tests", "search", "list_files")


class Mode(NamedTuple):
    """One row: a caller on a model, with its reasoning in envelopes or in the store, or without reasoning."""

    title: str
    caller: str
    upstream: str
    model: str
    thinks: bool = True
    has_store: bool = True


_KIMI, _BOUND = ("kimi", "kimi-k2-thinking"), ("anthropic", "claude-opus-5-1")
MODES = (
    Mode("Messages on Kimi, without reasoning", "anthropic", *_KIMI, thinks=False),
    Mode("envelopes", "anthropic", *_KIMI, has_store=False),
    Mode("envelopes and store", "anthropic", *_KIMI),
    Mode("Chat on Claude, without reasoning", "openai-chat", "anthropic", "claude-sonnet-5", thinks=False),
    Mode("store", "openai-chat", "anthropic", "claude-sonnet-5"),
    Mode("Chat on Claude 5.1, without reasoning", "openai-chat", *_BOUND, thinks=False),
    Mode("store, bound to the prefix", "openai-chat", *_BOUND),
    Mode("Responses on Claude 5.1, without reasoning", "openai-responses", *_BOUND, thinks=False),
    Mode("envelopes, bound to the prefix", "openai-responses", *_BOUND, has_store=False),
)


class Session:
    """A client's conversation. `send` sends it once more; `go_on` appends the reply and the results of its calls."""

    def __init__(self, mode: Mode, number: int) -> None:
        self.mode = mode
        self.memory = EntryMemory()
        self.turn = 0
        self.bodies: dict[int, bytes] = {}
        """The bodies that are sent to another worker in the end, by their turn."""
        self._number = number
        self._items: list[Any] = [{"role": "user", "content": f"{number}. Find out why the tests fail, and repair it."}]
        self._salts = count()
        self.bridge = self.open_bridge()

    def open_bridge(self) -> Bridge:
        mode = self.mode
        endpoint = Endpoint("p", mode.model, mode.upstream, "https://host.example/v1", key=Secret("key"))
        router = Router(lambda _query: Route("route", (endpoint,)))
        return Bridge(
            router,
            keys=_KEYS,
            now=lambda: _NOW,
            random=lambda size: next(self._salts).to_bytes(size),
            has_store=mode.has_store,
        )

    def body(self) -> bytes:
        tools = [(name, f"Use this to {name.replace('_', ' ')}.", _SCHEMA) for name in _TOOLS]
        match self.mode.caller:
            case "anthropic":
                declared = [{"name": name, "description": text, "input_schema": schema} for name, text, schema in tools]
                thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}} if self.mode.thinks else {}
                fields = {"model": "m", "max_tokens": 4000, **thinking, "system": _SYSTEM, "tools": declared}
                return encode({**fields, "messages": self._items})
            case "openai-chat":
                functions = [{"name": name, "description": text, "parameters": schema} for name, text, schema in tools]
                declared = [{"type": "function", "function": function} for function in functions]
                effort = {"reasoning_effort": "high"} if self.mode.thinks else {}
                messages = [{"role": "system", "content": _SYSTEM}, *self._items]
                return encode({"model": "m", **effort, "messages": messages, "tools": declared})
            case _:
                declared = [
                    {"type": "function", "name": name, "description": text, "parameters": schema, "strict": False}
                    for name, text, schema in tools
                ]
                reasoning = {"reasoning": {"effort": "high"}} if self.mode.thinks else {}
                fields = {"model": "m", "store": False, "instructions": _SYSTEM, **reasoning, "tools": declared}
                return encode({**fields, "input": self._items})

    def send(self, data: bytes, bridge: Bridge | None = None) -> bytes:
        """Carry out one exchange, and return the body of the response."""
        written: list[bytes] = []
        relay = (bridge or self.bridge).open("POST", _PATHS[self.mode.caller], {}, data)
        chunks = [self._reply()]
        commands, result = drive(relay), None
        while True:
            try:
                command = commands.send(result)
            except StopIteration:
                return b"".join(written)
            match command:
                case Send():
                    result = ResponseHead(200, {})
                case Read():
                    result = chunks.pop() if chunks else b""
                case Load():
                    result = self.memory.load(command.keys)
                case Save():
                    result = self.memory.save(command.entries)
                case Write():
                    result = written.append(command.data)
                case _:
                    result = None

    def _reply(self) -> bytes:
        """Return the provider's reply in this turn."""
        number, thinks = self.turn, self.mode.thinks
        calls = number % _EXCHANGE != _EXCHANGE - 1
        text, arguments = f"Step {number}.", {"path": f"/src/{self._number}/walk_{number}.py", "line": number}
        if self.mode.upstream == "kimi":
            function = {"name": "read_file", "arguments": encode(arguments).decode()}
            message: dict[str, Any] = {"role": "assistant", "content": text}
            message |= {"reasoning_content": f"{number}. {_THOUGHT}"} if thinks else {}
            tool_calls = [{"id": f"read_file:{number}", "type": "function", "function": function}]
            message |= {"tool_calls": tool_calls} if calls else {}
            choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
            return encode({"id": "c", "object": "chat.completion", "created": 1, "model": "k", "choices": [choice]})
        thinking = {"type": "thinking", "thinking": f"{number}. {_THOUGHT}", "signature": "c2lnbmVk" * 30}
        call = {"type": "tool_use", "id": f"toolu_{number:022}", "name": "read_file", "input": arguments}
        content = [*([thinking] if thinks else []), {"type": "text", "text": text}, *([call] if calls else [])]
        usage = {"input_tokens": 9, "output_tokens": 2}
        fields = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.mode.model, "usage": usage}
        return encode(
            {**fields, "content": content, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        )

    def go_on(self, response: bytes) -> None:
        """Append the reply, and the results of its calls."""
        reply = decode(response)
        self.turn += 1
        message, items = f"Go on with step {self.turn}.", self._items
        match self.mode.caller:
            case "anthropic":
                uses = [block for block in reply["content"] if block["type"] == "tool_use"]
                results = [{"type": "tool_result", "tool_use_id": use["id"], "content": _RESULT} for use in uses]
                items += [{"role": "assistant", "content": reply["content"]}]
                items += [{"role": "user", "content": results}] if results else []
            case "openai-chat":
                answer = reply["choices"][0]["message"]
                answer.pop("reasoning_content", None)
                results = [
                    {"role": "tool", "tool_call_id": c["id"], "content": _RESULT}
                    for c in answer.get("tool_calls") or ()
                ]
                items += [answer, *results]
            case _:
                calls = [item for item in reply["output"] if item["type"] == "function_call"]
                results = [{"type": "function_call_output", "call_id": c["call_id"], "output": _RESULT} for c in calls]
                items += [*reply["output"], *results]
        items += [] if results else [{"role": "user", "content": message}]


class Costs:
    """The least seconds of a request in each turn, and of one that meets another worker."""

    def __init__(self) -> None:
        self._least: dict[int, float] = {}
        self.elsewhere: dict[int, float] = {}

    def add(self, turn: int, seconds: float) -> None:
        self._least[turn] = min(self._least.get(turn, seconds), seconds)

    def at(self, turn: int) -> float:
        """Return the cost of a turn: the mean of its neighbours, which continue their memory in different ways."""
        near = [self._least[at] for at in range(turn - _NEIGHBOURS, turn + _NEIGHBOURS + 1)]
        return sum(near) / len(near)


def measure_turns(modes: Sequence[Mode], rounds: int) -> Iterator[list[str]]:
    """Yield the rows of the table. Sessions of all modes grow in turns; each round has its own ones."""
    costs = [Costs() for _ in modes]
    for number in range(rounds):
        sessions.clear()
        played = [Session(mode, number) for mode in modes]
        for turn in range(TURNS[-1] + _NEIGHBOURS + 1):
            for session, cost in zip(played, costs, strict=True):
                _measure_turn(session, cost, turn)
        for session, cost in zip(played, costs, strict=True):
            _measure_elsewhere(session, cost)
    without = costs[0]
    for mode, cost in zip(modes, costs, strict=True):
        without = without if mode.thinks else cost
        first, ratio = cost.at(TURNS[0]), cost.at(TURNS[0]) / without.at(TURNS[0])
        times = [f"{cost.at(turn) * 1e6:.0f}" for turn in TURNS]
        growth = [f"{cost.at(turn) / first:.2f}" for turn in TURNS[2:]]
        elsewhere = " and ".join(f"{cost.elsewhere[turn] * 1e6:.0f}" for turn in (TURNS[0], TURNS[-1]))
        yield [mode.title, *times, *growth, f"{ratio:.2f}" if mode.thinks else "", elsewhere]


def _measure_turn(session: Session, cost: Costs, turn: int) -> None:
    data, responses = session.body(), []
    cost.add(turn, time_once(lambda: responses.append(session.send(data))))
    if turn in (TURNS[0], TURNS[-1]):
        session.bodies[turn] = data
    session.go_on(responses[0])


def _measure_elsewhere(session: Session, cost: Costs) -> None:
    for turn, data in session.bodies.items():
        sessions.conversations.clear()
        bridge = session.open_bridge()
        seconds = time_once(lambda data=data, bridge=bridge: session.send(data, bridge))
        cost.elsewhere[turn] = min(cost.elsewhere.get(turn, seconds), seconds)
