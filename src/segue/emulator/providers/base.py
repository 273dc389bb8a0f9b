"""What an emulated provider does in a way of its own: where it listens, whom it lets in, how it names and seals."""

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
    """A path; a group `model` in it names the model."""

    pattern: re.Pattern[str]
    does: Does
    method: str = "POST"


def post(pattern: str, does: Does = "answer") -> Route:
    return Route(re.compile(pattern), does)


@dataclass(frozen=True)
class Scene:
    """One request that was let in: who asks which model for what, and the names of the reply."""

    body: Body
    request: Request
    model: str
    account: str
    names: Names
    thoughts: int = 0
    """How many thoughts the reply has."""

    @property
    def known(self) -> Model:
        return identify(self.model)


def bearer(asked: Asked) -> str | None:
    scheme, _, key = asked.headers.get("authorization", "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


def reject(rule: str, path: str, message: str) -> Violation:
    return Violation(rule, path, message, "reject")


class Reframed(Protocol):
    """A stream in another framing: pieces of the usual one in."""

    kind: str

    def feed(self, told: bytes) -> bytes: ...
    def close(self) -> bytes: ...


class Provider:
    """The ways that most have in common: a bearer token, server-sent events, no seals."""

    api: ClassVar[str]
    routes: ClassVar[tuple[Route, ...]]
    base: ClassVar[str] = "/v1"
    """What the base URL of this provider's own client ends with."""
    variable: ClassVar[str]
    """The environment variable that the key is usually held in."""
    json_media: ClassVar[str] = "application/json"
    media: ClassVar[str] = "text/event-stream; charset=utf-8"
    model_key: ClassVar[str] = "model"
    needs: ClassVar[tuple[str, ...]] = ("model", "messages")
    """What no body may be without."""
    always_thinks: ClassVar[bool] = False
    """Whether a model that thinks does so in every reply: a client has to hand thoughts back, so it must get some."""
    sealing: ClassVar[tuple[str, Literal["standard", "url"]]] = ("", "standard")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.wire = WIRES[self.api]
        head, alphabet = self.sealing
        self.seals = Seals(seed, self.api, head=head, alphabet=alphabet)

    # ------------------------------------------------------------------------------------------------------ coming in

    def route(self, asked: Asked) -> tuple[Route, str | None] | None:
        """What is asked for, and the model that the path names."""
        for route in self.routes:
            found = route.pattern.fullmatch(asked.path) if route.method == asked.method else None
            if found is not None:
                return route, found.groupdict().get("model")
        return None

    def listens(self, path: str) -> bool:
        """Whether the path is known, for whatever method."""
        return any(route.pattern.fullmatch(path) for route in self.routes)

    def key(self, asked: Asked) -> str | None:
        """The key that came with the request. It also is the account."""
        return bearer(asked)

    def holds(self, asked: Asked, keys: frozenset[str]) -> bool:
        """Whether the key is one of these."""
        return self.key(asked) in keys

    def missing(self, asked: Asked, body: Body) -> ApiError | None:
        """The error for want of what every request has to bring along."""
        return next((self.lacks(name, asked, body) for name in self.needs if body.get(name) is None), None)

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        said = f"Missing required parameter: '{name}'."
        return ApiError(400, said, code="missing_required_parameter", param=name)

    def to_count(self, body: Body) -> Body:
        """The request whose tokens are to be counted."""
        return body

    def streams(self, does: Does, body: Body) -> bool:
        return does == "stream" or body.get("stream") is True

    def restored(self, body: Body, account: str) -> Body | Violation:
        """The body with what the provider holds of the conversation."""
        return body

    def entries(self, body: Body) -> list[Any]:
        """The conversation, entry by entry."""
        return list_or_empty(body.get(self.wire.root))

    def breaches(self, body: Body, asked: Asked, account: str) -> Iterator[Violation]:
        """What only who made the seals, or holds the state, can see."""
        return iter(())

    # ------------------------------------------------------------------------------------------------------- going out

    def reply_id(self, names: Names) -> str:
        return f"chatcmpl-{names.of('reply', 0, 29)}"

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        """The id that results name, and the item's own where that is another."""
        return f"call_{scene.names.of('call', index, 24)}", None

    def call(self, scene: Scene, index: int, tool: str, forced: str | None) -> Origin:
        raw_id, item_id = self.call_ids(scene, index, tool)
        raw_id = forced or raw_id
        return Origin(self.wire.provider, scene.model, raw_id, item_id, "natural" if raw_id else "absent")

    def thinks(self, scene: Scene) -> bool:
        """Whether the model shows, or seals, what it thinks."""
        wanted = scene.request.options.reasoning
        if wanted is not None and (wanted.enabled is False or wanted.effort == "none"):
            return False
        asked = wanted is not None and bool(wanted.enabled or wanted.effort or wanted.budget or wanted.adaptive)
        return asked or scene.known.thinking

    def thought(self, scene: Scene, index: int, text: str) -> Thinking:
        return Thinking(text, origin=Origin(self.wire.provider, scene.model, identity="absent"))

    def signs(self, scene: Scene, index: int) -> Thinking | None:
        """What is put before a call to sign it."""
        return None

    def seal(self, scene: Scene, index: int, words: str, prefix: Prefix | None = None) -> str:
        seal = Seal(scene.model, self.reply_id(scene.names), index, scene.thoughts, words, prefix)
        return self.seals.made(seal, scene.account)

    def dressed(self, scene: Scene, reply: Reply) -> Reply:
        """The reply with what this API says around it and its blocks."""
        return reply

    def opened(self, reply: Reply) -> Opened:
        """How a stream of this reply begins."""
        return Opened(reply.id, reply.model, reply.created, reply.native)

    def begun(self, block: Text | Thinking | ToolCall) -> Text | Thinking | ToolCall:
        """A block as a stream begins it."""
        return block

    def spoken(self, scene: Scene, reply: dict[str, Any]) -> None:
        """Takes note of a reply that was given."""

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        """What goes with every answer; `kind` is the error's, if it is one."""
        return {"x-request-id": f"req_{names.of('request', 0, 32, '0123456789abcdef')}"}

    def error_kind(self, said: Mapping[str, Any]) -> str | None:
        """What the provider calls an error, in the body of one."""
        inner = object_or_none(said.get("error")) or said
        return text_or_none(inner.get("type") or inner.get("status") or inner.get("code"))

    def refusal(self, said: dict[str, Any], asked: Asked, names: Names) -> Any:
        """The body of an error with what is particular to this request, or to the service that sends it."""
        return said

    def reframed(self, asked: Asked) -> Reframed | None:
        """How this request wants its stream framed, where that is not the usual way."""
        return None

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}

    def held(self, asked: Asked, account: str) -> ApiError | dict[str, Any]:
        """What the provider holds for this account under the path."""
        raise NotImplementedError

    def models(self) -> dict[str, Any]:
        row = {"id": self.wire.default_model, "object": "model", "created": 0, "owned_by": self.wire.provider}
        return {"object": "list", "data": [row]}


def calls_before(request: Request) -> int:
    """How many calls the conversation holds."""
    return sum(isinstance(block, ToolCall) for message in request.messages for block in message.blocks)
