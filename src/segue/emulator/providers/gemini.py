"""Google Gemini: `generateContent`, `streamGenerateContent` and `countTokens`, on v1 and v1beta."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Thinking, ToolCall
from segue.canonical.request import Reply
from segue.conformance.rule import Violation
from segue.emulator.http_messages import HttpRequest
from segue.emulator.prompt_cache import CacheRules, PromptPart
from segue.emulator.providers import cache_rules
from segue.emulator.providers.provider import (
    Body,
    Provider,
    RequestContext,
    Route,
    StreamFraming,
    bearer_token,
    make_violation,
    post_route,
)
from segue.emulator.signatures import FOREIGN_SIGNATURE, LOWER, IdGenerator
from segue.models import Model
from segue.wire.gemini.capabilities import capabilities_of
from segue.wire.json_values import object_list, object_or_none, text_or_none
from segue.wire.stream.framing import FrameDecoder, encode_sse

_MODEL = r"/(?P<version>v1|v1beta|v1alpha)/(?:models|tunedModels)/(?P<model>[^/:]+)"
_PARSER_PREFIXES = ("Invalid JSON payload received. Unknown name", "Invalid value at")
_PLACE = re.compile(r" at '([^']+)'")
# GEM-17
_DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


class Gemini(Provider):
    api = "gemini"
    json_media_type = "application/json; charset=UTF-8"
    required_fields = ("contents",)
    routes = (
        post_route(_MODEL + ":generateContent"),
        post_route(_MODEL + ":streamGenerateContent", "stream"),
        post_route(_MODEL + ":countTokens", "count"),
        Route(re.compile("/(?:v1|v1beta)/models"), "models", "GET"),
    )

    def read_key(self, http_request: HttpRequest) -> str | None:
        return http_request.headers.get("x-goog-api-key") or http_request.query.get("key") or bearer_token(http_request)

    def body_to_count(self, body: Body) -> Body:
        """Return a nested request, else the body with contents."""
        return object_or_none(body.get("generateContentRequest", body.get("generate_content_request"))) or body

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        return cache_rules.gemini_rules(model)

    def check_state(self, body: Body, http_request: HttpRequest, account: str) -> Iterator[Violation]:
        """GEM-18: a signature that is not from this provider is rejected."""
        for number, content in enumerate(object_list(body.get("contents"))):
            if content.get("role") != "model":
                continue
            for place, part in enumerate(object_list(content.get("parts"))):
                signature = text_or_none(part.get("thoughtSignature", part.get("thought_signature")))
                if (
                    signature
                    and signature not in _DUMMIES
                    and self.signer.verify(_to_standard_base64(signature), account) is None
                ):
                    path = f"contents[{number}].parts[{place}]"
                    yield make_violation("GEM-18", path, FOREIGN_SIGNATURE)

    def reply_id(self, ids: IdGenerator) -> str:
        return ids.make("reply", 0, 22)

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return (
            context.ids.make("call", index, 8, LOWER) if capabilities_of(context.identified_model).call_ids else None
        ), None

    def has_reasoning(self, context: RequestContext) -> bool:
        config = object_or_none(context.body.get("generationConfig", context.body.get("generation_config"))) or {}
        thinking = object_or_none(config.get("thinkingConfig", config.get("thinking_config"))) or {}
        return bool(thinking.get("includeThoughts", thinking.get("include_thoughts")))

    def make_call_signature(self, context: RequestContext, index: int) -> Thinking | None:
        """GEM-15: the first call of a step has the signature, the others none."""
        if index or not capabilities_of(context.identified_model).signed_calls:
            return None
        origin = Origin(self.wire.provider, context.model, identity="absent")
        return Thinking(signature=self.sign(context, index, ""), origin=origin)

    def complete_reply(self, context: RequestContext, reply: Reply) -> Reply:
        """GEM-11: a call without an id is sent without one."""
        return msgspec.structs.replace(reply, blocks=tuple(map(_without_id, reply.blocks)))

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {"server-timing": "gfet4t7; dur=1"}

    def complete_error(self, error_body: dict[str, Any], http_request: HttpRequest, ids: IdGenerator) -> Any:
        """If the stream is a JSON list, an error is its only entry."""
        error = object_or_none(error_body.get("error")) or {}
        text = str(error.get("message"))
        if text.startswith(_PARSER_PREFIXES):
            violations = [_field_violation(line) for line in text.splitlines()]
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
        return [error_body] if _is_stream_path(http_request) and self.stream_framing(http_request) else error_body

    def stream_framing(self, http_request: HttpRequest) -> StreamFraming | None:
        """Without `alt=sse` a stream is one JSON list."""
        return None if http_request.query.get("alt") == "sse" else _JsonList()

    def encode_stream_error(self, data: bytes) -> bytes:
        """Encode an error as the service does: JSON alone, on several lines and without `data:`."""
        frames = FrameDecoder()
        payloads = [payload for _, payload in (*frames.feed(data), *frames.close())]
        events = b"".join(map(encode_sse, payloads[:-1]))
        return events + msgspec.json.format(payloads[-1], indent=2) + b"\n"

    def token_count_body(self, tokens: int) -> dict[str, Any]:
        return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}

    def models_body(self) -> dict[str, Any]:
        name = self.wire.default_model
        methods = ["generateContent", "countTokens"]
        return {"models": [{"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}]}


def _without_id(block: Block) -> Block:
    if not isinstance(block, ToolCall) or block.raw_id is not None:
        return block
    native = Native(Gemini.api, {"functionCall": {"name": block.name}}, intact=False)
    return msgspec.structs.replace(block, native=native)


def _field_violation(line: str) -> dict[str, str]:
    """Return a line of the parser as an entry of the error details, with the field if the line contains one."""
    place = _PLACE.search(line)
    return {**({"field": place[1]} if place else {}), "description": line}


def _is_stream_path(http_request: HttpRequest) -> bool:
    return http_request.path.endswith(":streamGenerateContent")


def _to_standard_base64(text: str) -> str:
    """Convert to padded standard base64. The API accepts both alphabets; Google's client sends the URL-safe one."""
    bare = text.replace("-", "+").replace("_", "/").rstrip("=")
    return bare + "=" * (-len(bare) % 4)


class _JsonList:
    media_type = "application/json; charset=UTF-8"

    def __init__(self) -> None:
        self._frames = FrameDecoder()
        self._started = False

    def feed(self, data: bytes) -> bytes:
        output = b""
        for _, payload in self._frames.feed(data):
            output += (b"," if self._started else b"[") + payload + b"\n"
            self._started = True
        return output

    def close(self) -> bytes:
        return b"]" if self._started else b"[]"
