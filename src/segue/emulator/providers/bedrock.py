"""Amazon Bedrock: Converse and ConverseStream, signed with SigV4 or with a bearer token."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from segue.canonical.blocks import Origin, Thinking
from segue.conformance.rule import Violation
from segue.emulator.http_messages import HttpRequest
from segue.emulator.prompt_cache import CacheRules, PromptPart
from segue.emulator.providers import cache_rules, claude
from segue.emulator.providers.provider import Body, Provider, RequestContext, bearer_token, make_violation, post_route
from segue.emulator.signatures import URL_SAFE, IdGenerator, digest
from segue.models import Model, parse_model
from segue.wire.json_values import object_list, object_or_none, text_or_none

_MODEL = r"/model/(?P<model>.+)/"
_PROMPT = ":prompt/"
_ERROR_NAMESPACE = "http://internal.amazon.com/coral/com.amazon.bedrock/"
_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/"
    r"(?P<scope>(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request),"
    r"\s*SignedHeaders=(?P<headers>[^,]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)


class Bedrock(Provider):
    api = "bedrock"
    model_key = "modelId"
    stream_media_type = "application/vnd.amazon.eventstream"
    required_fields = ()
    routes = (
        post_route(_MODEL + "converse"),
        post_route(_MODEL + "converse-stream", "stream"),
        post_route(_MODEL + "count-tokens", "count"),
    )

    def read_key(self, http_request: HttpRequest) -> str | None:
        return bearer_token(http_request) or _find_access_key(http_request)

    def has_valid_key(self, http_request: HttpRequest, keys: frozenset[str]) -> bool:
        """Return whether the key is valid; keys are bearer tokens or `access key:secret`."""
        pairs = [key.split(":", 1) for key in keys if ":" in key]
        return bearer_token(http_request) in keys or any(
            _is_signed_with(http_request, key_id, secret) for key_id, secret in pairs
        )

    def body_to_count(self, body: Body) -> Body:
        return object_or_none((object_or_none(body.get("input")) or {}).get("converse")) or body

    def restore_history(self, body: Body, account: str) -> Body | Violation:
        """Add the messages of a stored prompt."""
        is_stored_prompt = _PROMPT in str(body.get("modelId")) and body.get("messages") is None
        return (
            {**body, "messages": [{"role": "user", "content": [{"text": "What is kept."}]}]}
            if is_stored_prompt
            else body
        )

    def check_state(self, body: Body, http_request: HttpRequest, account: str) -> Iterator[Violation]:
        messages = self.conversation_entries(body)
        tools = (object_or_none(body.get("toolConfig")) or {}).get("tools")
        conversation = claude.PromptParts(body.get("system"), tools, messages)
        model = parse_model(text_or_none(body.get("modelId")))
        if model.family != "claude":
            # Reasoning of other models is not signed.
            return
        violations = claude.check_thinking(
            list(_find_thinking(messages)), conversation, self.signer, account, model, lenient=False
        )
        yield from (make_violation(violation.rule, violation.path, violation.message) for violation in violations)

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        return cache_rules.bedrock_rules(model)

    def complete_usage(self, usage: dict[str, Any], written: Mapping[float, int]) -> dict[str, Any]:
        return cache_rules.bedrock_usage(usage, written)

    def reply_id(self, ids: IdGenerator) -> str:
        return ids.make_uuid("reply")

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"tooluse_{context.ids.make('call', index, 22, URL_SAFE)}", None

    def has_reasoning(self, context: RequestContext) -> bool:
        fields = object_or_none(context.body.get("additionalModelRequestFields")) or {}
        thinking = object_or_none(fields.get("thinking", fields.get("reasoning_config"))) or {}
        return thinking.get("type") in ("enabled", "adaptive")

    def make_thinking(self, context: RequestContext, index: int, text: str) -> Thinking:
        tools = (object_or_none(context.body.get("toolConfig")) or {}).get("tools")
        prefix = claude.make_prefix(context.body.get("system"), tools, self.conversation_entries(context.body))
        signature = self.sign(context, index, digest(text), prefix)
        return Thinking(text, signature, origin=Origin(self.wire.provider, context.model, identity="absent"))

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        common = {"x-amzn-requestid": ids.make_uuid("request")}
        return common if kind is None else {**common, "x-amzn-errortype": f"{kind}:{_ERROR_NAMESPACE}"}

    def error_type(self, error_body: Mapping[str, Any]) -> str | None:
        return text_or_none(error_body.get("__type"))

    def complete_error(self, error_body: dict[str, Any], http_request: HttpRequest, ids: IdGenerator) -> Any:
        """Return the body with only the message; the error type is in a header."""
        return {"message": error_body.get("message")}

    def token_count_body(self, tokens: int) -> dict[str, Any]:
        return {"inputTokens": tokens}


def _find_thinking(messages: list[Any]) -> Iterator[claude.ThinkingBlock]:
    before = 0
    for number, message in enumerate(object_list(messages)):
        for place, block in enumerate(object_list(message.get("content"))):
            reasoning = object_or_none((object_or_none(block.get("reasoningContent")) or {}).get("reasoningText"))
            if reasoning is not None:
                path = f"messages[{number}].content[{place}]"
                thinking = text_or_none(reasoning.get("text")) or ""
                yield claude.ThinkingBlock(path, thinking, reasoning.get("signature"), number, before)
            before += 1


# ---------------------------------------------------------------------------------------------- AWS Signature Version 4


def _find_access_key(http_request: HttpRequest) -> str | None:
    match = _SIGNED.match(http_request.headers.get("authorization", ""))
    return match["key"] if match else None


def _is_signed_with(http_request: HttpRequest, key_id: str, secret: str) -> bool:
    match = _SIGNED.match(http_request.headers.get("authorization", ""))
    if match is None or match["key"] != key_id:
        return False
    names = match["headers"].split(";")
    headers = "".join(f"{name}:{' '.join(http_request.headers.get(name, '').split())}\n" for name in names)
    # The canonical request escapes the path a second time and sorts the query.
    path = quote(http_request.raw_path or "/", safe="/-_.~")
    query = "&".join(sorted(part for part in http_request.raw_query.split("&") if part))
    body = sha256(http_request.body).hexdigest()
    canonical = "\n".join((http_request.method, path, query, headers, match["headers"], body))
    stamp = http_request.headers.get("x-amz-date", "")
    string_to_sign = "\n".join(("AWS4-HMAC-SHA256", stamp, match["scope"], sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in (match["day"], match["region"], match["service"], "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.compare_digest(hmac.digest(key, string_to_sign.encode(), "sha256").hex(), match["signature"])
