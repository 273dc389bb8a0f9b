"""Injected faults: which requests get one (by seed), and how it changes the response."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Literal, cast, get_args

import msgspec
from msgspec import Struct

from segue.emulator.steps import CallStep, EndStep, ReplySteps
from segue.errors import InputError, require_string
from segue.wire.stream.aws_events import EXCEPTION_PREFIX, encode_aws_message
from segue.wire.stream.framing import FrameDecoder, encode_sse

Fault = Literal[
    "rate-limit",
    "server-error",
    "overloaded",
    "slow-start",
    "stall",
    "reset",
    "reset-in-stream",
    "cut-arguments",
    "repeated-ids",
    "missing-ids",
    "empty-ids",
    "double-finish",
    "wrong-type",
    "no-reply-id",
    "same-reply-id",
    "context-length",
    "no-credit",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
_FAULT_SYNTAX = re.compile(r"(?P<name>[^=@]*)(?:=(?P<rate>.*)|@(?P<numbers>.*))?", re.DOTALL)
_NUMBERS = re.compile(r"[1-9][0-9]*(?:,[1-9][0-9]*)*")
_ID_KEYS = frozenset({"id", "call_id", "toolUseId", "responseId"})


class _FaultRule(Struct, frozen=True):
    name: Fault
    rate: float = 1.0
    numbers: frozenset[int] | None = None


class FaultPlan:
    """The faults to inject: `rate-limit` in every request, `rate-limit=0.2` in one of five, `rate-limit@1,3` in two."""

    def __init__(self, faults: Iterable[str] | Mapping[str, float] = (), seed: int = 0) -> None:
        if isinstance(faults, str):
            faults = [faults]
        if isinstance(faults, Mapping):
            rates = cast("Mapping[object, object]", faults)
            faults = [f"{name}={rate}" for name, rate in rates.items()]
        self._rules = [_parse_fault(text) for text in faults]
        self._seed = seed

    def faults_for(self, number: int) -> frozenset[Fault]:
        """Return the faults of the request with this number, counted from 1."""
        return frozenset(rule.name for rule in self._rules if self._applies(rule, number))

    def _applies(self, rule: _FaultRule, number: int) -> bool:
        if rule.numbers is not None:
            return number in rule.numbers
        drawn = int.from_bytes(sha256(f"{self._seed}|{rule.name}|{number}".encode()).digest()[:6], "big") / 2**48
        return drawn < rule.rate


def _parse_fault(text: str) -> _FaultRule:
    require_string(text, "fault")
    match = _FAULT_SYNTAX.fullmatch(text)
    name = _find_fault(match["name"] if match else text)
    if match is None or name is None:
        near = difflib.get_close_matches(text.lower().replace("_", "-"), FAULTS, 1)
        hint = f"; did you mean {near[0]}?" if near else ";"
        raise InputError(f"unknown fault {text!r}{hint} known faults: {', '.join(FAULTS)}", path="fault")
    rate, numbers = match["rate"], match["numbers"]
    if numbers is not None:
        if not _NUMBERS.fullmatch(numbers):
            expected = f"request numbers were expected, counted from 1, as in {name}@1,3"
            raise InputError(f"{text!r}: {expected}", path="fault")
        return _FaultRule(name, numbers=frozenset(map(int, numbers.split(","))))
    return _FaultRule(name) if rate is None else _FaultRule(name, _parse_rate(rate, text))


def _find_fault(name: str) -> Fault | None:
    return next((fault for fault in FAULTS if fault == name), None)


def _parse_rate(rate_text: str, text: str) -> float:
    try:
        rate = float(rate_text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise InputError(f"{text!r}: the rate must be between 0 and 1", path="fault")
    return rate


def cut_arguments(steps: ReplySteps) -> ReplySteps:
    """Return the steps with the arguments of the last call cut off."""
    call_indexes = [index for index, step in enumerate(steps) if isinstance(step, CallStep)]
    if not call_indexes:
        return steps
    call = cast("CallStep", steps[call_indexes[-1]])
    text = call.text if call.text is not None else msgspec.json.encode(call.arguments or {}).decode()
    cut = CallStep(call.name, text=text[: len(text) * 2 // 3], id=call.id)
    return (*steps[: call_indexes[-1]], cut, EndStep("length"))


def repeat_ids(steps: ReplySteps, make_id: Callable[[str], str | None]) -> ReplySteps:
    """Return the steps with one id for all calls of a tool, the same in every reply."""
    return tuple(
        msgspec.structs.replace(step, id=make_id(step.name)) if isinstance(step, CallStep) else step for step in steps
    )


# ---------------------------------------------------------------------------------------------------- finished payloads


def make_id_remover(ids: frozenset[str], emptied: frozenset[str] = frozenset()) -> Callable[[Any], Any]:
    """Return a function that removes `ids` from a payload, and replaces those in `emptied` by empty strings."""

    def is_id(value: Any, among: frozenset[str]) -> bool:
        return isinstance(value, str) and value in among

    def remove(value: Any) -> Any:
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            kept = ((key, inner) for key, inner in members.items() if not (key in _ID_KEYS and is_id(inner, ids)))
            return {key: "" if key in _ID_KEYS and is_id(inner, emptied) else remove(inner) for key, inner in kept}
        return [remove(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value

    return remove


def map_payloads(frames_data: bytes, change: Callable[[Any], Any]) -> bytes:
    """Apply a function to every payload of complete stream frames."""
    frames = FrameDecoder()
    binary = frames_data[:1] == b"\0"
    output = b""
    for name, payload in (*frames.feed(frames_data), *frames.close()):
        # Not all payloads are JSON: a stream may end with `[DONE]`.
        with suppress(msgspec.DecodeError):
            payload = msgspec.json.encode(change(msgspec.json.decode(payload)))
        output += _event_message(name, payload) if binary else encode_sse(payload, name)
    return output


def _event_message(name: str | None, payload: bytes) -> bytes:
    kind = "exception" if (name or "").startswith(EXCEPTION_PREFIX) else "event"
    type_header = {f"{kind}_type": (name or "").removeprefix(EXCEPTION_PREFIX)}
    return encode_aws_message(payload, **type_header, content_type="application/json", message_type=kind)


_FRAME_END = b"\n\n"


def repeat_end(data: bytes) -> bytes:
    """Repeat the end of a stream, without the content in the same chunk."""
    done = b"data: [DONE]\n\n"
    end = data.removesuffix(done)
    # Mistral sends all calls of a reply in a chunk of their own, right before the end.
    frames = [frame for frame in end.split(_FRAME_END) if b'"delta":{"tool_calls"' not in frame]
    again = map_payloads(end, _drop_content) if b'"candidates"' in end else _FRAME_END.join(frames)
    return end + again + (done if data.endswith(done) else b"")


def _drop_content(payload: Any) -> Any:
    if not isinstance(payload, dict) or "candidates" not in payload:
        return cast("Any", payload)
    members = cast("dict[str, Any]", payload)
    empty = {"parts": [{"text": ""}], "role": "model"}
    return {**members, "candidates": [{**candidate, "content": empty} for candidate in members["candidates"]]}
