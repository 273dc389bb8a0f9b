"""Providers with the Chat Completions API: OpenAI, Mistral, Moonshot, DeepSeek and Alibaba."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Native, ToolCall
from segue.canonical.request import Reply
from segue.emulator.errors.openai_style import empty_array_error
from segue.emulator.http_messages import HttpRequest
from segue.emulator.prompt_cache import CacheRules, PromptPart
from segue.emulator.providers import cache_rules
from segue.emulator.providers.provider import Body, Provider, RequestContext, Route, count_calls, post_route
from segue.emulator.signatures import HEX, IdGenerator
from segue.models import Model
from segue.wire.base import ApiError
from segue.wire.registry import WIRES
from segue.wire.stream.events import ReplyStart, arguments_text


def _models_route(pattern: str) -> Route:
    return Route(re.compile(pattern), "models", "GET")


class ChatProvider(Provider):
    """A provider of the Chat Completions API; the routes follow from the base path of its wire."""

    def __init_subclass__(cls) -> None:
        # Clients use the base URL with or without its path.
        if "routes" not in vars(cls):
            base = f"(?:{re.escape(WIRES[cls.api].base_path or '/v1')})?"
            cls.routes = (post_route(f"{base}/chat/completions"), _models_route(f"{base}/models"))

    def make_reply_start(self, reply: Reply) -> ReplyStart:
        """Keep the reply's own id: this is the API that created it."""
        return ReplyStart(reply.id, reply.model, reply.created, Native(self.api, {}, intact=False))

    def complete_reply(self, context: RequestContext, reply: Reply) -> Reply:
        return msgspec.structs.replace(reply, blocks=tuple(map(self._keep_raw_arguments, reply.blocks)))

    def _keep_raw_arguments(self, block: Block) -> Block:
        """Keep arguments that are not an object unchanged."""
        if not isinstance(block, ToolCall) or block.kind != "function" or isinstance(block.arguments, dict):
            return block
        function = {"name": block.name, "arguments": arguments_text(block)}
        native = Native(self.api, {"id": block.raw_id, "type": "function", "function": function})
        return msgspec.structs.replace(block, native=native)


class OpenAIChat(ChatProvider):
    api = "openai-chat"

    def check_required(self, http_request: HttpRequest, body: Body) -> ApiError | None:
        if body.get("messages") == []:
            return empty_array_error("messages")
        return super().check_required(http_request, body)

    def has_reasoning(self, context: RequestContext) -> bool:
        # Replies of this API contain no reasoning.
        return False


class Mistral(ChatProvider):
    api = "mistral"

    @property
    def base_path(self) -> str:
        # Mistral's client adds /v1 itself.
        return ""

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        return cache_rules.MISTRAL

    def reply_id(self, ids: IdGenerator) -> str:
        return ids.make("reply", 0, 32, HEX)

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return context.ids.make("call", index, 9), None

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {"mistral-correlation-id": ids.make_uuid("request")}

    def models_body(self) -> dict[str, Any]:
        capabilities = {
            "completion_chat": True,
            "completion_fim": False,
            "function_calling": True,
            "fine_tuning": False,
        }
        extra_fields: dict[str, Any] = {"type": "base", "aliases": [], "capabilities": capabilities}
        listed = super().models_body()
        return {**listed, "data": [{**row, **extra_fields} for row in listed["data"]]}


class Kimi(ChatProvider):
    """K2's ids contain the tool name and an index over all calls of the conversation (KIM-01)."""

    api = "kimi"
    always_reasons = True

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        return cache_rules.kimi_rules(body)

    def complete_usage(self, usage: dict[str, Any], written: Mapping[float, int]) -> dict[str, Any]:
        return cache_rules.kimi_usage(usage, written)

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"functions.{tool}:{count_calls(context.request) + index}", None

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {"msh-request-id": ids.make_uuid("request")}


class DeepSeek(ChatProvider):
    api = "deepseek"
    always_reasons = True
    routes = (post_route("(?:/v1|/beta)?/chat/completions"), _models_route("(?:/v1)?/models"))

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        return cache_rules.DEEPSEEK

    def complete_usage(self, usage: dict[str, Any], written: Mapping[float, int]) -> dict[str, Any]:
        return cache_rules.deepseek_usage(usage, written)

    def reply_id(self, ids: IdGenerator) -> str:
        return ids.make_uuid("reply")

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{index:02}_{context.ids.make('call', index, 24)}", None

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {"x-ds-trace-id": ids.make("request", 0, 32, HEX)}


class Qwen(ChatProvider):
    api = "qwen"
    routes = (
        post_route("(?:/compatible-mode)?(?:/v1)?/chat/completions"),
        _models_route("(?:/compatible-mode)?(?:/v1)?/models"),
    )

    def cache_rules(self, body: Body, model: Model, parts: list[PromptPart]) -> CacheRules:
        return cache_rules.qwen_rules(model, has_markers=any(part.marker is not None for part in parts))

    def complete_usage(self, usage: dict[str, Any], written: Mapping[float, int]) -> dict[str, Any]:
        return cache_rules.qwen_usage(usage, written)

    def reply_id(self, ids: IdGenerator) -> str:
        return f"chatcmpl-{ids.make_uuid('reply')}"

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{context.ids.make('call', index, 24, HEX)}", None

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {"x-request-id": ids.make_uuid("request")}

    def complete_error(self, error_body: dict[str, Any], http_request: HttpRequest, ids: IdGenerator) -> Any:
        request = ids.make_uuid("request")
        return {**error_body, "id": f"chatcmpl-{request}", "request_id": request}

    def has_reasoning(self, context: RequestContext) -> bool:
        # Set by `enable_thinking` only, which clients send in the body or as an extra parameter.
        enabled = context.body.get("enable_thinking")
        return context.identified_model.reasons_by_default if enabled is None else enabled is True
