"""Stream parser: chat completion chunks to events, and to the equivalent whole completion."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Native, Origin, Text, Thinking
from segue.canonical.jsontext import plain
from segue.canonical.request import Reply
from segue.wire.base import ApiError
from segue.wire.events import (
    Opened,
)
from segue.wire.fields import JsonObject, integer_or_none, object_or_none, string_or_none
from segue.wire.openai import parse_error
from segue.wire.openai_chat.dialect import ChatDialect
from segue.wire.openai_chat.reply import (
    parse_reply,
)
from segue.wire.openai_chat.stream_calls import CallDeltas
from segue.wire.stream_reader import ENDED_EARLY, Reader, with_calls_told

__all__ = ["ENVELOPE", "SPOKEN", "ChatReader", "part"]

ENVELOPE = frozenset({"choices", "usage", "object", "error"})
SPOKEN = frozenset({"role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"})
_HEARD = ("data", "transcript")
_BROKE_OFF = "error"
_REASONING_KEYS = ("reasoning_content", "reasoning")


class ChatReader(Reader):
    """Chunks to events. Only the first choice is parsed; the others are counted."""

    def __init__(self, turn_key: str, dialect: ChatDialect) -> None:
        super().__init__(dialect.provider, turn_key)
        self._dialect = dialect
        self._envelope: JsonObject = {}
        self._message: JsonObject = {"role": "assistant"}
        self._beside: JsonObject = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._calls_told = CallDeltas(self, dialect.provider)
        self._run: tuple[str, int] | None = None
        self._content: list[tuple[str, str]] = []
        self._in_parts = False
        self._others: set[int] = set()
        self._usage: object = None
        self._reason: object = None
        self._at_once: Reply | None = None

    def read(self, payload: JsonObject, name: str | None) -> None:
        if self._at_once is not None:
            return None
        if self.halves:
            payload = _without_halves(payload, "choices")
        choices = payload.get("choices")
        if not isinstance(choices, list):
            return self._read_beside(payload)
        if payload.get("usage") is not None:
            self._usage = payload["usage"]
        if payload.get("error"):
            self.failed = parse_error(0, payload)
        if not self.opened or len(payload) > len(self._envelope) + 1:
            self._open(payload)
        for entry in cast("list[object]", choices):
            choice = object_or_none(entry)
            if choice is None:
                continue
            place = integer_or_none(choice.get("index")) or 0
            if place:
                self._others.add(place)
                continue
            delta = object_or_none(choice.get("delta"))
            if delta is None and object_or_none(choice.get("message")) is not None and not self.blocks:
                return self._read_at_once(payload)
            self._read_choice(_without_halves(choice, "delta") if self.halves else choice, delta or {})
        return None

    def _open(self, payload: JsonObject) -> None:
        for key, value in payload.items():
            # Azure's first chunk has no id and no model.
            if key not in ENVELOPE and value is not None and not self._envelope.get(key):
                self._envelope[key] = value
        if payload["choices"] and not self.opened:
            envelope = self._envelope
            model = string_or_none(envelope.get("model"))
            self._calls_told.model = model
            # The dict of unknown fields is shared: it is filled until the reply ends.
            native = Native(self._dialect.name, {**envelope, "choices": [{"message": self._beside}]}, intact=False)
            self.open(string_or_none(envelope.get("id")), model, integer_or_none(envelope.get("created")), native)

    def _read_beside(self, payload: JsonObject) -> None:
        """A payload without choices: an error, or nothing of interest."""
        flat = payload.get("object") == "error" or isinstance(payload.get("detail"), list)
        if flat or payload.get("error"):
            self.failed = parse_error(0, payload)

    def _read_at_once(self, payload: JsonObject) -> None:
        body = cast("JsonObject", plain(payload)) if self.halves else payload
        self.events = [event for event in self.events if not isinstance(event, Opened)]
        self._at_once = self.tell_at_once(parse_reply(body, dialect=self._dialect))

    def _read_choice(self, choice: JsonObject, delta: JsonObject) -> None:
        if choice.get("finish_reason") is not None:
            self._reason = choice["finish_reason"]
        if choice.get("error"):
            self.failed = parse_error(0, choice)
        # KIM-07
        if choice.get("usage") is not None:
            self._usage = choice["usage"]
        for key in _REASONING_KEYS:
            text = delta.get(key)
            if isinstance(text, str) and (text or self._dialect.reasoning_key == key):
                self._say("thinking", text)
                self._message[key] = None
                break
        content = delta.get("content")
        if isinstance(content, str) and content:
            self._read_words(content, choice.get("logprobs"), alone=len(delta) == 1)
        elif isinstance(content, list):
            self._read_parts(cast("list[object]", content))
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._say("refusal", refusal)
        if entries := delta.get("tool_calls"):
            self._end_run()
            self._calls_told.take(entries)
        if (old := object_or_none(delta.get("function_call"))) is not None:
            self._end_run()
            self._calls_told.take_legacy(old)
        if not SPOKEN.issuperset(delta):
            self._keep(delta)

    def _read_words(self, text: str, logprobs: object, *, alone: bool) -> None:
        self._say("text", text, self._kept_logprobs(logprobs) if logprobs else None)
        if alone and not logprobs and self._run is not None:
            self.expect("content", text, partial(self.text, self._run[1]))

    def _read_parts(self, parts: list[object]) -> None:
        """Content in parts: text, and reasoning where the vendor has it there."""
        self._in_parts = True
        for value in parts:
            part = object_or_none(value) or {}
            if isinstance(text := part.get("text"), str):
                self._say("text", text)
            elif (thought := part.get("thinking")) is not None:
                inner = cast("list[object]", thought if isinstance(thought, list) else [thought])
                for piece in inner:
                    piece_text = piece if isinstance(piece, str) else (object_or_none(piece) or {}).get("text")
                    self._say("thinking", piece_text if isinstance(piece_text, str) else "")

    def _keep(self, delta: JsonObject) -> None:
        """Collect unknown fields: lists are extended, objects merged, other values replaced."""
        beside = {key: value for key, value in delta.items() if key not in SPOKEN and value is not None}
        for key, value in cast("JsonObject", plain(beside) if self.halves else beside).items():
            kept = self._beside.get(key)
            if isinstance(kept, list) and isinstance(value, list):
                cast("list[Any]", kept).extend(cast("list[Any]", value))
            elif isinstance(kept, dict) and isinstance(value, dict):
                self._beside[key] = _grown(cast("JsonObject", kept), cast("JsonObject", value))
            else:
                self._beside[key] = [*cast("list[Any]", value)] if isinstance(value, list) else value

    def _kept_logprobs(self, logprobs: object) -> JsonObject | None:
        given = object_or_none(logprobs) or {}
        for key, value in given.items():
            if isinstance(value, list):
                self._logprobs.setdefault(key, []).extend(cast("list[Any]", value))
        return {"logprobs": given} if given else None

    # -------------------------------------------------------------------------------------------------------- emitting

    def _say(self, kind: str, text: str, beside: JsonObject | None = None) -> None:
        run = self._run
        if run is None or run[0] != kind:
            self._end_run()
            block = Thinking(origin=self._origin()) if kind == "thinking" else Text("", refusal=kind == "refusal")
            run = self._run = (kind, self.start(block))
        if kind == "thinking":
            self.thinking(run[1], text)
        else:
            self.text(run[1], text, beside)

    def _origin(self) -> Origin:
        return Origin(self.provider, string_or_none(self._envelope.get("model")), identity="absent")

    def _end_run(self) -> None:
        if self._run is None:
            return
        kind, index = self._run
        self._run = None
        text = self.ended(index)
        self._content.append((kind, text))
        block = Thinking(text, origin=self._origin()) if kind == "thinking" else Text(text, refusal=kind == "refusal")
        self.end(index, block)

    def finish(self) -> Reply:
        if self._at_once is not None:
            return self._at_once
        self._end_run()
        ended = self._reason is not None or self.done
        if self.failed is None and self._reason == _BROKE_OFF:
            self.failed = ApiError(0, f"the provider ended the reply with `{_BROKE_OFF}`", kind=_BROKE_OFF)
        if not ended and self.failed is None:
            self.failed = ENDED_EARLY
        finished = ended and self.failed is None
        calls = self._calls_told.end(finished=finished, full=self._reason == "length")
        reply = with_calls_told(parse_reply(self._body(), dialect=self._dialect), calls)
        return self.concluded(msgspec.structs.replace(reply, others=len(self._others)))

    def _body(self) -> JsonObject:
        """The equivalent whole completion."""
        message = {**self._message, **self._beside}
        texts: dict[str, str] = {}
        for kind in {kind for kind, _ in self._content}:
            texts[kind] = "".join(text for run, text in self._content if run == kind)
        for key in _REASONING_KEYS:
            if key in message:
                message[key] = texts.get("thinking", "")
        if self._in_parts:
            message["content"] = [part(kind, text) for kind, text in self._content if kind != "refusal"]
        else:
            message["content"] = texts.get("text")
        if "refusal" in texts:
            message["refusal"] = texts["refusal"]
        entries = list(self._calls_told.entries())
        if calls := [entry for legacy, entry in entries if not legacy]:
            message["tool_calls"] = calls
        for _, old in (pair for pair in entries if pair[0]):
            message["function_call"] = old
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": self._reason}
        if self._logprobs:
            choice["logprobs"] = self._logprobs
        body: JsonObject = {**self._envelope, "object": "chat.completion", "choices": [choice]}
        return body if self._usage is None else {**body, "usage": self._usage}


def _grown(kept: JsonObject, more: JsonObject) -> JsonObject:
    """Merge a partial object (audio): data and transcript are appended, the id stays."""
    grown = {**kept}
    for key, value in more.items():
        before = grown.get(key)
        if key in _HEARD and isinstance(before, str) and isinstance(value, str):
            grown[key] = before + value
        elif value is not None and not (key == "id" and before):
            grown[key] = value
    return grown


def _without_halves(value: JsonObject, apart: str) -> JsonObject:
    """Replace lone surrogates except under `except_key`, whose texts may be joined with their other half."""
    made = cast("JsonObject", plain({key: member for key, member in value.items() if key != apart}))
    return {**made, apart: value[apart]} if apart in value else made


def part(kind: str, text: str) -> JsonObject:
    if kind == "thinking":
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    return {"type": "text", "text": text}
