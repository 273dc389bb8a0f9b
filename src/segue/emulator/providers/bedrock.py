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

    def key(self, http_request: Asked) -> str | None:
        return bearer(http_request) or access_key(http_request)

    def holds(self, http_request: Asked, keys: frozenset[str]) -> bool:
        """A key is a bearer token, or `access key:secret`."""
        pairs = [key.split(":", 1) for key in keys if ":" in key]
        return bearer(http_request) in keys or any(
            signed_with(http_request, key_id, secret) for key_id, secret in pairs
        )

    def lacks(self, name: str, http_request: Asked, body: Body) -> ApiError:
        message = f"Value at '{name}' failed to satisfy constraint: Member must not be null"
        return ApiError(400, f"1 validation error detected: {message}")

    def to_count(self, body: Body) -> Body:
        return object_or_none((object_or_none(body.get("input")) or {}).get("converse")) or body

    def restored(self, body: Body, account: str) -> Body | Violation:
        """Adds the messages of a stored prompt."""
        kept = _PROMPT in str(body.get("modelId")) and body.get("messages") is None
        return {**body, "messages": [{"role": "user", "content": [{"text": "What is kept."}]}]} if kept else body

    def breaches(self, body: Body, http_request: Asked, account: str) -> Iterator[Violation]:
        messages = self.entries(body)
        tools = (object_or_none(body.get("toolConfig")) or {}).get("tools")
        conversation = claude.Conversation(body.get("system"), tools, messages)
        model = identify(text_or_none(body.get("modelId")))
        if model.family != "claude":
            # Reasoning of other models is not signed.
            return
        found = claude.misplaced(list(_thoughts(messages)), conversation, self.seals, account, model, lenient=False)
        yield from (reject(one.rule, one.path, one.message) for one in found)

    def reply_id(self, ids: Names) -> str:
        return ids.uuid("reply")

    def call_ids(self, context: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"tooluse_{context.names.of('call', index, 22, URL_SAFE)}", None

    def thinks(self, context: Scene) -> bool:
        more = object_or_none(context.body.get("additionalModelRequestFields")) or {}
        thinking = object_or_none(more.get("thinking", more.get("reasoning_config"))) or {}
        return thinking.get("type") in ("enabled", "adaptive")

    def thought(self, context: Scene, index: int, text: str) -> Thinking:
        tools = (object_or_none(context.body.get("toolConfig")) or {}).get("tools")
        prefix = claude.prefix_of(context.body.get("system"), tools, self.entries(context.body))
        signature = self.seal(context, index, digest(text), prefix)
        return Thinking(text, signature, origin=Origin(self.wire.provider, context.model, identity="absent"))

    def headers(self, ids: Names, kind: str | None) -> dict[str, str]:
        common = {"x-amzn-requestid": ids.uuid("request")}
        return common if kind is None else {**common, "x-amzn-errortype": f"{kind}:{_SPACE}"}

    def error_kind(self, error_body: Mapping[str, Any]) -> str | None:
        return text_or_none(error_body.get("__type"))

    def refusal(self, error_body: dict[str, Any], http_request: Asked, ids: Names) -> Any:
        """The error type is in a header, the body has only the message."""
        return {"message": error_body.get("message")}

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"inputTokens": tokens}


def _thoughts(messages: list[Any]) -> Iterator[claude.Thought]:
    before = 0
    for number, message in enumerate(objects(messages)):
        for place, block in enumerate(objects(message.get("content"))):
            reasoning = object_or_none((object_or_none(block.get("reasoningContent")) or {}).get("reasoningText"))
            if reasoning is not None:
                path = f"messages[{number}].content[{place}]"
                thinking = text_or_none(reasoning.get("text")) or ""
                yield claude.Thought(path, thinking, reasoning.get("signature"), number, before)
            before += 1
