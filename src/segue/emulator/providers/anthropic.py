"""Anthropic Messages, with threads and token counting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Origin, Thinking
from segue.canonical.request import Reply, Usage
from segue.conformance.rule import Violation
from segue.emulator.errors.anthropic import THREAD_ALREADY_CONTINUED, THREAD_FIELDS, THREAD_NOT_FOUND
from segue.emulator.faults import map_payloads
from segue.emulator.http_messages import HttpRequest
from segue.emulator.prompt_cache import CacheRules, PromptPart
from segue.emulator.providers import cache_rules, claude, claude_compaction
from segue.emulator.providers.provider import (
    Body,
    Compaction,
    Provider,
    RequestContext,
    Route,
    make_violation,
    post_route,
)
from segue.emulator.signatures import BASE58, IdGenerator, digest
from segue.models import Model, parse_model
from segue.wire.anthropic.reply import render_usage
from segue.wire.base import ApiError
from segue.wire.json_values import object_list, object_or_none, text_or_none

_BETA = "thinking-binding-controls-2026-08-01"


# Fields that are sent when a thread is created, and not again.
_THREAD_FIELDS = ("system", "tools")


class _Thread(Struct):
    fields: dict[str, Any]
    messages: list[Any]
    continued: bool = False


class Anthropic(Provider):
    api = "anthropic"
    required_fields = ("model", "max_tokens", "messages")
    routes = (
        post_route("/v1/messages"),
        post_route("/v1/messages/count_tokens", "count"),
        Route(re.compile("/v1/models"), "models", "GET"),
    )

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._threads: dict[tuple[str, str], _Thread] = {}

    def check_required(self, http_request: HttpRequest, body: Body) -> ApiError | None:
        if not http_request.headers.get("anthropic-version"):
            return ApiError(400, "anthropic-version: header is required")
        counting = http_request.path.endswith("count_tokens")
        return super().check_required(http_request, {"max_tokens": 0, **body} if counting else body)

    def restore_history(self, body: Body, account: str) -> Body | Violation:
        """Add the system prompt, tools and messages of a continued thread."""
        thread = object_or_none(body.get("thread")) or {}
        if thread.get("type") != "continue":
            return body
        stored = self._threads.get((account, str(thread.get("previous_message_id"))))
        if stored is None:
            return make_violation(
                THREAD_NOT_FOUND, "thread.previous_message_id", str(thread.get("previous_message_id"))
            )
        if stored.continued:
            return make_violation(THREAD_ALREADY_CONTINUED, "thread.previous_message_id", "already continued")
        repeated_field = next((name for name in _THREAD_FIELDS if name in body), None)
        if repeated_field is not None:
            return make_violation(THREAD_FIELDS, repeated_field, "already part of the thread")
        return {**body, **stored.fields, "messages": [*stored.messages, *self.conversation_entries(body)]}

    def check_state(self, body: Body, http_request: HttpRequest, account: str) -> Iterator[Violation]:
        binding = object_or_none((object_or_none(body.get("thinking")) or {}).get("block_binding")) or {}
        drops_blocks = binding.get("prefix_mismatch_behavior") == "drop_block"
        lenient = drops_blocks and _BETA in http_request.headers.get("anthropic-beta", "")
        messages = self.conversation_entries(body)
        conversation = claude.PromptParts(body.get("system"), body.get("tools"), messages)
        model = parse_model(text_or_none(body.get("model")))
        # Blocks that were made before a compaction are bound to messages that it replaced.
        lenient = lenient or claude_compaction.has_summary(messages)
        yield from claude.check_thinking(
            list(_find_thinking(messages)), conversation, self.signer, account, model, lenient=lenient
        )
        yield from claude_compaction.check_compactions(messages, self.signer, account)

    def billed_entries(self, body: Body) -> list[Any]:
        return claude_compaction.messages_from_newest(self.conversation_entries(body))

    def readable_body(self, body: Body, account: str) -> Body:
        return claude_compaction.readable_body(body, self.conversation_entries(body))

    def compact(self, context: RequestContext, prompt_usage: Usage) -> Compaction | None:
        messages = self.conversation_entries(context.body)
        return claude_compaction.make_compaction(context, self.signer, messages, prompt_usage)

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        return cache_rules.claude_rules(body, model)

    def complete_usage(self, usage: dict[str, Any], written: Mapping[float, int]) -> dict[str, Any]:
        return cache_rules.anthropic_usage(usage, written)

    def encode_reply_start(self, data: bytes, reply: Reply) -> bytes:
        """Send the tokens of the prompt in the first event."""
        usage = render_usage(msgspec.structs.replace(reply.usage or Usage(), output=1, reasoning=0))
        return map_payloads(data, lambda payload: {**payload, "message": {**payload["message"], "usage": usage}})

    def reply_id(self, ids: IdGenerator) -> str:
        return f"msg_01{ids.make('reply', 0, 22, BASE58)}"

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"toolu_01{context.ids.make('call', index, 22, BASE58)}", None

    def record_reply(self, context: RequestContext, reply: dict[str, Any]) -> None:
        thread = object_or_none(context.body.get("thread"))
        if thread is None:
            return
        before = self._threads.get((context.account, str(thread.get("previous_message_id"))))
        if before is not None:
            before.continued = True
        messages = [*self.conversation_entries(context.body), {"role": "assistant", "content": reply["content"]}]
        fields = {name: context.body[name] for name in _THREAD_FIELDS if name in context.body}
        self._threads[context.account, str(reply["id"])] = _Thread(fields, messages)

    def has_reasoning(self, context: RequestContext) -> bool:
        thinking = object_or_none(context.body.get("thinking")) or {}
        return thinking.get("type") in ("enabled", "adaptive")

    def make_thinking(self, context: RequestContext, index: int, text: str) -> Thinking:
        prefix = claude.make_prefix(
            context.body.get("system"), context.body.get("tools"), self.conversation_entries(context.body)
        )
        omitted = (object_or_none(context.body.get("thinking")) or {}).get("display") == "omitted"
        text = "" if omitted else text
        signature = self.sign(context, index, digest(text), prefix)
        return Thinking(text, signature, origin=Origin(self.wire.provider, context.model, identity="absent"))

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {"request-id": _request_id(ids)}

    def complete_error(self, error_body: dict[str, Any], http_request: HttpRequest, ids: IdGenerator) -> Any:
        return {**error_body, "request_id": _request_id(ids)}

    def models_body(self) -> dict[str, Any]:
        model = self.wire.default_model
        row = {"type": "model", "id": model, "display_name": model, "created_at": "2026-01-01T00:00:00Z"}
        return {"data": [row], "first_id": model, "last_id": model, "has_more": False}


def _request_id(ids: IdGenerator) -> str:
    return f"req_01{ids.make('request', 0, 22, BASE58)}"


def _find_thinking(messages: list[Any]) -> Iterator[claude.ThinkingBlock]:
    before = 0
    for number, message in enumerate(object_list(messages)):
        before += isinstance(message.get("content"), str)
        for place, block in enumerate(object_list(message.get("content"))):
            if block.get("type") == "thinking":
                path = f"messages[{number}].content[{place}]"
                text = text_or_none(block.get("thinking")) or ""
                yield claude.ThinkingBlock(path, text, block.get("signature"), number, before)
            before += 1
