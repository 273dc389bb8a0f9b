"""Judges a run by the requests that reached the provider, and by the files on disk. Exit codes are not used.

A run is right if the files are right, each command ran once, no request was rejected, each round reached the provider
once, every call has its one real result there, and all thoughts of a prompt came back with its later requests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.blocks import Block, Media, Thinking, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text
from segue.canonical.request import Request
from segue.emulator import RecordedRequest
from segue.emulator.steps import CallStep, ReplySteps, Step, TextStep
from segue.models import parse_model
from segue.render.reasoning import has_reasoning_content
from segue.wire.registry import WIRES
from tests.clients import mcp_server
from tests.clients.task import FILES, RAN_FILE, TOOL_MARK, ExpectedCall, Round, list_words

_NAMESPACED = re.compile(rf"(?:functions|(?:mcp_+)?{mcp_server.SERVER})(?:::|_+)(\w+?)(?:_[0-9a-z]{{8}})?")
_NAMED = re.compile(rf"{TOOL_MARK}(\w+){TOOL_MARK}")
_INJECTED = frozenset({429, 500, 529})
_EXTRA_REPLY: ReplySteps = (TextStep("Nothing more to do."),)


class Exchange(Struct):
    """A request of the conversation, the round it was answered with (None after the last), and its record."""

    request: Request
    round: Round | None
    record: RecordedRequest | None = None


class Script:
    """Replies to the requests of the conversation with the rounds in their order, and keeps all requests."""

    def __init__(self, rounds: Sequence[Round], only_tool: str) -> None:
        self.rounds = rounds
        self.exchanges: list[Exchange] = []
        self.records: list[RecordedRequest] = []
        self.only_tool = only_tool
        self._open: Exchange | None = None

    def reply(self, request: Request) -> ReplySteps | None:
        if not any(_base_name(tool.name) == self.only_tool for tool in request.tools):
            return _EXTRA_REPLY
        number = len(self.exchanges)
        current = self.rounds[number] if number < len(self.rounds) else None
        self._open = Exchange(request, current)
        self.exchanges.append(self._open)
        return _EXTRA_REPLY if current is None else tuple(_declared_step(step, request) for step in current.steps)

    def add_record(self, record: RecordedRequest) -> None:
        """Add the record of a request; the emulator completes each one before it handles the next."""
        self.records.append(record)
        if self._open is not None:
            self._open.record, self._open = record, None


def _base_name(name: str) -> str:
    """Return the name of a tool without its namespace or MCP server, however that is written for the provider."""
    found = _NAMESPACED.fullmatch(name)
    return found[1] if found else name


def _declared_step(step: Step, request: Request) -> Step:
    """Return a call by the name that the request declares, with its text alone if that tool takes free text.

    In a text, the name of a tool is marked.
    """
    names = {_base_name(tool.name): tool.name for tool in request.tools}
    if isinstance(step, TextStep):
        return TextStep(_NAMED.sub(lambda found: names.get(found[1], found[1]), step.text))
    if not isinstance(step, CallStep):
        return step
    tool = next((tool for tool in request.tools if _base_name(tool.name) == step.name), None)
    if tool is None:
        return step
    arguments = step.arguments
    if tool.kind == "custom" and isinstance(arguments, dict):
        (arguments,) = cast("dict[str, Any]", arguments).values()
    return replace(step, name=tool.name, arguments=arguments)


class _SentRound(Struct):
    """A round as it is in the history of a request."""

    calls: list[ToolCall] = []
    thoughts: int = 0
    signatures: int = 0


def judge(script: Script, folder: Path) -> list[str]:
    """Return what is wrong, most telling first; empty if the run is right."""
    return [*_judge_files(script, folder), *judge_requests(script)]


def judge_requests(script: Script) -> list[str]:
    """Return what is wrong with the requests; empty if they are right."""
    problems = [*_judge_records(script), *_judge_count(script)]
    done: list[Exchange] = []
    for number, exchange in enumerate(script.exchanges, start=1):
        problems += [f"request {number}: {problem}" for problem in _judge_history(exchange, done)]
        if exchange.round is not None and not exchange.round.is_broken:
            done.append(exchange)
    return problems


def judge_log(log: str) -> list[str]:
    """Return the requests that the gateway answered with an error, by its log.

    `HEAD /` is not counted: clients probe with it, without a key, and no API answers it.
    """
    failed = [line for line in log.splitlines() if re.search(r"; [45]\d\d; ", line) and "; HEAD /; " not in line]
    return [f"gateway: {line.split('; ', 1)[1]}" for line in failed]


def _judge_files(script: Script, folder: Path) -> Iterator[str]:
    ran, expected = folder / RAN_FILE, list_words(script.rounds)
    lines = ran.read_text().splitlines() if ran.exists() else []
    if lines != expected:
        yield f"the commands that ran: {lines}, expected {expected}"
    for name, content in FILES.items():
        if (folder / name).read_text() != content:
            yield f"{name} was changed"


def _judge_records(script: Script) -> Iterator[str]:
    for record in script.records:
        if record.confused:
            yield "the model was confused by the ids"
        elif record.refused and record.status not in _INJECTED:
            yield f"rejected with {record.status} {record.rule or ''}: {record.refused[:200]}"


def _judge_count(script: Script) -> Iterator[str]:
    if len(script.exchanges) != len(script.rounds):
        yield f"{len(script.exchanges)} rounds reached the provider, expected {len(script.rounds)}"


def _judge_history(exchange: Exchange, done: Sequence[Exchange]) -> Iterator[str]:
    """Compare the history of a request with the rounds before it."""
    expected = [each for each in done if each.round is not None and each.round.calls]
    sent = _find_rounds(exchange.request)
    names = [tuple(_base_name(call.name) for call in each.calls) for each in sent]
    wanted = [tuple(call.tool for call in each.round.calls) for each in expected if each.round is not None]
    if names != wanted:
        yield f"the calls are {names}, expected {wanted}"
        return
    results = [block for block in _list_blocks(exchange.request) if isinstance(block, ToolResponse)]
    counts = Counter(result.call_id for result in results)
    for sent_round, before in zip(sent, expected, strict=True):
        assert before.round is not None
        for call, wanted_call in zip(sent_round.calls, before.round.calls, strict=True):
            if call.arguments not in (wanted_call.arguments, *wanted_call.arguments.values()):
                yield f"the arguments of {call.name} are {encode_json_text(call.arguments)[:200]}"
            if counts[call.id] != 1:
                yield f"{call.name} has {counts[call.id]} results"
            for result in results:
                if result.call_id == call.id and not _is_real(result, wanted_call, exchange.request):
                    yield f"{call.name} has another result: {_text_of(result)[:200]}"
        yield from _judge_thoughts(exchange, sent_round, before)


def _judge_thoughts(exchange: Exchange, sent: _SentRound, before: Exchange) -> Iterator[str]:
    """Find out whether the thought of an earlier round of the same prompt came back."""
    assert before.round is not None
    if exchange.round is None or exchange.round.prompt != before.round.prompt:
        return
    record = before.record
    if record is None or not record.thoughts or not _accepts_reasoning(record):
        return
    if not _has_thought(sent, record):
        yield f"the thought before {before.round.calls[0].tool} is missing"


def _has_thought(sent: _SentRound, record: RecordedRequest) -> bool:
    return bool(sent.signatures if record.api == "gemini" else sent.thoughts)


def _accepts_reasoning(record: RecordedRequest) -> bool:
    """Return whether the provider accepts its reasoning back."""
    return WIRES[record.api].constraints(parse_model(record.model)).reasoning_replay not in ("refused", "newest")


def _find_rounds(request: Request) -> list[_SentRound]:
    """Return the rounds with calls of a history: calls up to the next result."""
    rounds: list[_SentRound] = []
    current = _SentRound()
    for block in _list_blocks(request):
        match block:
            case ToolCall():
                current.calls.append(block)
            case Thinking() if has_reasoning_content(block.text, block.signature, block.encrypted):
                current.thoughts += 1
                current.signatures += bool(block.signature)
            case ToolResponse() if current.calls:
                rounds.append(current)
                current = _SentRound()
            case _:
                continue
    return [*rounds, current] if current.calls else rounds


def _list_blocks(request: Request) -> list[Block]:
    return [block for message in request.messages for block in message.blocks]


def _is_real(result: ToolResponse, wanted: ExpectedCall, request: Request) -> bool:
    """Return whether a result is that of its tool. A picture may be in a message of its own, after the results."""
    if wanted.result is not None:
        return wanted.result in _text_of(result)
    return any(isinstance(block, Media) for block in (*(result.content or ()), *_list_blocks(request)))


def _text_of(result: ToolResponse) -> str:
    return " ".join(str(getattr(block, "text", "")) for block in result.content or ()) + str(result.structured or "")


def count_thoughts(script: Script) -> tuple[int, int]:
    """Return the rounds in which the provider sent thoughts, and the most thoughts of a request."""
    sent = sum(bool(each.record and each.record.thoughts) for each in script.exchanges)
    counts = (sum(each.thoughts for each in _find_rounds(exchange.request)) for exchange in script.exchanges)
    return sent, max(counts, default=0)


def count_returned(script: Script) -> dict[int, tuple[int, int]]:
    """Return how many thoughts came back by the end of each prompt, and how many its provider had sent before calls.

    Those of an earlier prompt count too. A provider that refuses reasoning has sent none.
    """
    counts: dict[int, tuple[int, int]] = {}
    done: list[Exchange] = []
    for exchange in script.exchanges:
        if exchange.round is None or exchange.record is None or exchange.round.is_broken:
            continue
        pairs = zip(_find_rounds(exchange.request), done, strict=False)
        found = [
            _has_thought(sent, before.record)
            for sent, before in pairs
            if before.record is not None and before.record.api == exchange.record.api
            if before.record.thoughts and _accepts_reasoning(before.record)
        ]
        counts[exchange.round.prompt] = (sum(found), len(found))
        if exchange.round.calls:
            done.append(exchange)
    return counts
