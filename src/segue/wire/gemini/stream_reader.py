"""Stream parser: `GenerateContentResponse` chunks to events, and to the equivalent whole response."""

from __future__ import annotations

from typing import cast

import msgspec

from segue.canonical.blocks import Native, Origin, Text, Thinking, ToolCall
from segue.canonical.jsontext import plain, read_object, write_text
from segue.canonical.request import Reply
from segue.wire.gemini.fields import (
    JsonObject,
    both,
    int_at,
    items_of,
    look,
    object_at,
    object_of,
    object_or_none,
    spelled,
    text_at,
)
from segue.wire.gemini.hosted import origin_of
from segue.wire.gemini.items import API, parse_parts
from segue.wire.gemini.reply import (
    parse_error,
    parse_reply,
    seconds_of,
)
from segue.wire.gemini.stream_parts import GrowingCall, Run
from segue.wire.stream_reader import ENDED_EARLY, Reader, with_calls_told

__all__ = ["NOT_AROUND", "GeminiReader"]

_COUNTS = both("usageMetadata")
_GROWS = frozenset({"text", "thought"})
NOT_AROUND = frozenset({*both("candidates", "usageMetadata"), "error"})
_PARTIAL = both("args", "partialArgs", "willContinue")


class GeminiReader(Reader):
    """Chunks to events. A text continues where a chunk begins with the kind of text that the last chunk ended with;
    signed parts and parts with other fields are parts of their own (GEM-21, GEM-25)."""

    def __init__(self, turn_key: str) -> None:
        super().__init__(API, turn_key)
        self._around: JsonObject = {}
        self._candidate: JsonObject | None = None
        self._content: JsonObject | None = None
        self._parts: list[JsonObject] = []
        self._told: dict[int, list[ToolCall]] = {}
        self._run: Run | None = None
        self._call: GrowingCall | None = None
        self._padding: JsonObject | None = None
        self._named: dict[str, JsonObject] = {}
        self._repeats = False
        self._others: set[int] = set()

    def read(self, payload: JsonObject, name: str | None) -> None:
        self._catch_up()
        if payload.get("error"):
            self.failed = self.failed or parse_error(0, plain(payload) if self.halves else payload)
            return
        if "candidates" not in payload and (inner := object_or_none(payload.get("response"))) is not None:
            payload = inner
        for key, value in payload.items():
            if key != "candidates" and value is not None:
                self._around[key] = plain(value) if self.halves else value
        candidates = payload.get("candidates")
        if self._run is not None and (text := _more_words(candidates, self._run.thought)):
            self._run.say(text)
            if self._run.settled:
                self.expect("text", text, self._run.more)
            return
        candidates = (
            cast("list[object]", candidates) if isinstance(candidates, list) else items_of(candidates, "candidates")
        )
        if not self.opened and (candidates or object_at(payload, "promptFeedback")):
            self._open()
        for place, value in enumerate(candidates):
            candidate = object_or_none(value)
            index = int_at(candidate, "index") if candidate is not None else None
            index = place if index is None else index
            if candidate is not None and index == 0:
                self._read_candidate(candidate)
            elif index > 0:
                self._others.add(index)

    def _catch_up(self) -> None:
        """Take the usage from the last chunk if only its text was read (delta template)."""
        if self.alike is not None and self.alike.last:
            last = read_object(self.alike.last)[0]
            self._around.update({key: value for key, value in last.items() if key in _COUNTS and value is not None})
            self.alike.last = b""

    def _open(self) -> None:
        fields = self._around
        around = {key: value for key, value in fields.items() if key not in NOT_AROUND}
        created = seconds_of(text_at(fields, "createTime"))
        model = text_at(fields, "modelVersion")
        self.open(text_at(fields, "responseId"), model, created, Native(API, around, intact=False))

    def _read_candidate(self, candidate: JsonObject) -> None:
        if self._candidate is None:
            self._candidate = {}
        for key, value in candidate.items():
            if key != "content" and value is not None:
                self._candidate[key] = plain(value) if self.halves else value
        content = object_or_none(candidate.get("content"))
        if content is None:
            return
        if self._content is None:
            self._content = {}
        for key, value in content.items():
            if key != "parts" and value is not None:
                self._content[key] = plain(value) if self.halves else value
        parts = content.get("parts")
        goes_on = True
        for part in cast("list[object]", parts) if isinstance(parts, list) else items_of(parts, "parts"):
            self._read_part(object_of(part, "parts"), goes_on)
            goes_on = False

    def _read_part(self, part: JsonObject, goes_on: bool) -> None:
        text = part.get("text")
        if isinstance(text, str) and _GROWS.issuperset(part):
            self._say(text, part.get("thought") is True, goes_on)
            return
        self._end_run()
        part = plain(part) if self.halves else part
        inner = object_or_none(look(part, "functionCall"))
        if inner is not None and self._read_piece(part, inner):
            return
        if self._is_told(part):
            return
        self._told[len(self._parts)] = [
            emitted
            for block in parse_parts([part], text_at(self._around, "modelVersion"))[0]
            if isinstance(emitted := self.tell_block(block), ToolCall)
        ]
        self._parts.append(part)

    def _is_told(self, part: JsonObject) -> bool:
        """Whether this part was received before: with the same id, or in a cumulative stream."""
        if self._repeats:
            return part in self._parts
        call_id = text_at(object_at(part, "functionCall"), "id")
        if not call_id:
            return False
        known = self._named.setdefault(call_id, part)
        return known is not part and known == part

    # ------------------------------------------------------------------------------------------------------------ text

    def _say(self, text: str, thought: bool, goes_on: bool) -> None:
        run = self._run
        if run is None or run.thought is not thought or not goes_on:
            self._end_run()
            if not text:
                self._padding = _text_part(text, thought)
                return
            if self._repeats and _text_part(text, thought) in self._parts:
                return
            block = Thinking(origin=self._origin(), native=_BEGUN) if thought else Text("", native=_BEGUN)
            run = self._run = Run(self, self.start(block), thought=thought, repeats=False)
        run.say(text)

    def _origin(self) -> Origin:
        return Origin(API, text_at(self._around, "modelVersion"), identity="absent")

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        part = _text_part(run.end(), run.thought)
        self._repeats = self._repeats or run.repeats
        self._parts.append(part)
        native = Native(API, part)
        text = part["text"]
        block = Thinking(text, origin=self._origin(), native=native) if run.thought else Text(text, native=native)
        self.end(run.place, block)

    # --------------------------------------------------------------------------------------------------- partial calls

    def _read_piece(self, part: JsonObject, inner: JsonObject) -> bool:
        """Read a partial call; False if this is a whole call."""
        growing = self._call
        if growing is not None and not growing.goes_on_with(inner):
            self._end_call(ended=False)
            growing = None
        if growing is None:
            if look(inner, "willContinue") is not True and look(inner, "partialArgs") is None:
                return False
            growing = self._call = self._begin_call(part, inner)
        growing.fragment = {**part, **growing.fragment}
        growing.take(inner)
        if look(inner, "willContinue") is not True:
            self._end_call(ended=True)
        return True

    def _begin_call(self, part: JsonObject, inner: JsonObject) -> GrowingCall:
        if signature := text_at(part, "thoughtSignature"):
            self.tell_block(Thinking(signature=signature, origin=self._origin()))
        origin = origin_of(inner, text_at(self._around, "modelVersion"))
        call = self.named(ToolCall(text_at(inner, "name") or "", origin=origin))
        self._parts.append({})
        return GrowingCall(call, self.start(call), len(self._parts) - 1, part)

    def _end_call(self, *, ended: bool) -> None:
        growing, self._call = self._call, None
        if growing is None:
            return
        given = growing.fragment
        inner = {key: value for key, value in object_at(given, "functionCall").items() if key not in _PARTIAL}
        part = {**given, spelled(given, "functionCall"): {**inner, "args": growing.arguments}}
        self._parts[growing.at] = part
        text = write_text(growing.arguments)
        self.input(growing.place, text)
        call = msgspec.structs.replace(growing.call, arguments=growing.arguments, native=Native(API, part))
        if not ended:
            call = msgspec.structs.replace(call, arguments=None, arguments_text=text, broken=True)
        self._told[growing.at] = [call]
        self.end(growing.place, call)

    # ---------------------------------------------------------------------------------------------------------- the end

    def finish(self) -> Reply:
        self._catch_up()
        self._end_run()
        reason = look(self._candidate or {}, "finishReason")
        blocked = self._candidate is None and bool(object_at(self._around, "promptFeedback"))
        if reason is None and not blocked and not self.done and self.failed is None:
            self.failed = ENDED_EARLY
        self._end_call(ended=False)
        emitted = [call for _, calls in sorted(self._told.items()) for call in calls]
        reply = with_calls_told(parse_reply(self._body()), emitted)
        return self.concluded(msgspec.structs.replace(reply, others=len(self._others)))

    def _body(self) -> JsonObject:
        """The equivalent whole response. An empty text part is only kept if it is the only one."""
        if self._candidate is None:
            return {"candidates": [{}], **self._around} if self._others else self._around
        candidate = self._candidate
        parts = self._parts or ([self._padding] if self._padding is not None else [])
        if self._content is not None:
            content = {**self._content, "parts": parts} if parts else self._content
            candidate = {"content": content, **candidate}
        return {"candidates": [candidate], **self._around}


_USUAL = frozenset({"content", "index"})


def _more_words(candidates: object, thought: bool) -> str | None:
    """The text of a chunk that only continues a text of this kind, as most do; else None."""
    candidate = _only(candidates)
    if candidate is None or not _USUAL.issuperset(candidate) or candidate.get("index"):
        return None
    content = object_or_none(candidate.get("content"))
    part = _only(content.get("parts")) if content is not None else None
    if part is None or len(part) != 1 + thought or (thought and part.get("thought") is not True):
        return None
    text = part.get("text")
    return text if isinstance(text, str) else None


def _only(value: object) -> JsonObject | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return object_or_none(items[0]) if len(items) == 1 else None


# Marks a streamed block as same-API before its fragment is known.
_BEGUN = Native(API, {}, intact=False)


def _text_part(text: str, thought: bool) -> JsonObject:
    return {"text": text, "thought": True} if thought else {"text": text}
