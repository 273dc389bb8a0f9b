"""The interface of an emulated provider: routes, keys, ids, signatures and response formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from segue.canonical.blocks import Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Request, Usage
from segue.conformance.rule import Violation
from segue.emulator.errors import standard_errors
from segue.emulator.http_messages import HttpRequest, HttpResponse, RecordedRequest
from segue.emulator.prompt_cache import CacheRules, PromptPart
from segue.emulator.providers import cache_rules
from segue.emulator.signatures import IdGenerator, PromptPrefix, SignaturePayload, Signer
from segue.models import Model, parse_model
from segue.wire.base import ApiError
from segue.wire.json_values import list_or_empty, object_or_none, text_or_none
from segue.wire.registry import WIRES
from segue.wire.stream.events import ReplyStart

Body = Mapping[str, Any]
Operation = Literal["reply", "stream", "count", "compact", "models", "retrieve"]


@dataclass(frozen=True)
class Route:
    """A path; its regex group `model` is the model."""

    pattern: re.Pattern[str]
    operation: Operation
    method: str = "POST"


def post_route(pattern: str, operation: Operation = "reply") -> Route:
    return Route(re.compile(pattern), operation)


@dataclass(frozen=True)
class RequestContext:
    """One accepted request: body, model, account, and the ids of the reply."""

    body: Body
    request: Request
    model: str
    account: str
    ids: IdGenerator
    thought_count: int = 0
    """The number of reasoning blocks in the reply."""
    operation: Operation = "reply"

    @property
    def identified_model(self) -> Model:
        return parse_model(self.model)


def bearer_token(http_request: HttpRequest) -> str | None:
    scheme, _, key = http_request.headers.get("authorization", "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


def make_violation(rule: str, path: str, message: str) -> Violation:
    return Violation(rule, path, message, "reject")


class StreamFraming(Protocol):
    """Converts a stream from the default framing to another one."""

    media_type: str

    def feed(self, data: bytes) -> bytes: ...
    def close(self) -> bytes: ...


class Compaction(Protocol):
    """A compaction that a provider makes for a request: an item or block of the reply, in front of the others."""

    @property
    def ends_reply(self) -> bool:
        """Whether nothing is generated after it."""
        ...

    def bill_reply(self, prompt_usage: Usage) -> Usage:
        """Return the tokens of the prompt that the rest of the reply was generated from."""
        ...

    def add_to(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return the body of the reply with the compaction and its usage."""
        ...

    def framing(self, reply: dict[str, Any]) -> StreamFraming:
        """Return what adds the compaction to the stream of this reply."""
        ...


class Provider:
    """The defaults of most providers: a bearer token, server-sent events, no signatures."""

    api: ClassVar[str]
    routes: ClassVar[tuple[Route, ...]]
    json_media_type: ClassVar[str] = "application/json"
    stream_media_type: ClassVar[str] = "text/event-stream; charset=utf-8"
    model_key: ClassVar[str] = "model"
    required_fields: ClassVar[tuple[str, ...]] = ("model", "messages")
    """Fields that every body must have."""
    always_reasons: ClassVar[bool] = False
    """A reasoning model reasons in every reply: clients must send reasoning back, so they must receive some."""
    signature_format: ClassVar[tuple[str, Literal["standard", "url"]]] = ("", "standard")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.assumes_stored = False
        self.wire = WIRES[self.api]
        prefix, alphabet = self.signature_format
        self.signer = Signer(seed, self.api, prefix=prefix, alphabet=alphabet)

    @property
    def base_path(self) -> str:
        """The path of the base URL for this provider's own client."""
        return self.wire.base_path

    # ------------------------------------------------------------------------------------------------------- requests

    def find_route(self, http_request: HttpRequest) -> tuple[Route, str | None] | None:
        """Return the route of a request and the model in its path; `None` if there is none."""
        for route in self.routes:
            match = route.pattern.fullmatch(http_request.path) if route.method == http_request.method else None
            if match is not None:
                return route, match.groupdict().get("model")
        return None

    def has_path(self, path: str) -> bool:
        """Return whether the path is known for any method."""
        return any(route.pattern.fullmatch(path) for route in self.routes)

    def read_key(self, http_request: HttpRequest) -> str | None:
        """Return the key of the request, which is also the account."""
        header = self.wire.key_header
        header_key = http_request.headers.get(header) if header != "authorization" else None
        return header_key or bearer_token(http_request)

    def has_valid_key(self, http_request: HttpRequest, keys: frozenset[str]) -> bool:
        """Return whether the key is one of these."""
        return self.read_key(http_request) in keys

    def check_required(self, http_request: HttpRequest, body: Body) -> ApiError | None:
        """Return the error for a missing required header or field."""
        return next(
            (
                standard_errors(self.api).missing_field(name, http_request, body)
                for name in self.required_fields
                if body.get(name) is None
            ),
            None,
        )

    def body_to_count(self, body: Body) -> Body:
        """Return the request to count tokens of, from the body of a count request."""
        return body

    def is_streaming(self, operation: Operation, body: Body) -> bool:
        return operation == "stream" or (operation != "compact" and body.get("stream") is True)

    def restore_history(self, body: Body, account: str) -> Body | Violation:
        """Return the body with the history that the provider stores."""
        return body

    def conversation_entries(self, body: Body) -> list[Any]:
        """Return the entries of the conversation."""
        return list_or_empty(body.get(self.wire.conversation_key))

    def billed_entries(self, body: Body) -> list[Any]:
        """Return the entries of the conversation that count as tokens of the prompt."""
        return self.conversation_entries(body)

    def readable_body(self, body: Body, account: str) -> Body:
        """Return the body as the model reads it: with what its compactions stand for."""
        return body

    def check_state(self, body: Body, http_request: HttpRequest, account: str) -> Iterator[Violation]:
        """Yield violations that only the provider can find: signatures and stored state."""
        return iter(())

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        """Return what the provider caches of a prompt."""
        return cache_rules.openai_rules(body, model)

    # --------------------------------------------------------------------------------------------------------- replies

    def compact(self, context: RequestContext, prompt_usage: Usage) -> Compaction | None:
        """Return the compaction that the request asks for, or whose threshold its prompt reaches."""
        return None

    def reply_id(self, ids: IdGenerator) -> str:
        return f"chatcmpl-{ids.make('reply', 0, 29)}"

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        """Return the id that results refer to, and the item id if it differs."""
        return f"call_{context.ids.make('call', index, 24)}", None

    def call_origin(self, context: RequestContext, index: int, tool: str, scripted_id: str | None) -> Origin:
        raw_id, item_id = self.call_ids(context, index, tool)
        raw_id = scripted_id or raw_id
        return Origin(self.wire.provider, context.model, raw_id, item_id, "natural" if raw_id else "absent")

    def has_reasoning(self, context: RequestContext) -> bool:
        """Return whether the reply contains reasoning, as text or encrypted."""
        reasoning = context.request.options.reasoning
        if reasoning is not None and (reasoning.enabled is False or reasoning.effort == "none"):
            return False
        is_requested = reasoning is not None and bool(
            reasoning.enabled or reasoning.effort or reasoning.budget or reasoning.adaptive
        )
        return is_requested or context.identified_model.reasons_by_default

    def make_thinking(self, context: RequestContext, index: int, text: str) -> Thinking:
        return Thinking(text, origin=Origin(self.wire.provider, context.model, identity="absent"))

    def make_call_signature(self, context: RequestContext, index: int) -> Thinking | None:
        """Return the signature block before a call, if the API has one."""
        return None

    def sign(self, context: RequestContext, index: int, text_digest: str, prefix: PromptPrefix | None = None) -> str:
        signed_payload = SignaturePayload(
            context.model, self.reply_id(context.ids), index, context.thought_count, text_digest, prefix
        )
        return self.signer.sign(signed_payload, context.account)

    def complete_reply(self, context: RequestContext, reply: Reply) -> Reply:
        """Add the fields of this API to the reply and its blocks."""
        return reply

    def make_reply_start(self, reply: Reply) -> ReplyStart:
        """Return the first event of a stream."""
        return ReplyStart(reply.id, reply.model, reply.created, reply.native)

    def initial_block(self, block: Text | Thinking | ToolCall) -> Text | Thinking | ToolCall:
        """Return a block as it is at the start of a stream."""
        return block

    def complete_usage(self, usage: dict[str, Any], written: Mapping[float, int]) -> dict[str, Any]:
        """Return a usage with the fields for its cached tokens that only this service has."""
        return usage

    def record_reply(self, context: RequestContext, reply: dict[str, Any]) -> None:
        """Store a sent reply."""

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        """Return the headers of every response; `kind` is the error type, if any."""
        return {"x-request-id": f"req_{ids.make('request', 0, 32, '0123456789abcdef')}"}

    def error_type(self, error_body: Mapping[str, Any]) -> str | None:
        """Return the error type in an error body."""
        inner = object_or_none(error_body.get("error")) or error_body
        return text_or_none(inner.get("type") or inner.get("status") or inner.get("code"))

    def complete_error(self, error_body: dict[str, Any], http_request: HttpRequest, ids: IdGenerator) -> Any:
        """Add the fields of this request or service to an error body."""
        return error_body

    def complete_response(self, response: HttpResponse, http_request: HttpRequest, ids: IdGenerator) -> None:
        """Complete an error, and add the content type and the headers that this service sends."""
        kind = None
        if response.error_body is not None:
            kind = self.error_type(response.error_body)
            response.content = msgspec.json.encode(self.complete_error(response.error_body, http_request, ids))
        if response.content_type == "application/json":
            response.content_type = self.json_media_type
        response.headers = (*self.headers(ids, kind).items(), *response.headers)

    def make_error_response(self, error: ApiError, http_request: HttpRequest, record: RecordedRequest) -> HttpResponse:
        """Return an error in the form of this API, and add it to the record."""
        error_body = self.wire.render_error(error)
        record.status, record.refused, record.kind = error.status, error.message, self.error_type(error_body)
        response = HttpResponse(error.status, b"", error_body=error_body)
        self.complete_response(response, http_request, IdGenerator(self.api, record.number))
        return response

    def stream_framing(self, http_request: HttpRequest) -> StreamFraming | None:
        """Return the framing that this request needs, if it is not the default."""
        return None

    def encode_reply_start(self, data: bytes, reply: Reply) -> bytes:
        """Return the start of a stream as this service sends it."""
        return data

    def encode_stream_error(self, data: bytes) -> bytes:
        """Return the end of a failed stream, whose last frame is the error, as this service sends it."""
        return data

    def token_count_body(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}

    def stored_response(self, http_request: HttpRequest, account: str) -> ApiError | dict[str, Any]:
        """Return the response that the provider stores for this account under the path."""
        raise NotImplementedError

    def models_body(self) -> dict[str, Any]:
        row = {"id": self.wire.default_model, "object": "model", "created": 0, "owned_by": self.wire.provider}
        return {"object": "list", "data": [row]}


def count_calls(request: Request) -> int:
    """Return the number of tool calls in the conversation."""
    return sum(isinstance(block, ToolCall) for message in request.messages for block in message.blocks)
