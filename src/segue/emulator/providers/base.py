"""The interface of an emulated provider: routes, keys, ids, signatures and response formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from segue.canonical.blocks import Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Request
from segue.conformance.rule import Violation
from segue.emulator.exchange import Asked
from segue.emulator.json import list_or_empty, object_or_none, text_or_none
from segue.emulator.names import Names
from segue.emulator.seals import Prefix, Seal, Seals
from segue.models import Model, identify
from segue.wire.base import ApiError
from segue.wire.events import Opened
from segue.wire.registry import WIRES

__all__ = ["Body", "Does", "Provider", "Reframed", "Route", "Scene", "bearer", "calls_before", "post", "reject"]

Body = Mapping[str, Any]
Does = Literal["answer", "stream", "count", "models", "held"]


@dataclass(frozen=True)
class Route:
    """A path; its regex group `model` is the model."""

    pattern: re.Pattern[str]
    does: Does
    method: str = "POST"


def post(pattern: str, does: Does = "answer") -> Route:
    return Route(re.compile(pattern), does)


@dataclass(frozen=True)
class Scene:
    """One accepted request: body, model, account, and the ids of the reply."""

    body: Body
    request: Request
    model: str
    account: str
    names: Names
    thoughts: int = 0
    """The number of reasoning blocks in the reply."""

    @property
    def known(self) -> Model:
        return identify(self.model)


def bearer(http_request: Asked) -> str | None:
    scheme, _, key = http_request.headers.get("authorization", "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


def reject(rule: str, path: str, message: str) -> Violation:
    return Violation(rule, path, message, "reject")


class Reframed(Protocol):
    """Reframes a stream: fed with the default framing."""

    kind: str

    def feed(self, data: bytes) -> bytes: ...
    def close(self) -> bytes: ...


class Provider:
    """The defaults of most providers: a bearer token, server-sent events, no signatures."""

    api: ClassVar[str]
    routes: ClassVar[tuple[Route, ...]]
    base: ClassVar[str] = "/v1"
    """The path of the base URL for this provider's own client."""
    variable: ClassVar[str]
    """The environment variable that usually holds the key."""
    json_media: ClassVar[str] = "application/json"
    media: ClassVar[str] = "text/event-stream; charset=utf-8"
    model_key: ClassVar[str] = "model"
    needs: ClassVar[tuple[str, ...]] = ("model", "messages")
    """Fields that every body must have."""
    always_thinks: ClassVar[bool] = False
    """A reasoning model reasons in every reply: clients must send reasoning back, so they must receive some."""
    sealing: ClassVar[tuple[str, Literal["standard", "url"]]] = ("", "standard")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.wire = WIRES[self.api]
        head, alphabet = self.sealing
        self.seals = Seals(seed, self.api, head=head, alphabet=alphabet)

    # ------------------------------------------------------------------------------------------------------ coming in

    def route(self, http_request: Asked) -> tuple[Route, str | None] | None:
        """Returns the route of a request and the model in its path; `None` if there is none."""
        for route in self.routes:
            found = route.pattern.fullmatch(http_request.path) if route.method == http_request.method else None
            if found is not None:
                return route, found.groupdict().get("model")
        return None

    def listens(self, path: str) -> bool:
        """True if the path is known for any method."""
        return any(route.pattern.fullmatch(path) for route in self.routes)

    def key(self, http_request: Asked) -> str | None:
        """Returns the key of the request, which is also the account."""
        return bearer(http_request)

    def holds(self, http_request: Asked, keys: frozenset[str]) -> bool:
        """True if the key is one of these."""
        return self.key(http_request) in keys

    def missing(self, http_request: Asked, body: Body) -> ApiError | None:
        """Returns the error for a missing required header or field."""
        return next((self.lacks(name, http_request, body) for name in self.needs if body.get(name) is None), None)

    def lacks(self, name: str, http_request: Asked, body: Body) -> ApiError:
        message = f"Missing required parameter: '{name}'."
        return ApiError(400, message, code="missing_required_parameter", param=name)

    def to_count(self, body: Body) -> Body:
        """Returns the request whose tokens are counted."""
        return body

    def streams(self, does: Does, body: Body) -> bool:
        return does == "stream" or body.get("stream") is True

    def restored(self, body: Body, account: str) -> Body | Violation:
        """Returns the body with the history that the provider stores."""
        return body

    def entries(self, body: Body) -> list[Any]:
        """Returns the entries of the conversation."""
        return list_or_empty(body.get(self.wire.root))

    def breaches(self, body: Body, http_request: Asked, account: str) -> Iterator[Violation]:
        """Yields violations that only the creator of signatures and the holder of state can find."""
        return iter(())

    # ------------------------------------------------------------------------------------------------------- going out

    def reply_id(self, ids: Names) -> str:
        return f"chatcmpl-{ids.of('reply', 0, 29)}"

    def call_ids(self, context: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        """Returns the id that results refer to, and the item id if it differs."""
        return f"call_{context.names.of('call', index, 24)}", None

    def call(self, context: Scene, index: int, tool: str, forced: str | None) -> Origin:
        raw_id, item_id = self.call_ids(context, index, tool)
        raw_id = forced or raw_id
        return Origin(self.wire.provider, context.model, raw_id, item_id, "natural" if raw_id else "absent")

    def thinks(self, context: Scene) -> bool:
        """True if the reply contains reasoning, as text or encrypted."""
        reasoning = context.request.options.reasoning
        if reasoning is not None and (reasoning.enabled is False or reasoning.effort == "none"):
            return False
        is_requested = reasoning is not None and bool(
            reasoning.enabled or reasoning.effort or reasoning.budget or reasoning.adaptive
        )
        return is_requested or context.known.thinking

    def thought(self, context: Scene, index: int, text: str) -> Thinking:
        return Thinking(text, origin=Origin(self.wire.provider, context.model, identity="absent"))

    def signs(self, context: Scene, index: int) -> Thinking | None:
        """Returns the signature block before a call, if the API has one."""
        return None

    def seal(self, context: Scene, index: int, words: str, prefix: Prefix | None = None) -> str:
        seal = Seal(context.model, self.reply_id(context.names), index, context.thoughts, words, prefix)
        return self.seals.made(seal, context.account)

    def dressed(self, context: Scene, reply: Reply) -> Reply:
        """Adds the fields of this API to the reply and its blocks."""
        return reply

    def opened(self, reply: Reply) -> Opened:
        """Returns the first event of a stream."""
        return Opened(reply.id, reply.model, reply.created, reply.native)

    def begun(self, block: Text | Thinking | ToolCall) -> Text | Thinking | ToolCall:
        """Returns a block as it is at the start of a stream."""
        return block

    def spoken(self, context: Scene, reply: dict[str, Any]) -> None:
        """Stores a sent reply."""

    def headers(self, ids: Names, kind: str | None) -> dict[str, str]:
        """Returns the headers of every response; `kind` is the error type, if any."""
        return {"x-request-id": f"req_{ids.of('request', 0, 32, '0123456789abcdef')}"}

    def error_kind(self, error_body: Mapping[str, Any]) -> str | None:
        """Returns the error type in an error body."""
        inner = object_or_none(error_body.get("error")) or error_body
        return text_or_none(inner.get("type") or inner.get("status") or inner.get("code"))

    def refusal(self, error_body: dict[str, Any], http_request: Asked, ids: Names) -> Any:
        """Adds the fields of this request or service to an error body."""
        return error_body

    def reframed(self, http_request: Asked) -> Reframed | None:
        """Returns the framing that this request needs, if it is not the default."""
        return None

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}

    def held(self, http_request: Asked, account: str) -> ApiError | dict[str, Any]:
        """Returns what the provider stores for this account under the path."""
        raise NotImplementedError

    def models(self) -> dict[str, Any]:
        row = {"id": self.wire.default_model, "object": "model", "created": 0, "owned_by": self.wire.provider}
        return {"object": "list", "data": [row]}


def calls_before(request: Request) -> int:
    """Returns the number of tool calls in the conversation."""
    return sum(isinstance(block, ToolCall) for message in request.messages for block in message.blocks)
