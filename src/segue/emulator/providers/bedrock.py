"""Amazon Bedrock: Converse and ConverseStream, signed with SigV4 or with a bearer token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from segue.canonical.blocks import Origin, Thinking
from segue.conformance.rule import Violation
from segue.emulator.aws import access_key, signed_with
from segue.emulator.exchange import Asked
from segue.emulator.json import object_or_none, objects, text_or_none
from segue.emulator.names import URL_SAFE, Names
from segue.emulator.providers import claude
from segue.emulator.providers.base import Body, Provider, Scene, bearer, post, reject
from segue.emulator.seals import digest
from segue.models import identify
from segue.wire.base import ApiError

__all__ = ["Bedrock"]

_MODEL = r"/model/(?P<model>.+)/"
_PROMPT = ":prompt/"
_SPACE = "http://internal.amazon.com/coral/com.amazon.bedrock/"


class Bedrock(Provider):
    api = "bedrock"
    base = ""
    variable = "AWS_BEARER_TOKEN_BEDROCK"
    model_key = "modelId"
    media = "application/vnd.amazon.eventstream"
    needs = ()
    routes = (
        post(_MODEL + "converse"),
        post(_MODEL + "converse-stream", "stream"),
        post(_MODEL + "count-tokens", "count"),
    )

    def key(self, asked: Asked) -> str | None:
        return bearer(asked) or access_key(asked)

    def holds(self, asked: Asked, keys: frozenset[str]) -> bool:
        """A key is a bearer token, or an access key and its secret with a colon between them."""
        pairs = [key.split(":", 1) for key in keys if ":" in key]
        return bearer(asked) in keys or any(signed_with(asked, key_id, secret) for key_id, secret in pairs)

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        said = f"Value at '{name}' failed to satisfy constraint: Member must not be null"
        return ApiError(400, f"1 validation error detected: {said}")

    def to_count(self, body: Body) -> Body:
        return object_or_none((object_or_none(body.get("input")) or {}).get("converse")) or body

    def restored(self, body: Body, account: str) -> Body | Violation:
        """A prompt that the service keeps brings its own messages."""
        kept = _PROMPT in str(body.get("modelId")) and body.get("messages") is None
        return {**body, "messages": [{"role": "user", "content": [{"text": "What is kept."}]}]} if kept else body

    def breaches(self, body: Body, asked: Asked, account: str) -> Iterator[Violation]:
        messages = self.entries(body)
        tools = (object_or_none(body.get("toolConfig")) or {}).get("tools")
        conversation = claude.Conversation(body.get("system"), tools, messages)
        model = identify(text_or_none(body.get("modelId")))
        if model.family != "claude":
            # What other models think is not signed.
            return
        found = claude.misplaced(list(_thoughts(messages)), conversation, self.seals, account, model, lenient=False)
        yield from (reject(one.rule, one.path, one.message) for one in found)

    def reply_id(self, names: Names) -> str:
        return names.uuid("reply")

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"tooluse_{scene.names.of('call', index, 22, URL_SAFE)}", None

    def thinks(self, scene: Scene) -> bool:
        more = object_or_none(scene.body.get("additionalModelRequestFields")) or {}
        thinking = object_or_none(more.get("thinking", more.get("reasoning_config"))) or {}
        return thinking.get("type") in ("enabled", "adaptive")

    def thought(self, scene: Scene, index: int, text: str) -> Thinking:
        tools = (object_or_none(scene.body.get("toolConfig")) or {}).get("tools")
        prefix = claude.prefix_of(scene.body.get("system"), tools, self.entries(scene.body))
        signature = self.seal(scene, index, digest(text), prefix)
        return Thinking(text, signature, origin=Origin(self.wire.provider, scene.model, identity="absent"))

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        told = {"x-amzn-requestid": names.uuid("request")}
        return told if kind is None else {**told, "x-amzn-errortype": f"{kind}:{_SPACE}"}

    def error_kind(self, said: Mapping[str, Any]) -> str | None:
        return text_or_none(said.get("__type"))

    def refusal(self, said: dict[str, Any], asked: Asked, names: Names) -> Any:
        """The kind of an error stands in a header, the body has the message alone."""
        return {"message": said.get("message")}

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"inputTokens": tokens}


def _thoughts(messages: list[Any]) -> Iterator[claude.Thought]:
    before = 0
    for number, message in enumerate(objects(messages)):
        for place, block in enumerate(objects(message.get("content"))):
            reasoning = object_or_none((object_or_none(block.get("reasoningContent")) or {}).get("reasoningText"))
            if reasoning is not None:
                path = f"messages[{number}].content[{place}]"
                words = text_or_none(reasoning.get("text")) or ""
                yield claude.Thought(path, words, reasoning.get("signature"), number, before)
            before += 1
