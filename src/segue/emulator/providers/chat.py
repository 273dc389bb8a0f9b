"""Providers with the Chat Completions API: OpenAI, Mistral, Moonshot, DeepSeek and Alibaba."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from segue.canonical.blocks import Block, Native, ToolCall
from segue.canonical.request import Reply
from segue.emulator.exchange import Asked
from segue.emulator.names import HEX, Names
from segue.emulator.providers.base import Body, Provider, Route, Scene, calls_before, post
from segue.wire.base import ApiError
from segue.wire.events import Opened, arguments_text

__all__ = ["DeepSeek", "Kimi", "Mistral", "OpenAIChat", "Qwen"]


def _models(pattern: str) -> Route:
    return Route(re.compile(pattern), "models", "GET")


# Clients use the base URL with or without /v1.
_AT_V1 = (post("(?:/v1)?/chat/completions"), _models("(?:/v1)?/models"))


class _Chat(Provider):
    def opened(self, reply: Reply) -> Opened:
        """Keeps the reply's own id: this is the API that created it."""
        return Opened(reply.id, reply.model, reply.created, Native(self.api, {}, intact=False))

    def dressed(self, context: Scene, reply: Reply) -> Reply:
        return msgspec.structs.replace(reply, blocks=tuple(map(self._as_said, reply.blocks)))

    def _as_said(self, block: Block) -> Block:
        """Keeps arguments that are not an object unchanged."""
        if not isinstance(block, ToolCall) or block.kind != "function" or isinstance(block.arguments, dict):
            return block
        called = {"name": block.name, "arguments": arguments_text(block)}
        native = Native(self.api, {"id": block.raw_id, "type": "function", "function": called})
        return msgspec.structs.replace(block, native=native)


class OpenAIChat(_Chat):
    api = "openai-chat"
    variable = "OPENAI_API_KEY"
    routes = _AT_V1

    def lacks(self, name: str, http_request: Asked, body: Body) -> ApiError:
        if name == "model":
            return ApiError(400, "you must provide a model parameter")
        return super().lacks(name, http_request, body)

    def missing(self, http_request: Asked, body: Body) -> ApiError | None:
        if body.get("messages") == []:
            message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array"
            return ApiError(400, f"{message} instead.", code="empty_array", param="messages")
        return super().missing(http_request, body)

    def thinks(self, context: Scene) -> bool:
        # Its reasoning is not part of replies.
        return False


class Mistral(_Chat):
    api = "mistral"
    base = ""
    variable = "MISTRAL_API_KEY"
    routes = _AT_V1

    def lacks(self, name: str, http_request: Asked, body: Body) -> ApiError:
        finding = {"type": "missing", "loc": ["body", name], "msg": "Field required", "input": dict(body)}
        return ApiError(422, "Field required", details=(finding,))

    def reply_id(self, ids: Names) -> str:
        return ids.of("reply", 0, 32, HEX)

    def call_ids(self, context: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return context.names.of("call", index, 9), None

    def headers(self, ids: Names, kind: str | None) -> dict[str, str]:
        return {"mistral-correlation-id": ids.uuid("request")}

    def models(self) -> dict[str, Any]:
        can = {"completion_chat": True, "completion_fim": False, "function_calling": True, "fine_tuning": False}
        more: dict[str, Any] = {"type": "base", "aliases": [], "capabilities": can}
        listed = super().models()
        return {**listed, "data": [{**row, **more} for row in listed["data"]]}


class Kimi(_Chat):
    """K2's ids contain the tool name and an index over all calls of the conversation (KIM-01)."""

    api = "kimi"
    always_thinks = True
    variable = "MOONSHOT_API_KEY"
    routes = _AT_V1

    def lacks(self, name: str, http_request: Asked, body: Body) -> ApiError:
        return ApiError(400, f"Invalid request: {name} is required")

    def call_ids(self, context: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"functions.{tool}:{calls_before(context.request) + index}", None

    def headers(self, ids: Names, kind: str | None) -> dict[str, str]:
        return {"msh-request-id": ids.uuid("request")}


class DeepSeek(_Chat):
    api = "deepseek"
    always_thinks = True
    base = ""
    variable = "DEEPSEEK_API_KEY"
    routes = (post("(?:/v1|/beta)?/chat/completions"), _models("(?:/v1)?/models"))

    def lacks(self, name: str, http_request: Asked, body: Body) -> ApiError:
        """Formats the error of the JSON deserializer, at the end of the body."""
        lines = http_request.body.rstrip().split(b"\n")
        place = f"line {len(lines)} column {len(lines[-1])}"
        message = f"Failed to deserialize the JSON body into the target type: missing field `{name}` at {place}"
        return ApiError(400, message, code="invalid_request_error")

    def reply_id(self, ids: Names) -> str:
        return ids.uuid("reply")

    def call_ids(self, context: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{index:02}_{context.names.of('call', index, 24)}", None

    def headers(self, ids: Names, kind: str | None) -> dict[str, str]:
        return {"x-ds-trace-id": ids.of("request", 0, 32, HEX)}


class Qwen(_Chat):
    api = "qwen"
    base = "/compatible-mode/v1"
    variable = "DASHSCOPE_API_KEY"
    routes = (
        post("(?:/compatible-mode)?(?:/v1)?/chat/completions"),
        _models("(?:/compatible-mode)?(?:/v1)?/models"),
    )

    def reply_id(self, ids: Names) -> str:
        return f"chatcmpl-{ids.uuid('reply')}"

    def call_ids(self, context: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{context.names.of('call', index, 24, HEX)}", None

    def headers(self, ids: Names, kind: str | None) -> dict[str, str]:
        return {"x-request-id": ids.uuid("request")}

    def refusal(self, error_body: dict[str, Any], http_request: Asked, ids: Names) -> Any:
        request = ids.uuid("request")
        return {**error_body, "id": f"chatcmpl-{request}", "request_id": request}

    def thinks(self, context: Scene) -> bool:
        # Set by `enable_thinking` only, which clients send in the body or as an extra parameter.
        enabled = context.body.get("enable_thinking")
        return context.known.thinking if enabled is None else enabled is True
