"""Replies of a provider: parse them, extract tool calls from text, map names back, render them for the caller.

Whole replies and streams take the same steps. `Converted`, `Conversation` and the runtime all use this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from segue.canonical.blocks import Block, Message, Native, Thinking, ToolCall, ToolResponse
from segue.canonical.call_history import CallHistory
from segue.canonical.contents import summarize
from segue.canonical.ids import hash_tool_id, short_hash
from segue.canonical.json import parse_json_object
from segue.canonical.pairing import Pairer, has_own_calls
from segue.canonical.request import Finish, Reply, Request
from segue.errors import InputError, RemoteProtocolError
from segue.models import parse_model
from segue.render.content import drop_omitted_blocks
from segue.render.hosted import approvals_to_text
from segue.render.report import Report, field_level
from segue.wire.base import ApiError, RenderContext, Wire
from segue.wire.dropped_fields import report_dropped_fields
from segue.wire.ids import IdMap, ReplyIdMap
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits, check_calls, check_size
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.replies import (
    failed_finish_error,
    invalid_call_error,
    is_unnamed_call,
    report_extra_choices,
    unnamed_call_error,
)
from segue.wire.stream.events import Event, ReplyStart, UsageUpdate
from segue.wire.stream.parse import DEFAULT_TURN_KEY
from segue.wire.text.extractor import TextExtractor, choose_extractor, extract_from_reply
from segue.wire.text.names import TEXT_FORMAT_NAMES
from segue.wire.tools import drop_call_nulls, project_tool, restore_parameter_names, unwrap_free_text
from segue.wire.vendor_tools.convert import restore_client_call

# Fields of a reply that name its model.
_MODEL_FIELDS = ("model", "modelVersion", "model_version")
_LIMIT_FINISHES: tuple[Finish, ...] = ("length", "filter")
"""Reasons for which a provider ends a reply in the middle of a call."""


class ReasoningMapper(Protocol):
    """Maps the reasoning of a reply to a form that the caller's client sends back with the next request."""

    def map_start(self, block: Thinking) -> Thinking:
        """Map a block of reasoning whose text begins to arrive."""
        ...

    def map_block(self, block: Thinking) -> Thinking | None:
        """Map a complete block of reasoning. None if the caller gets nothing in its place."""
        ...

    def blocks_before(self, block: Block) -> list[Block]:
        """Return the blocks to insert before this one, which is not reasoning."""
        ...

    def add_call(self, call: ToolCall, given_id: str) -> None:
        """Record a complete call, and the id that the caller gets for it."""
        ...


class ReplyOptions(msgspec.Struct, frozen=True):
    """Options of one exchange with a caller.

    `model` is the model name that the caller gets. `salt` makes the ids of the reply's calls differ from those of any
    other exchange, even of one with the same request. `created` is the time of a reply that has none, in seconds since
    1970. With `buffer_tool_calls`, a streamed call starts when it is complete.
    """

    model: str | None = None
    salt: str = ""
    reasoning: ReasoningMapper | None = None
    created: int | None = None
    buffer_tool_calls: bool = False
    opening: Block | None = None
    """A block of the caller's API that comes before all others."""
    references: Mapping[str, Any] = {}
    """Fields of the caller's request that the provider did not get and the reply repeats."""


class ReadReply(msgspec.Struct, frozen=True):
    """A whole reply: in canonical form, as a body for the caller, and the report of what was changed."""

    reply: Reply
    body: dict[str, Any]
    report: Report


class SentRequest(msgspec.Struct, frozen=True):
    """The request that a reply belongs to. `source` is the API of the caller; None for a conversation.

    The messages of `request` are not read: where the reply depends on them, `history` has what it needs.
    """

    wire: Wire
    request: Request
    names: NameMap
    model: str | None
    tool_format: str
    source: Wire | None = None
    reply_key: str = ""
    """Unique for each request; the id of the caller's reply is made from it."""
    history: CallHistory | None = None
    """The calls of the caller's history, whose ids the reply must not repeat."""
    options: ReplyOptions = ReplyOptions()

    @property
    def caller_request(self) -> Request:
        """The request with the references of the caller's, which its reply repeats."""
        native, references = self.request.native, self.options.references
        if native is None or not references:
            return self.request
        native = msgspec.structs.replace(native, fragment={**native.fragment, **references})
        return msgspec.structs.replace(self.request, native=native)

    @property
    def is_cross_api(self) -> bool:
        return self.source is None or self.source.name != self.wire.name

    def assign_reply_id(self, reply_id: str | None) -> str | None:
        """Return the id of the caller's reply, given the provider's id.

        Clients merge replies with equal ids, and providers may send no id or always the same one.
        """
        if self.source is None:
            return reply_id
        if reply_id and not self.is_cross_api and self.source.keeps_reply_id(reply_id, self.request):
            return reply_id
        salt = self.options.salt
        return self.source.make_reply_id(short_hash(f"{self.reply_key}|{salt}") if salt else self.reply_key)

    def is_incomplete(self, call: ToolCall) -> bool:
        """Return whether the call was cut off, or its arguments are not valid JSON.

        Text that is not valid JSON is passed on unchanged on the same wire, if its clients validate arguments.
        """
        is_invalid = call.kind == "function" and call.arguments is None and bool(call.arguments_text)
        source = self.source
        keeps_text = source is not None and source.invalid_json_arguments and source.base_api == self.wire.base_api
        return call.broken or (is_invalid and not keeps_text)

    def find_error(
        self, finish: Finish | None, raw_finish: str | None, cut_call: ToolCall | None, *, cut_is_last: bool
    ) -> ApiError | None:
        """Return the error that the reply ends with for the caller; None if it ends regularly.

        An incomplete call is valid only as the last block of a reply that reached a limit.
        """
        if finish == "error" and self.is_cross_api:
            return failed_finish_error(raw_finish)
        is_limit = finish in _LIMIT_FINISHES and cut_is_last
        return None if cut_call is None or is_limit else invalid_call_error(cut_call)

    def build_extractor(self, report: Report, turn_key: str = DEFAULT_TURN_KEY) -> TextExtractor:
        """Return the extractor for tool calls in text; same-API only leaked calls are extracted, `<think>` stays."""
        return choose_extractor(
            self.wire,
            self.model,
            self.tool_format,
            turn_key=turn_key,
            tools=(project_tool(tool, self.names) for tool in self.request.tools),
            report=report,
            think=self.is_cross_api or self.tool_format in TEXT_FORMAT_NAMES,
        )

    def build_id_map(self, source: Wire) -> IdMap:
        """Return the map for the ids of the reply's calls in the caller's API."""
        scheme = source.id_scheme(parse_model(self.request.model))
        if self.history is None:
            return IdMap(scheme, provider=source.provider)
        return ReplyIdMap(scheme, provider=source.provider, history=self.history)

    def build_call_mapper(self) -> CallMapper:
        custom_tools = self.source is None or self.source.custom_tools
        return CallMapper(self.request, self.names, custom_tools=custom_tools)

    def salt_id(self, call: ToolCall) -> ToolCall:
        """Return the call with an id of this exchange only, if the options have a salt.

        Cross-API, also an id of the caller's own vendor is not kept: a server of OpenAI's Responses API may repeat its
        ids, and Chat callers would get them unchanged.
        """
        salt = self.options.salt
        if not salt or call.kind == "hosted":
            return call
        # A canonical id passes `canonical_tool_id` unchanged, so it is hashed.
        origin = msgspec.structs.replace(call.origin, raw_id=None) if self.is_cross_api else call.origin
        return msgspec.structs.replace(call, id=hash_tool_id("segue", call.id, call.name, salt, 0), origin=origin)

    def with_defaults(self, reply: Reply) -> Reply:
        """Return the reply with the requested model and the time of the exchange if it has none: not every API does."""
        if reply.model is not None and reply.created is not None:
            return reply
        created = self.options.created if reply.created is None else reply.created
        return msgspec.structs.replace(reply, model=reply.model or self.model, created=created)


def read_reply(sent: SentRequest, data: object, limits: ReplyLimits) -> ReadReply:
    """Parse a provider's whole reply, and render it for the caller of the request."""
    assert sent.source is not None
    report = Report(target=sent.source.name)
    reply = map_reply(sent.with_defaults(parse_reply(sent.wire, data, limits)), sent, report, turn_key="")
    return ReadReply(reply, render_reply(reply, sent.source, report, sent), report)


def parse_reply(wire: Wire, data: object, limits: ReplyLimits = DEFAULT_LIMITS) -> Reply:
    """Parse a provider's reply; raise `RemoteProtocolError` if it is invalid, above its limits or an error body."""
    check_size(data, limits)
    try:
        value, _ = parse_json_object(data)
        if _is_error(value):
            error = wire.parse_error(0, value)
            raise RemoteProtocolError(
                f"{wire.name} answered with an error: {error.kind}: {error.message}",
                status=error.status or None,
                code=error.code,
                kind=error.kind,
                message=error.message,
            )
        reply = wire.parse_reply(value)
    except InputError as error:
        raise RemoteProtocolError(f"not a reply of {wire.name}: {error}") from None
    require_call_names(reply, wire)
    check_calls(reply, limits)
    return _mark_cut_call(reply)


def require_call_names(reply: Reply, wire: Wire) -> None:
    """Raise `RemoteProtocolError` for a reply that has a call without a name."""
    if any(map(is_unnamed_call, reply.calls)):
        raise RemoteProtocolError(unnamed_call_error(wire.name).message)


def _mark_cut_call(reply: Reply) -> Reply:
    """Mark the last call as broken if its arguments were cut off at the token limit (OAI-CHAT-19)."""
    last = reply.blocks[-1] if reply.blocks else None
    cut = reply.finish == "length" and isinstance(last, ToolCall) and last.arguments_text and last.arguments is None
    if not cut or last is None:
        return reply
    blocks = (*reply.blocks[:-1], msgspec.structs.replace(last, broken=True))
    return msgspec.structs.replace(reply, blocks=blocks)


def _is_error(value: Mapping[str, Any]) -> bool:
    """Return whether this is an error body: with an `error` object or text, flat, or with a `detail` list."""
    flat = str(value.get("object")).lower() == "error" or isinstance(value.get("detail"), list)
    flat = flat or "__type" in value or list(value) in (["message"], ["Message"])
    error = value.get("error")
    return isinstance(error, dict) or (isinstance(error, str) and bool(error)) or flat


def map_reply(
    reply: Reply, sent: SentRequest, report: Report | None = None, *, turn_key: str = DEFAULT_TURN_KEY
) -> Reply:
    """Extract tool calls from the reply's text, and map its calls to the declared tool names."""
    reply = extract_from_reply(reply, sent.build_extractor(report or Report(), turn_key))
    mapper = sent.build_call_mapper()
    blocks = tuple(mapper.map_call(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
    return msgspec.structs.replace(reply, blocks=blocks)


class ReplyReader:
    """Reads a streamed reply: `feed` takes bytes and returns events, `close` returns the reply."""

    def __init__(self, sent: SentRequest) -> None:
        self.report = Report(target=sent.wire.name)
        self.first_content: Event | None = None
        """The first event of the stream that is not the start of the reply or its usage."""
        self._sent = sent
        self._parser = sent.wire.open_stream(DEFAULT_TURN_KEY)
        self._extractor: TextExtractor | None = sent.build_extractor(Report())
        self._reply: Reply | None = None

    def set_limits(self, limits: ReplyLimits) -> None:
        self._parser.set_limits(limits)

    @property
    def limit_error(self) -> ApiError | None:
        """The error of a reply above its limits; None within them."""
        return self._parser.limit_error

    def feed(self, data: bytes) -> list[Event]:
        self._parser.feed(data)
        events = self._parser.events()
        if self.first_content is None:
            content = (event for event in events if not isinstance(event, ReplyStart | UsageUpdate))
            self.first_content = next(content, None)
        if self._extractor is None:
            return events
        events = self._extractor.feed(events)
        if self._extractor.is_idle:
            self._extractor = None
        return events

    def close(self) -> Reply:
        """Return the whole reply. If the stream broke off, its finish is `error`."""
        if self._reply is None:
            reply = self._parser.close()
            require_call_names(reply, self._sent.wire)
            self._reply = map_reply(self._sent.with_defaults(reply), self._sent, self.report)
        return self._reply


def render_reply(reply: Reply, wire: Wire, report: Report, sent: SentRequest | None = None) -> dict[str, Any]:
    """Render a reply as a body of an API. It gets the reply id of the request, its calls ids that are new in it."""
    if sent is not None:
        _require_valid(reply, sent)
        reply = msgspec.structs.replace(reply, id=sent.assign_reply_id(reply.id))
    report_dropped(reply, wire, report, sealed=sent is not None and sent.options.reasoning is not None)
    reply = msgspec.structs.replace(reply, blocks=_drop_blocks(reply, wire, report))
    if sent is None:
        ids = IdMap(wire.id_scheme(parse_model(reply.model)), provider=wire.provider)
    else:
        reply = _assign_new_ids(reply, sent)
        ids = sent.build_id_map(wire)
    for call in reply.calls:
        ids.assign(call, call.name)
    if sent is not None:
        reply = _apply_options(reply, sent, ids)
        if sent.options.opening is not None:
            reply = msgspec.structs.replace(reply, blocks=(sent.options.opening, *reply.blocks))
    request = None if sent is None else sent.caller_request
    return wire.render_reply(reply, RenderContext(ids, NameMap(ANY_NAME), report, request=request))


def _apply_options(reply: Reply, sent: SentRequest, ids: IdMap) -> Reply:
    """Return the reply with the model name for the caller, and its reasoning mapped."""
    options = sent.options
    if options.model is not None:
        reply = msgspec.structs.replace(reply, model=options.model, native=_rename_model(reply.native, options.model))
    if options.reasoning is None:
        return reply
    blocks: list[Block] = []
    for block in reply.blocks:
        if isinstance(block, Thinking):
            mapped = options.reasoning.map_block(block)
            blocks += [] if mapped is None else [mapped]
            continue
        blocks += [*options.reasoning.blocks_before(block), block]
        if isinstance(block, ToolCall):
            options.reasoning.add_call(block, ids.render(block.id))
    return msgspec.structs.replace(reply, blocks=tuple(blocks))


def _rename_model(native: Native | None, model: str) -> Native | None:
    """Return the fragment of a reply with another model name, in the fields that name it."""
    named = {} if native is None else find_model_fields(native.fragment, model)
    if native is None or not named:
        return native
    return msgspec.structs.replace(native, fragment={**native.fragment, **named})


def find_model_fields(fragment: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the fields of a reply that name its model, with this name."""
    return {key: model for key in _MODEL_FIELDS if key in fragment}


def _require_valid(reply: Reply, sent: SentRequest) -> None:
    """Raise `RemoteProtocolError` for a reply that a stream would end with an error."""
    cut = [call for call in reply.calls if call.kind != "hosted" and sent.is_incomplete(call)]
    cut_call = cut[0] if cut else None
    error = sent.find_error(reply.finish, reply.raw_finish, cut_call, cut_is_last=cut == list(reply.blocks[-1:]))
    if error is not None:
        message = error.message
        raise RemoteProtocolError(message, status=error.status, code=error.code, kind=error.kind, message=message)


def _drop_blocks(reply: Reply, wire: Wire, report: Report) -> tuple[Block, ...]:
    """Drop blocks that the caller's API has no form for; same-API only incomplete calls of a changed reply."""
    if reply.native is None or reply.native.api != wire.name:
        return tuple(drop_omitted_blocks(approvals_to_text(reply.blocks, report), report))
    if reply.native.intact:
        return reply.blocks
    kept = (
        drop_omitted_blocks((block,), report) if isinstance(block, ToolCall) else (block,) for block in reply.blocks
    )
    return tuple(block for blocks in kept for block in blocks)


def _assign_new_ids(reply: Reply, sent: SentRequest) -> Reply:
    """Assign ids that are new in the caller's history, and restore calls of its vendor tools."""
    if not any(isinstance(block, ToolCall | ToolResponse) for block in reply.blocks):
        return reply
    blocks = _start_pairer(reply, sent.history).feed(Message("ai", reply.blocks)).blocks
    restored = (
        sent.salt_id(restore_client_call(block, sent.request)) if isinstance(block, ToolCall) else block
        for block in blocks
    )
    return msgspec.structs.replace(reply, blocks=tuple(restored))


def _start_pairer(reply: Reply, history: CallHistory | None) -> Pairer:
    """Return a pairer that continues the history. Only results without a call in the reply need its messages."""
    if history is None:
        return Pairer()
    if has_own_calls(reply.blocks):
        return Pairer(used_ids=history.ids)
    pairer = Pairer()
    for message in history.messages:
        pairer.feed(message)
    return pairer


class CallMapper:
    """Maps calls of a reply back to the caller's declarations: the name, free-text input, optional arguments."""

    def __init__(self, request: Request, names: NameMap, *, custom_tools: bool) -> None:
        self._request = request
        self._names = names
        self._custom = frozenset(tool.name for tool in request.tools if tool.kind == "custom" and custom_tools)
        self._strict = {tool.name: tool for tool in request.tools if tool.strict}
        self._has_hosted = any(tool.kind == "hosted" for tool in request.tools)

    def map_name(self, name: str) -> str:
        return self._names.parse(name)

    def needs_whole_call(self, call: ToolCall) -> bool:
        """Return whether the call must be complete before it is mapped, because its arguments may change too."""
        name = self.map_name(call.name)
        if self._has_hosted or name in self._strict or self._names.parameters.has_changed(name):
            return True
        return name in self._custom and call.kind != "custom"

    def map_call(self, call: ToolCall) -> ToolCall:
        name = self.map_name(call.name)
        call = call if name == call.name else msgspec.structs.replace(call, name=name)
        call = restore_parameter_names(call, self._names)
        return drop_call_nulls(unwrap_free_text(call, self._custom), self._strict)

    def map_complete_call(self, call: ToolCall) -> ToolCall:
        """Map a complete call, also to a tool type that the caller's API defines."""
        return restore_client_call(self.map_call(call), self._request)


def report_dropped(reply: Reply, wire: Wire, report: Report, *, sealed: bool = False) -> None:
    """Report the parts of a cross-API reply that only its own API has: they are dropped.

    Reasoning that is `sealed` is not: the caller sends it back.
    """
    if reply.native is None or reply.native.api == wire.name:
        return
    report_extra_choices(reply.other_choices, report)
    for key in reply.unknown_fields:
        why = f"`{key}` of the reply dropped: not supported by {wire.name}"
        report.add("dropped", why, subject=key, level=field_level(key))
    messages = (Message("ai", reply.blocks),)
    report_dropped_fields(Request(messages), summarize(messages), wire, report)
    signed = [block for block in reply.blocks if isinstance(block, Thinking) and (block.signature or block.encrypted)]
    if not sealed and any(block.origin.provider != wire.provider for block in signed):
        message = (
            f"signatures and encrypted content of {reply.native.api} reasoning dropped: not supported by {wire.name}"
        )
        report.add("reasoning", message, level="changed")
    cause = f" ({reply.raw_finish})" if reply.raw_finish else ""
    if reply.finish == "error":
        report.add("adjusted", f"the reply broke off{cause}", subject="finish")
    elif reply.finish == "pause":
        message = f"the reply is not finished{cause}: finish reason adapted to {wire.name}"
        report.add("adjusted", message, subject="finish")
