"""Google Gemini: `generateContent`, `streamGenerateContent` and `countTokens`, on v1 and v1beta."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from segue.canonical.blocks import Origin, Thinking
from segue.conformance.rule import Violation
from segue.emulator.exchange import Asked
from segue.emulator.json import object_or_none, objects, text_or_none
from segue.emulator.names import LOWER, Names
from segue.emulator.providers.base import Body, Does, Provider, Reframed, Route, Scene, bearer, post, reject
from segue.wire.base import ApiError
from segue.wire.framing import Frames

__all__ = ["Gemini"]

_MODEL = r"/(?P<version>v1|v1beta|v1alpha)/(?:models|tunedModels)/(?P<model>[^/:]+)"
# GEM-17
_DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


class Gemini(Provider):
    api = "gemini"
    base = ""
    variable = "GEMINI_API_KEY"
    needs = ("contents",)
    routes = (
        post(_MODEL + ":generateContent"),
        post(_MODEL + ":streamGenerateContent", "stream"),
        post(_MODEL + ":countTokens", "count"),
        Route(re.compile("/(?:v1|v1beta)/models"), "models", "GET"),
    )

    def key(self, asked: Asked) -> str | None:
        return asked.headers.get("x-goog-api-key") or asked.query.get("key") or bearer(asked)

    def opened(self, does: Does, body: dict[str, Any]) -> dict[str, Any]:
        """Tokens are counted of contents, or of a whole request with its system text and tools."""
        whole = object_or_none(body.get("generateContentRequest"))
        return dict(whole) if does == "count" and whole is not None else body

    def lacks(self, name: str) -> ApiError:
        return ApiError(400, f"* GenerateContentRequest.{name}: {name} is not specified\n", code="INVALID_ARGUMENT")

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
        return (scene.names.of("call", index, 8, LOWER) if scene.known.at_least(3) else None), None

    def thinks(self, scene: Scene) -> bool:
        config = object_or_none(scene.body.get("generationConfig", scene.body.get("generation_config"))) or {}
        thinking = object_or_none(config.get("thinkingConfig", config.get("thinking_config"))) or {}
        return bool(thinking.get("includeThoughts", thinking.get("include_thoughts")))

    def signs(self, scene: Scene, index: int) -> Thinking | None:
        """GEM-15: the first call of a step bears the signature, its siblings none."""
        if index or not scene.known.at_least(3):
            return None
        origin = Origin(self.wire.provider, scene.model, identity="absent")
        return Thinking(signature=self.seal(scene, index, ""), origin=origin)

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"server-timing": "gfet4t7; dur=1"}

    def reframed(self, asked: Asked) -> Reframed | None:
        """Without `alt=sse` a stream is one JSON list that grows."""
        return None if asked.query.get("alt") == "sse" else _JsonList()

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}

    def models(self) -> dict[str, Any]:
        name = self.wire.default_model
        methods = ["generateContent", "countTokens"]
        return {"models": [{"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}]}


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
