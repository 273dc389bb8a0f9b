"""Providers that speak Chat Completions: OpenAI, Mistral, Moonshot, DeepSeek and Alibaba."""

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


# Whichever of the two a client takes for the base URL.
_AT_V1 = (post("(?:/v1)?/chat/completions"), _models("(?:/v1)?/models"))


class _Chat(Provider):
    def opened(self, reply: Reply) -> Opened:
        """Under its own id: this is the API that made it."""
        return Opened(reply.id, reply.model, reply.created, Native(self.api, {}, intact=False))

    def dressed(self, scene: Scene, reply: Reply) -> Reply:
        return msgspec.structs.replace(reply, blocks=tuple(map(self._as_said, reply.blocks)))

    def _as_said(self, block: Block) -> Block:
        """Arguments that are no object stand as the model wrote them."""
        if not isinstance(block, ToolCall) or block.kind != "function" or isinstance(block.arguments, dict):
            return block
        said = {"name": block.name, "arguments": arguments_text(block)}
        native = Native(self.api, {"id": block.raw_id, "type": "function", "function": said})
        return msgspec.structs.replace(block, native=native)


class OpenAIChat(_Chat):
    api = "openai-chat"
    variable = "OPENAI_API_KEY"
    routes = _AT_V1

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        if name == "model":
            return ApiError(400, "you must provide a model parameter")
        return super().lacks(name, asked, body)

    def missing(self, asked: Asked, body: Body) -> ApiError | None:
        if body.get("messages") == []:
            said = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array"
            return ApiError(400, f"{said} instead.", code="empty_array", param="messages")
        return super().missing(asked, body)

    def thinks(self, scene: Scene) -> bool:
        # It keeps its reasoning to itself.
        return False


class Mistral(_Chat):
    api = "mistral"
    base = ""
    variable = "MISTRAL_API_KEY"
    routes = _AT_V1

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        finding = {"type": "missing", "loc": ["body", name], "msg": "Field required", "input": dict(body)}
        return ApiError(422, "Field required", details=(finding,))

    def reply_id(self, names: Names) -> str:
        return names.of("reply", 0, 32, HEX)

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return scene.names.of("call", index, 9), None

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"mistral-correlation-id": names.uuid("request")}

    def models(self) -> dict[str, Any]:
        can = {"completion_chat": True, "completion_fim": False, "function_calling": True, "fine_tuning": False}
        more: dict[str, Any] = {"type": "base", "aliases": [], "capabilities": can}
        listed = super().models()
        return {**listed, "data": [{**row, **more} for row in listed["data"]]}


class Kimi(_Chat):
    """K2's ids hold the tool and an index that counts all calls of the conversation (KIM-01)."""

    api = "kimi"
    always_thinks = True
    variable = "MOONSHOT_API_KEY"
    routes = _AT_V1

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        return ApiError(400, f"Invalid request: {name} is required")

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"functions.{tool}:{calls_before(scene.request) + index}", None

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"msh-request-id": names.uuid("request")}


class DeepSeek(_Chat):
    api = "deepseek"
    always_thinks = True
    base = ""
    variable = "DEEPSEEK_API_KEY"
    routes = (post("(?:/v1|/beta)?/chat/completions"), _models("(?:/v1)?/models"))

    def lacks(self, name: str, asked: Asked, body: Body) -> ApiError:
        """As the reader of the JSON says it, at the end of what it read."""
        lines = asked.body.rstrip().split(b"\n")
        place = f"line {len(lines)} column {len(lines[-1])}"
        told = f"Failed to deserialize the JSON body into the target type: missing field `{name}` at {place}"
        return ApiError(400, told, code="invalid_request_error")

    def reply_id(self, names: Names) -> str:
        return names.uuid("reply")

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{index:02}_{scene.names.of('call', index, 24)}", None

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"x-ds-trace-id": names.of("request", 0, 32, HEX)}


class Qwen(_Chat):
    api = "qwen"
    base = "/compatible-mode/v1"
    variable = "DASHSCOPE_API_KEY"
    routes = (
        post("(?:/compatible-mode)?(?:/v1)?/chat/completions"),
        _models("(?:/compatible-mode)?(?:/v1)?/models"),
    )

    def reply_id(self, names: Names) -> str:
        return f"chatcmpl-{names.uuid('reply')}"

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{scene.names.of('call', index, 24, HEX)}", None

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"x-request-id": names.uuid("request")}

    def refusal(self, said: dict[str, Any], asked: Asked, names: Names) -> Any:
        request = names.uuid("request")
        return {**said, "id": f"chatcmpl-{request}", "request_id": request}

    def thinks(self, scene: Scene) -> bool:
        # Told by `enable_thinking` alone, which comes first in the body or among the extra parameters.
        asked = scene.body.get("enable_thinking")
        return scene.known.thinking if asked is None else asked is True
