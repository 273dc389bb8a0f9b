"""OpenAI Responses and Azure AI Foundry: items that are kept, and reasoning that goes with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Finish, Reply, Usage
from segue.conformance.rule import Violation
from segue.emulator.exchange import Asked
from segue.emulator.json import JsonObject, object_or_none, objects, text_or_none
from segue.emulator.names import HEX, Names
from segue.emulator.providers.base import Body, Provider, Route, Scene, bearer, post, reject
from segue.wire.base import ApiError
from segue.wire.events import arguments_text
from segue.wire.openai_responses.reply import render_usage

__all__ = ["AzureFoundry", "OpenAIResponses"]

NOT_FOUND = "previous_response_not_found"
_INCLUDE = "reasoning.encrypted_content"
# There is no word for a pause: of all reasons to stop this is the one that says that more would come.
_REASONS: dict[Finish, str] = {
    "length": "max_output_tokens",
    "pause": "max_output_tokens",
    "filter": "content_filter",
}
# What a response repeats of the request, and what stands there where nothing was asked for.
_REPEATED: JsonObject = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_EMPTY: JsonObject = {"summary": [], "content": [], "arguments": "", "input": "", "status": "in_progress"}
_TURN_MAKERS = ("function_call", "custom_tool_call", "message")
_ONE = "/[^/]+"
_PAGE = 20


def _at(path: str) -> tuple[Route, ...]:
    """The routes of responses that are made and kept under this path."""
    held = ((_ONE, "GET"), (_ONE, "DELETE"), (f"{_ONE}/input_items", "GET"))
    return post(path), *(Route(re.compile(path + rest), "held", method) for rest, method in held)


class _Held(NamedTuple):
    """A response that is kept, and all that its model had read."""

    read: list[Any]
    response: JsonObject


class OpenAIResponses(Provider):
    """`store` is on unless it is switched off: what was said then is known by its id."""

    api = "openai-responses"
    variable = "OPENAI_API_KEY"
    needs = ("model",)
    routes = (*_at("(?:/v1)?/responses"), Route(re.compile("(?:/v1)?/models"), "models", "GET"))
    sealing = ("gAAAAABp", "url")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._held: dict[tuple[str, str], _Held] = {}
        self._items: dict[tuple[str, str], Any] = {}
        self._reasons: dict[tuple[str, str], str] = {}

    # ------------------------------------------------------------------------------------------------------ coming in

    def entries(self, body: Body) -> list[Any]:
        given = body.get("input")
        return [{"role": "user", "content": given}] if isinstance(given, str) else super().entries(body)

    def missing(self, asked: Asked, body: Body) -> ApiError | None:
        """A prompt that is kept knows its model. Whether an input is wanted, the judge knows."""
        return None if object_or_none(body.get("prompt")) else super().missing(asked, body)

    def restored(self, body: Body, account: str) -> Body | Violation:
        """What went before under `previous_response_id`, and items that are named only."""
        before = text_or_none(body.get("previous_response_id"))
        earlier: list[Any] = []
        if before is not None:
            known = self._held.get((account, before))
            if known is None:
                return reject(NOT_FOUND, "previous_response_id", before)
            earlier = [*known.read, *objects(known.response.get("output"))]
        given = self.entries(body)
        items = [self._looked_up(item, account) for item in given]
        if before is None and items == given:
            return body
        return {
            **{key: value for key, value in body.items() if key != "previous_response_id"},
            "input": earlier + items,
        }

    def _looked_up(self, item: Any, account: str) -> Any:
        named = object_or_none(item) or {}
        if named.get("type") not in ("item_reference", None) or "role" in named:
            return item
        return self._items.get((account, str(named.get("id"))), item)

    def breaches(self, body: Body, asked: Asked, account: str) -> Iterator[Violation]:
        """OAI-RESP-08 to 12: reasoning of this account, where it is known, with the items that it was made for."""
        items = objects(body.get("input"))
        present = {text_or_none(item.get("id")) for item in items}
        for place, item in enumerate(items):
            path, item_id = f"input[{place}]", text_or_none(item.get("id"))
            sealed = item.get("encrypted_content")
            if item.get("type") in ("reasoning", "compaction") and sealed:
                if self.seals.read(sealed, account) is None:
                    yield reject("OAI-RESP-11", f"{path}.encrypted_content", "not made here, or not for this account")
            elif item.get("type") in ("reasoning", "item_reference") and item_id is not None:
                if (account, item_id) not in self._items:
                    yield reject("OAI-RESP-10", path, item_id)
            elif item_id is not None:
                wanted = self._reasons.get((account, item_id))
                if wanted is not None and wanted not in present:
                    rule = "OAI-RESP-09" if item.get("type") == "message" else "OAI-RESP-08"
                    yield reject(rule, path, f"made with '{wanted}'")

    def held(self, asked: Asked, account: str) -> ApiError | JsonObject:
        """A response that was stored, what it had read, or that it is gone from now on."""
        response_id, _, items = asked.path.partition("/responses/")[2].partition("/")
        kept = self._held.get((account, response_id))
        if kept is None:
            return ApiError(404, f"Response with id '{response_id}' not found.")
        if items:
            return _page([self._listed(item, response_id, at) for at, item in enumerate(kept.read)], asked.query)
        if asked.method == "DELETE":
            del self._held[account, response_id]
            for item in objects(kept.response.get("output")):
                self._items.pop((account, str(item.get("id"))), None)
            return {"id": response_id, "object": "response", "deleted": True}
        return kept.response

    def _listed(self, item: Any, response_id: str, at: int) -> JsonObject:
        """An item of the input as it is listed: with an id and a type, words as a list."""
        given = object_or_none(item) or {}
        content = given.get("content")
        if isinstance(content, str):
            kind = "output_text" if given.get("role") == "assistant" else "input_text"
            given = {**given, "content": [{"type": kind, "text": content}]}
        told = {"type": "message", "status": "completed", **given} if "role" in given else given
        prefix = {"message": "msg", "function_call": "fc", "reasoning": "rs"}.get(str(told.get("type")), "item")
        return {"id": self.item_id(Names(self.seed, response_id), prefix, at), **told}

    # ------------------------------------------------------------------------------------------------------- going out

    def reply_id(self, names: Names) -> str:
        return f"resp_{names.of('reply', 0, 50, HEX)}"

    def item_id(self, names: Names, prefix: str, index: int) -> str:
        return f"{prefix}_{names.of(prefix, index, 50, HEX)}"

    def call_ids(self, scene: Scene, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{scene.names.of('call', index, 24)}", self.item_id(scene.names, "fc", index)

    def thinks(self, scene: Scene) -> bool:
        wanted = scene.request.options.reasoning
        off = wanted is not None and (wanted.enabled is False or wanted.effort == "none")
        reasons = scene.known.family == "gpt" and (scene.known.line == "o" or scene.known.at_least(5))
        return reasons and not off

    def thought(self, scene: Scene, index: int, text: str) -> Thinking:
        """The words are told where a summary is asked for, and sealed where the client wants to hold them itself."""
        told = bool((object_or_none(scene.body.get("reasoning")) or {}).get("summary"))
        included = scene.body.get("include")
        sealed = self.seal(scene, index, "") if isinstance(included, list) and _INCLUDE in included else None
        item_id = self.item_id(scene.names, "rs", index)
        origin = Origin(self.wire.provider, scene.model, item_id=item_id)
        return Thinking(text if told else "", item_id, sealed, origin)

    def dressed(self, scene: Scene, reply: Reply) -> Reply:
        """Every block is an item with an id of its own, and the response repeats what was asked for."""
        ended = "incomplete" if reply.finish in _REASONS else "completed"
        # What breaks off is the last item; a call in it is not whole.
        states = [*["completed"] * (len(reply.blocks) - 1), ended]
        cut = len(reply.blocks) - 1 if ended == "incomplete" else None
        items = [self._item(scene, block, at, states[at]) for at, block in enumerate(reply.blocks)]
        asked = scene.body
        body: JsonObject = {
            "id": reply.id,
            "object": "response",
            "created_at": reply.created,
            "status": ended,
            "error": None,
            "incomplete_details": {"reason": _REASONS[reply.finish]} if reply.finish in _REASONS else None,
            **{key: asked.get(key, usual) for key, usual in _REPEATED.items()},
            "model": reply.model,
            "output": items,
            "usage": render_usage(reply.usage or Usage()),
        }
        blocks = tuple(
            msgspec.structs.replace(_cut(block) if at == cut else block, native=Native(self.api, items[at]))
            for at, block in enumerate(reply.blocks)
        )
        return msgspec.structs.replace(reply, blocks=blocks, native=Native(self.api, body))

    def _item(self, scene: Scene, block: Block, index: int, ended: str) -> JsonObject:
        match block:
            case Thinking():
                summary = [{"type": "summary_text", "text": block.text}] if block.text else []
                sealed = {"encrypted_content": block.sealed} if block.sealed else {}
                return {"id": block.origin.item_id, "type": "reasoning", "summary": summary, **sealed}
            case ToolCall(kind="custom"):
                call = {"call_id": block.raw_id, "name": block.name, "input": block.arguments}
                return {
                    "id": self.item_id(scene.names, "ctc", index),
                    "type": "custom_tool_call",
                    "status": ended,
                    **call,
                }
            case ToolCall():
                call = {"call_id": block.raw_id, "name": block.name, "arguments": arguments_text(block)}
                return {"id": block.origin.item_id, "type": "function_call", "status": ended, **call}
            case _:
                text = block.text if isinstance(block, Text) else ""
                part: JsonObject = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
                said: JsonObject = {"type": "message", "role": "assistant", "status": ended, "content": [part]}
                return {"id": self.item_id(scene.names, "msg", index), **said}

    def begun(self, block: Text | Thinking | ToolCall) -> Text | Thinking | ToolCall:
        if block.native is None:
            return block
        bare = {key: value for key, value in block.native.fragment.items() if key != "encrypted_content"}
        bare.update({key: empty for key, empty in _EMPTY.items() if key in bare})
        return msgspec.structs.replace(block, native=Native(self.api, bare, intact=False))

    def spoken(self, scene: Scene, reply: dict[str, Any]) -> None:
        output = objects(reply.get("output"))
        thought: str | None = None
        for item in output:
            item_id = text_or_none(item.get("id"))
            if item_id is None:
                continue
            if item.get("type") == "reasoning":
                thought = item_id
            elif thought is not None and item.get("type") in _TURN_MAKERS:
                self._reasons[scene.account, item_id] = thought
        if scene.body.get("store") is False:
            return
        self._items.update({(scene.account, str(item.get("id"))): item for item in output})
        self._held[scene.account, str(reply.get("id"))] = _Held(self.entries(scene.body), reply)

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {"x-request-id": f"req_{names.of('request', 0, 32, HEX)}", "openai-version": "2020-10-01"}


def _page(items: list[JsonObject], query: Mapping[str, str]) -> JsonObject:
    """A page of a list, the newest first unless the other way is asked for."""
    items = items if query.get("order") == "asc" else items[::-1]
    ids = [item["id"] for item in items]
    begins = ids.index(query["after"]) + 1 if query.get("after") in ids else 0
    most = int(query["limit"]) if query.get("limit", "").isdecimal() else _PAGE
    page = items[begins : begins + most]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return {"object": "list", "data": page, **ends, "has_more": begins + most < len(items)}


def _cut(block: Block) -> Block:
    torn = isinstance(block, ToolCall) and block.arguments_text is not None
    return msgspec.structs.replace(block, broken=True) if torn else block


class AzureFoundry(OpenAIResponses):
    """Ids of items hold a partition key (AZF-07)."""

    api = "azure-foundry"
    base = "/openai/v1"
    needs = ()
    variable = "AZURE_AI_API_KEY"
    routes = (
        *_at("(?:/api/projects/[^/]+)?/openai(?:/v1)?/responses"),
        *_at("(?:/api/projects/[^/]+)?(?:/agents/[^/]+)?(?:/v1)?/responses"),
    )

    def key(self, asked: Asked) -> str | None:
        return asked.headers.get("api-key") or bearer(asked)

    def reply_id(self, names: Names) -> str:
        return self.item_id(names, "caresp", 0)

    def item_id(self, names: Names, prefix: str, index: int) -> str:
        return f"{prefix}_{names.of('partition', 0, 18, HEX)}{names.of(prefix, index, 32)}"

    def headers(self, names: Names, kind: str | None) -> dict[str, str]:
        return {
            "x-request-id": names.of("request", 0, 32, HEX),
            "x-ms-request-id": names.uuid("request"),
            "apim-request-id": names.uuid("gate"),
        }

    def refusal(self, said: dict[str, Any], asked: Asked, names: Names) -> Any:
        more = {"additionalInfo": {"request_id": names.of("request", 0, 32, HEX)}}
        return {**said, "error": {**(object_or_none(said.get("error")) or {}), **more}}
