"""Batch files of OpenAI, Anthropic and Gemini: a request a line, and in other files the results, in any order.

A request and the result with its id are one row: the conversation with the reply at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Message
from segue.canonical.request import Reply
from segue.corpora import bodies
from segue.corpora.rows import Parsed, Provenance, Row
from segue.corpora.turns import Turns
from segue.errors import InputError, RemoteProtocolError
from segue.sessions.values import object_of, string_of
from segue.wire.registry import WIRES

_PATHS = {"/v1/chat/completions": "openai-chat", "/v1/responses": "openai-responses"}


class BatchForm(Struct, frozen=True):
    """The keys of the lines of a batch: the id, the request, and the result with the path to its reply."""

    name: Literal["openai-batch", "anthropic-batch", "gemini-batch"]
    id: str
    request: str
    result: str
    reply: tuple[str, ...]
    api: str

    def is_request(self, value: Mapping[str, Any]) -> bool:
        return self.id in value and isinstance(value.get(self.request), dict)

    def is_result(self, value: Mapping[str, Any]) -> bool:
        return self.id in value and self.request not in value and (self.result in value or "error" in value)

    def matches(self, value: Mapping[str, Any]) -> bool:
        return self.is_request(value) or self.is_result(value)

    def id_of(self, value: Mapping[str, Any]) -> str:
        return str(value.get(self.id))

    def parse(self, value: Mapping[str, Any], result: Mapping[str, Any] | None) -> Parsed:
        """Parse a request and its result, which may have failed or be missing."""
        api = _PATHS.get(str(value.get("url")), self.api)
        try:
            parsed = bodies.parse(object_of(value[self.request]), api)
        except InputError as error:
            raise error.with_prefix(self.request) from None
        row = msgspec.structs.replace(parsed.rows[0], provenance=Provenance(session=self.id_of(value)))
        if result is None:
            return Parsed((row,), parsed.records)
        found: Any = result
        for key in self.reply:
            found = object_of(found).get(key)
        body = object_of(found)
        if not body:
            reason = f"results that failed: {_failure(result)}"
            return Parsed((row,), parsed.records + 1, {reason: 1})
        try:
            reply = WIRES[api].parse_reply(body)
        except InputError as error:
            raise error.with_prefix(".".join(self.reply)) from None
        except RemoteProtocolError as error:
            raise InputError(str(error), path=".".join(self.reply)) from None
        number = parsed.records + 1
        return Parsed((_add_reply(row, reply, number),), number)

    def render(self, row: Row, turns: Turns, number: str) -> dict[str, Any]:
        """Return a row as a request of a batch. Its id is that of the request that it was, else its number."""
        place = row.provenance
        line: dict[str, Any] = {self.id: place.session if place.format.endswith("-batch") else number}
        if self.name == "openai-batch":
            line |= {"method": "POST", "url": "/v1/chat/completions"}
        return {**line, self.request: bodies.render(row, turns, self.api)}


def _add_reply(row: Row, reply: Reply, number: int) -> Row:
    facts = {"model": reply.model} if reply.model else None
    message = Message("ai", reply.blocks, turn_key="reply", extra=facts)
    request = msgspec.structs.replace(row.request, messages=(*row.request.messages, message))
    return msgspec.structs.replace(row, request=request, records=row.records | {number})


def _failure(result: Mapping[str, Any]) -> str:
    places = [object_of(result.get(key)) for key in ("error", "result", "response")]
    for _ in range(2):
        places += [object_of(place.get("error")) for place in places]
    texts = (string_of(place.get(key)) for key in ("message", "code", "type") for place in places)
    return next(filter(None, texts), "no reply")


BATCHES = (
    BatchForm("openai-batch", "custom_id", "body", "response", ("response", "body"), "openai-chat"),
    BatchForm("anthropic-batch", "custom_id", "params", "result", ("result", "message"), "anthropic"),
    BatchForm("gemini-batch", "key", "request", "response", ("response",), "gemini"),
)
