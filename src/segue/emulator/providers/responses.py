"""OpenAI Responses and Azure AI Foundry: stored items and their reasoning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Finish, Reply, Usage
from segue.conformance.rule import Violation
from segue.emulator.errors.openai_responses import PREVIOUS_NOT_FOUND, response_not_found_error
from segue.emulator.http_messages import HttpRequest
from segue.emulator.providers import cache_rules
from segue.emulator.providers.provider import (
    Body,
    Compaction,
    Provider,
    RequestContext,
    Route,
    make_violation,
    post_route,
)
from segue.emulator.providers.responses_compaction import (
    TRIGGER,
    billed_items,
    held_items,
    make_compaction,
    readable_items,
)
from segue.emulator.signatures import HEX, IdGenerator
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject, object_list, object_or_none, text_or_none
from segue.wire.openai_responses.reply import render_envelope, render_usage
from segue.wire.stream.events import arguments_text
from segue.wire.vendor_tools.convert import restore_client_call

_INCLUDE = "reasoning.encrypted_content"
# The API has no reason for a pause; this one also means that the reply is unfinished.
_INCOMPLETE_REASONS: dict[Finish, str] = {
    "length": "max_output_tokens",
    "pause": "max_output_tokens",
    "filter": "content_filter",
}
_OPENING_FIELDS: JsonObject = {"summary": [], "content": [], "arguments": "", "input": "", "status": "in_progress"}
_ITEMS_WITH_REASONING = ("function_call", "custom_tool_call", "message")
_ID_SEGMENT = "/[^/]+"
_PAGE_SIZE = 20
_FOREIGN = "not from this provider and account"


def _response_routes(path: str) -> tuple[Route, ...]:
    """Return the routes to create, get, list and delete responses under this path."""
    stored_routes = ((_ID_SEGMENT, "GET"), (_ID_SEGMENT, "DELETE"), (f"{_ID_SEGMENT}/input_items", "GET"))
    return post_route(path), *(Route(re.compile(path + rest), "retrieve", method) for rest, method in stored_routes)


class _StoredResponse(NamedTuple):
    """A stored response with its input."""

    input_items: list[Any]
    response: JsonObject


class OpenAIResponses(Provider):
    """Responses and items are stored by id unless `store` is false."""

    api = "openai-responses"
    required_fields = ("model",)
    routes = (
        *_response_routes("(?:/v1)?/responses"),
        post_route("(?:/v1)?/responses/compact", "compact"),
        Route(re.compile("(?:/v1)?/models"), "models", "GET"),
    )
    signature_format = ("gAAAAABp", "url")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._stored: dict[tuple[str, str], _StoredResponse] = {}
        self._items: dict[tuple[str, str], Any] = {}
        self._reasoning_by_item: dict[tuple[str, str], str] = {}

    # --------------------------------------------------------------------------------------------------------- requests

    def conversation_entries(self, body: Body) -> list[Any]:
        given = body.get("input")
        return [{"role": "user", "content": given}] if isinstance(given, str) else super().conversation_entries(body)

    def billed_entries(self, body: Body) -> list[Any]:
        return billed_items(self.conversation_entries(body))

    def readable_body(self, body: Body, account: str) -> Body:
        entries = self.conversation_entries(body)
        items = readable_items(entries, self.signer, account)
        return body if items == entries else {**body, "input": items}

    def check_required(self, http_request: HttpRequest, body: Body) -> ApiError | None:
        """Require no model with a stored prompt, which has its own. The rules check whether an input is required."""
        return None if object_or_none(body.get("prompt")) else super().check_required(http_request, body)

    def restore_history(self, body: Body, account: str) -> Body | Violation:
        """Add the items of `previous_response_id` and resolve item references."""
        before = text_or_none(body.get("previous_response_id"))
        earlier: list[Any] = []
        if before is not None:
            known = self._stored.get((account, before))
            if known is None:
                return make_violation(PREVIOUS_NOT_FOUND, "previous_response_id", before)
            earlier = [*known.input_items, *object_list(known.response.get("output"))]
        given = self.conversation_entries(body)
        items = [self._resolve_reference(item, account) for item in given]
        if before is None and items == given:
            return body
        return {
            **{key: value for key, value in body.items() if key != "previous_response_id"},
            "input": earlier + items,
        }

    def _resolve_reference(self, item: Any, account: str) -> Any:
        named = object_or_none(item) or {}
        if named.get("type") not in ("item_reference", None) or "role" in named:
            return item
        return self._items.get((account, str(named.get("id"))), item)

    def check_state(self, body: Body, http_request: HttpRequest, account: str) -> Iterator[Violation]:
        """OAI-RESP-08 to 12, and 28: opaque content is from this account, reasoning present with what it came with."""
        items = object_list(body.get("input"))
        present = {text_or_none(item.get("id")) for item in items}
        for place, item in enumerate(items):
            path, item_id = f"input[{place}]", text_or_none(item.get("id"))
            encrypted = item.get("encrypted_content")
            if item.get("type") == "compaction":
                held = held_items(item, self.signer, account)
                if held is None:
                    rule = "OAI-RESP-11" if item_id is None else "OAI-RESP-12"
                    yield make_violation(rule, f"{path}.encrypted_content", _FOREIGN)
                elif item_id not in (None, held["id"]):
                    yield make_violation("OAI-RESP-28", f"{path}.id", "the content of another item")
            elif item.get("type") == "reasoning" and encrypted:
                if self.signer.verify(encrypted, account) is None:
                    yield make_violation("OAI-RESP-11", f"{path}.encrypted_content", _FOREIGN)
            elif item.get("type") in ("reasoning", "item_reference") and item_id is not None:
                if (account, item_id) not in self._items and not self.assumes_stored:
                    yield make_violation("OAI-RESP-10", path, item_id)
            elif item_id is not None:
                reasoning_id = self._reasoning_by_item.get((account, item_id))
                if reasoning_id is not None and reasoning_id not in present:
                    rule = "OAI-RESP-09" if item.get("type") == "message" else "OAI-RESP-08"
                    yield make_violation(rule, path, f"generated with '{reasoning_id}'")

    def stored_response(self, http_request: HttpRequest, account: str) -> ApiError | JsonObject:
        """Return a stored response or its input items, or delete it."""
        response_id, _, items = http_request.path.partition("/responses/")[2].partition("/")
        stored = self._stored.get((account, response_id))
        if stored is None:
            return response_not_found_error(response_id)
        if items:
            return _page(
                [self._input_item(item, response_id, at) for at, item in enumerate(stored.input_items)],
                http_request.query,
            )
        if http_request.method == "DELETE":
            del self._stored[account, response_id]
            for item in object_list(stored.response.get("output")):
                self._items.pop((account, str(item.get("id"))), None)
            return {"id": response_id, "object": "response", "deleted": True}
        return stored.response

    def _input_item(self, item: Any, response_id: str, at: int) -> JsonObject:
        """Return an input item as it is listed: with an id, a type and a content list."""
        given = object_or_none(item) or {}
        content = given.get("content")
        if isinstance(content, str):
            kind = "output_text" if given.get("role") == "assistant" else "input_text"
            given = {**given, "content": [{"type": kind, "text": content}]}
        entry = {"type": "message", "status": "completed", **given} if "role" in given else given
        prefix = {"message": "msg", "function_call": "fc", "reasoning": "rs"}.get(str(entry.get("type")), "item")
        return {"id": self.item_id(IdGenerator(self.seed, response_id), prefix, at), **entry}

    # ---------------------------------------------------------------------------------------------------------- replies

    def compact(self, context: RequestContext, prompt_usage: Usage) -> Compaction | None:
        items = self.conversation_entries(context.body)
        message_ids = [self.item_id(context.ids, "msg", at) for at in range(len(items))]
        return make_compaction(context, self.signer, self.item_id(context.ids, "cmp", 0), items, message_ids)

    def reply_id(self, ids: IdGenerator) -> str:
        return f"resp_{ids.make('reply', 0, 50, HEX)}"

    def item_id(self, ids: IdGenerator, prefix: str, index: int) -> str:
        return f"{prefix}_{ids.make(prefix, index, 50, HEX)}"

    def call_ids(self, context: RequestContext, index: int, tool: str) -> tuple[str | None, str | None]:
        return f"call_{context.ids.make('call', index, 24)}", self.item_id(context.ids, "fc", index)

    def has_reasoning(self, context: RequestContext) -> bool:
        reasoning = context.request.options.reasoning
        off = reasoning is not None and (reasoning.enabled is False or reasoning.effort == "none")
        reasons = context.identified_model.family == "gpt" and (
            context.identified_model.line == "o" or context.identified_model.at_least(5)
        )
        return reasons and not off

    def make_thinking(self, context: RequestContext, index: int, text: str) -> Thinking:
        """Return the reasoning: its text if a summary is requested, encrypted content if the client includes it."""
        shows_summary = bool((object_or_none(context.body.get("reasoning")) or {}).get("summary"))
        included = context.body.get("include")
        encrypted = self.sign(context, index, "") if isinstance(included, list) and _INCLUDE in included else None
        item_id = self.item_id(context.ids, "rs", index)
        origin = Origin(self.wire.provider, context.model, item_id=item_id)
        return Thinking(text if shows_summary else "", item_id, encrypted, origin)

    def complete_reply(self, context: RequestContext, reply: Reply) -> Reply:
        """Give every block an item id, and add the fields of the request that a response echoes."""
        status = "incomplete" if reply.finish in _INCOMPLETE_REASONS else "completed"
        # Only the last item can be incomplete; a call in it has incomplete arguments.
        states = [*["completed"] * (len(reply.blocks) - 1), status]
        cut = len(reply.blocks) - 1 if status == "incomplete" else None
        items = [self._output_item(context, block, at, states[at]) for at, block in enumerate(reply.blocks)]
        reason = _INCOMPLETE_REASONS.get(reply.finish)
        body: JsonObject = {
            **render_envelope(reply.id or "", reply.created, reply.model, context.body),
            "completed_at": reply.created if status == "completed" else None,
            "status": status,
            "incomplete_details": None if reason is None else {"reason": reason},
            "output": items,
            "usage": render_usage(reply.usage or Usage()),
        }
        blocks = tuple(
            msgspec.structs.replace(_mark_broken(block) if at == cut else block, native=Native(self.api, items[at]))
            for at, block in enumerate(reply.blocks)
        )
        return msgspec.structs.replace(reply, blocks=blocks, native=Native(self.api, body))

    def _output_item(self, context: RequestContext, block: Block, index: int, status: str) -> JsonObject:
        match block:
            case Thinking():
                summary = [{"type": "summary_text", "text": block.text}] if block.text else []
                encrypted = {"encrypted_content": block.encrypted} if block.encrypted else {}
                return {"id": block.origin.item_id, "type": "reasoning", "summary": summary, **encrypted}
            case ToolCall(kind="custom"):
                call = {"call_id": block.raw_id, "name": block.name, "input": block.arguments}
                return {
                    "id": self.item_id(context.ids, "ctc", index),
                    "type": "custom_tool_call",
                    "status": status,
                    **call,
                }
            case ToolCall():
                own_type = restore_client_call(block, context.request).native
                if own_type is not None:
                    # A tool that the API defines and the client runs.
                    own_id = self.item_id(context.ids, "tc", index)
                    return {**own_type.fragment, "id": own_id, "call_id": block.raw_id, "status": status}
                call = {"call_id": block.raw_id, "name": block.name, "arguments": arguments_text(block)}
                return {"id": block.origin.item_id, "type": "function_call", "status": status, **call}
            case _:
                text = block.text if isinstance(block, Text) else ""
                part: JsonObject = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
                item: JsonObject = {"type": "message", "role": "assistant", "status": status, "content": [part]}
                return {"id": self.item_id(context.ids, "msg", index), **item}

    def initial_block(self, block: Text | Thinking | ToolCall) -> Text | Thinking | ToolCall:
        if block.native is None:
            return block
        bare = {key: value for key, value in block.native.fragment.items() if key != "encrypted_content"}
        bare.update({key: empty for key, empty in _OPENING_FIELDS.items() if key in bare})
        return msgspec.structs.replace(block, native=Native(self.api, bare, intact=False))

    def complete_usage(self, usage: dict[str, Any], written: Mapping[float, int]) -> dict[str, Any]:
        return cache_rules.responses_usage(usage, written)

    def record_reply(self, context: RequestContext, reply: dict[str, Any]) -> None:
        output = object_list(reply.get("output"))
        thought: str | None = None
        for item in output:
            item_id = text_or_none(item.get("id"))
            if item_id is None:
                continue
            if item.get("type") == "reasoning":
                thought = item_id
            elif thought is not None and item.get("type") in _ITEMS_WITH_REASONING:
                self._reasoning_by_item[context.account, item_id] = thought
        if context.body.get("store") is False or context.operation == "compact":
            return
        self._items.update({(context.account, str(item.get("id"))): item for item in output})
        items = self.conversation_entries(context.body)
        if object_list(items)[-1:] and object_list(items)[-1].get("type") == TRIGGER:
            items = items[:-1]
        self._stored[context.account, str(reply.get("id"))] = _StoredResponse(items, reply)

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {"x-request-id": f"req_{ids.make('request', 0, 32, HEX)}", "openai-version": "2020-10-01"}


def _page(items: list[JsonObject], query: Mapping[str, str]) -> JsonObject:
    """Return a page of a list, newest first unless `order` is `asc`."""
    items = items if query.get("order") == "asc" else items[::-1]
    ids = [item["id"] for item in items]
    start = ids.index(query["after"]) + 1 if query.get("after") in ids else 0
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else _PAGE_SIZE
    page = items[start : start + limit]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return {"object": "list", "data": page, **ends, "has_more": start + limit < len(items)}


def _mark_broken(block: Block) -> Block:
    is_cut = isinstance(block, ToolCall) and block.arguments_text is not None
    return msgspec.structs.replace(block, broken=True) if is_cut else block


class AzureFoundry(OpenAIResponses):
    """Item ids contain a partition key (AZF-07)."""

    api = "azure-foundry"
    required_fields = ()
    routes = (
        *_response_routes("(?:/api/projects/[^/]+)?/openai(?:/v1)?/responses"),
        *_response_routes("(?:/api/projects/[^/]+)?(?:/agents/[^/]+)?(?:/v1)?/responses"),
    )

    def reply_id(self, ids: IdGenerator) -> str:
        return self.item_id(ids, "caresp", 0)

    def item_id(self, ids: IdGenerator, prefix: str, index: int) -> str:
        return f"{prefix}_{ids.make('partition', 0, 18, HEX)}{ids.make(prefix, index, 32)}"

    def headers(self, ids: IdGenerator, kind: str | None) -> dict[str, str]:
        return {
            "x-request-id": ids.make("request", 0, 32, HEX),
            "x-ms-request-id": ids.make_uuid("request"),
            "apim-request-id": ids.make_uuid("gate"),
        }

    def complete_error(self, error_body: dict[str, Any], http_request: HttpRequest, ids: IdGenerator) -> Any:
        more = {"additionalInfo": {"request_id": ids.make("request", 0, 32, HEX)}}
        return {**error_body, "error": {**(object_or_none(error_body.get("error")) or {}), **more}}
