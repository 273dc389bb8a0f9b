"""Google Gemini: `generateContent`, `streamGenerateContent` and `countTokens`, on v1 and v1beta."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Thinking, ToolCall
from segue.canonical.request import Reply
from segue.conformance.rule import Violation
from segue.emulator.exchange import Asked
from segue.emulator.json import object_or_none, objects, text_or_none
from segue.emulator.names import LOWER, Names
from segue.emulator.providers.base import Body, Provider, Reframed, Route, Scene, bearer, post, reject
from segue.wire.base import ApiError
from segue.wire.framing import Frames
from segue.wire.gemini.traits import traits_of

__all__ = ["Gemini"]

_MODEL = r"/(?P<version>v1|v1beta|v1alpha)/(?:models|tunedModels)/(?P<model>[^/:]+)"
# GEM-17
_PARSER = ("Invalid JSON payload received. Unknown name", "Invalid value at")
_PLACE = re.compile(r" at '([^']+)'")
_DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


class Gemini(Provider):
    api = "gemini"
    base = ""
    variable = "GEMINI_API_KEY"
    json_media = "application/json; charset=UTF-8"
    needs = ("contents",)
    routes = (
        post(_MODEL + ":generateContent"),
        post(_MODEL + ":streamGenerateContent", "stream"),
        post(_MODEL + ":countTokens", "count"),
        Route(re.compile("/(?:v1|v1beta)/models"), "models", "GET"),
    )

    def key(self, asked: Asked) -> str | None:
        return asked.headers.get("x-goog-api-key") or asked.query.get("key") or bearer(asked)

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        return ApiError(400, f"* GenerateContentRequest.{name}: {name} is not specified\n", code="INVALID_ARGUMENT")

    def to_count(self, body: Body) -> Body:
        """The contents alone, or a whole request."""
        return object_or_none(body.get("generateContentRequest", body.get("generate_content_request"))) or body

    def breaches(self, body: Body, asked: Asked, account: str) -> Iterator[Violation]:
        """GEM-18: a signature that was not made here is worse than none."""
        for number, content in enumerate(objects(body.get("contents"))):
            if content.get("role") != "model":
                continue
            for place, part in enumerate(objects(content.get("parts"))):
                signature = text_or_none(part.get("thoughtSignature", part.get("thought_signature")))
                if signature and signature not in _DUMMIES and self.seals.read(_standard(signature), account) is None:
                    path = f"contents[{number}].parts[{place}]"
                    yield reject("GEM-18", path, "the signature was not made here, or not for this account")

    def reply_id(self, names: Names) -> str:
        return names.of("reply", 0, 22)

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return (scene.names.of("call", index, 8, LOWER) if traits_of(scene.known).ids else None), None

    def thinks(self, scene: Scene) -> bool:
        config = object_or_none(scene.body.get("generationConfig", scene.body.get("generation_config"))) or {}
        thinking = object_or_none(config.get("thinkingConfig", config.get("thinking_config"))) or {}
        return bool(thinking.get("includeThoughts", thinking.get("include_thoughts")))

    def signs(self, scene: Scene, index: int) -> Thinking | None:
        """GEM-15: the first call of a step bears the signature, its siblings none."""
        if index or not traits_of(scene.known).signed_calls:
            return None
        origin = Origin(self.wire.provider, scene.model, identity="absent")
        return Thinking(signature=self.seal(scene, index, ""), origin=origin)

    def dressed(self, scene: Scene, reply: Reply) -> Reply:
        """GEM-11: a call that this model gives no id goes out without one."""
        return msgspec.structs.replace(reply, blocks=tuple(map(_bare, reply.blocks)))

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"server-timing": "gfet4t7; dur=1"}

    def refusal(self, said: dict[str, Any], asked: Asked, names: Names) -> Any:
        """Where a stream would be a list, an error is the only entry of one."""
        error = object_or_none(said.get("error")) or {}
        told = str(error.get("message"))
        if told.startswith(_PARSER):
            found = [_field(line) for line in told.splitlines()]
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": found}]
        return [said] if _streams(asked) and self.reframed(asked) else said

    def reframed(self, asked: Asked) -> Reframed | None:
        """Without `alt=sse` a stream is one JSON list that grows."""
        return None if asked.query.get("alt") == "sse" else _JsonList()

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}

    def models(self) -> dict[str, Any]:
        name = self.wire.default_model
        methods = ["generateContent", "countTokens"]
        return {"models": [{"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}]}


def _bare(block: Block) -> Block:
    if not isinstance(block, ToolCall) or block.raw_id is not None:
        return block
    native = Native(Gemini.api, {"functionCall": {"name": block.name}}, intact=False)
    return msgspec.structs.replace(block, native=native)


def _field(line: str) -> dict[str, str]:
    """A line of the parser's, with the field that it tells of, if there is any."""
    place = _PLACE.search(line)
    return {**({"field": place[1]} if place else {}), "description": line}


def _streams(asked: Asked) -> bool:
    return asked.path.endswith(":streamGenerateContent")


def _standard(text: str) -> str:
    """Base64 in the usual alphabet. The API takes both, padded or not, and Google's own client writes the other."""
    bare = text.replace("-", "+").replace("_", "/").rstrip("=")
    return bare + "=" * (-len(bare) % 4)


class _JsonList:
    kind = "application/json; charset=UTF-8"

    def __init__(self) -> None:
        self._frames = Frames()
        self._begun = False

    def feed(self, told: bytes) -> bytes:
        written = b""
        for _, payload in self._frames.feed(told):
            written += (b"," if self._begun else b"[") + payload + b"\n"
            self._begun = True
        return written

    def close(self) -> bytes:
        return b"]" if self._begun else b"[]"
