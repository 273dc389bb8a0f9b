"""Anthropic Messages, with threads and the counting of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from segue.canonical.blocks import Origin, Thinking
from segue.conformance.rule import Violation
from segue.emulator.exchange import Asked
from segue.emulator.json import object_or_none, objects, text_or_none
from segue.emulator.names import BASE58, Names
from segue.emulator.providers import claude
from segue.emulator.providers.base import Body, Provider, Route, Scene, bearer, post, reject
from segue.emulator.seals import digest
from segue.emulator.wording.anthropic import THREAD_ALREADY_CONTINUED, THREAD_FIELDS, THREAD_NOT_FOUND
from segue.models import identify
from segue.wire.base import ApiError

__all__ = ["Anthropic"]

_BETA = "thinking-binding-controls-2026-08-01"


# What is said when a thread is made, and not again.
_HELD = ("system", "tools")


class _Thread(Struct):
    fields: dict[str, Any]
    messages: list[Any]
    continued: bool = False


class Anthropic(Provider):
    api = "anthropic"
    base = ""
    variable = "ANTHROPIC_API_KEY"
    needs = ("model", "max_tokens", "messages")
    routes = (
        post("/v1/messages"),
        post("/v1/messages/count_tokens", "count"),
        Route(re.compile("/v1/models"), "models", "GET"),
    )

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._threads: dict[tuple[str, str], _Thread] = {}

    def key(self, asked: Asked) -> str | None:
        return asked.headers.get("x-api-key") or bearer(asked)

    def missing(self, asked: Asked, body: Body) -> ApiError | None:
        if not asked.headers.get("anthropic-version"):
            return ApiError(400, "anthropic-version: header is required")
        counting = asked.path.endswith("count_tokens")
        return super().missing(asked, {"max_tokens": 0, **body} if counting else body)

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        return ApiError(400, f"{name}: Field required")

    def restored(self, body: Body, account: str) -> Body | Violation:
        """A thread that goes on has its system text, its tools and all earlier messages from before."""
        thread = object_or_none(body.get("thread")) or {}
        if thread.get("type") != "continue":
            return body
        held = self._threads.get((account, str(thread.get("previous_message_id"))))
        if held is None:
            return reject(THREAD_NOT_FOUND, "thread.previous_message_id", str(thread.get("previous_message_id")))
        if held.continued:
            return reject(THREAD_ALREADY_CONTINUED, "thread.previous_message_id", "continued before")
        given = next((name for name in _HELD if name in body), None)
        if given is not None:
            return reject(THREAD_FIELDS, given, "the thread has it")
        return {**body, **held.fields, "messages": [*held.messages, *self.entries(body)]}

    def breaches(self, body: Body, asked: Asked, account: str) -> Iterator[Violation]:
        binding = object_or_none((object_or_none(body.get("thinking")) or {}).get("block_binding")) or {}
        wanted = binding.get("prefix_mismatch_behavior") == "drop_block"
        lenient = wanted and _BETA in asked.headers.get("anthropic-beta", "")
        messages = self.entries(body)
        conversation = claude.Conversation(body.get("system"), body.get("tools"), messages)
        model = identify(text_or_none(body.get("model")))
        yield from claude.misplaced(
            list(_thoughts(messages)), conversation, self.seals, account, model, lenient=lenient
        )

    def reply_id(self, names: Names) -> str:
        return f"msg_01{names.of('reply', 0, 22, BASE58)}"

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"toolu_01{scene.names.of('call', index, 22, BASE58)}", None

    def spoken(self, scene: Scene, reply: dict[str, Any]) -> None:
        thread = object_or_none(scene.body.get("thread"))
        if thread is None:
            return
        before = self._threads.get((scene.account, str(thread.get("previous_message_id"))))
        if before is not None:
            before.continued = True
        messages = [*self.entries(scene.body), {"role": "assistant", "content": reply["content"]}]
        fields = {name: scene.body[name] for name in _HELD if name in scene.body}
        self._threads[scene.account, str(reply["id"])] = _Thread(fields, messages)

    def thinks(self, scene: Scene) -> bool:
        thinking = object_or_none(scene.body.get("thinking")) or {}
        return thinking.get("type") in ("enabled", "adaptive")

    def thought(self, scene: Scene, index: int, text: str) -> Thinking:
        prefix = claude.prefix_of(scene.body.get("system"), scene.body.get("tools"), self.entries(scene.body))
        omitted = (object_or_none(scene.body.get("thinking")) or {}).get("display") == "omitted"
        text = "" if omitted else text
        signature = self.seal(scene, index, digest(text), prefix)
        return Thinking(text, signature, origin=Origin(self.wire.provider, scene.model, identity="absent"))

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"request-id": _request_id(names)}

    def refusal(self, said: dict[str, Any], asked: Asked, names: Names) -> Any:
        return {**said, "request_id": _request_id(names)}

    def models(self) -> dict[str, Any]:
        model = self.wire.default_model
        row = {"type": "model", "id": model, "display_name": model, "created_at": "2026-01-01T00:00:00Z"}
        return {"data": [row], "first_id": model, "last_id": model, "has_more": False}


def _request_id(names: Names) -> str:
    return f"req_01{names.of('request', 0, 22, BASE58)}"


def _thoughts(messages: list[Any]) -> Iterator[claude.Thought]:
    before = 0
    for number, message in enumerate(objects(messages)):
        before += isinstance(message.get("content"), str)
        for place, block in enumerate(objects(message.get("content"))):
            if block.get("type") == "thinking":
                path = f"messages[{number}].content[{place}]"
                words = text_or_none(block.get("thinking")) or ""
                yield claude.Thought(path, words, block.get("signature"), number, before)
            before += 1
