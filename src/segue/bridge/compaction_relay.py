"""`CompactionRelay`: an exchange with a caller whose API compacts conversations.

What a provider's compaction stands for is saved with its reply, and put back for targets that can't use it. Where the
caller asks for a compaction and the target has none, its model writes a summary, which becomes the reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from segue.bridge.actions import Action, Save
from segue.bridge.api_paths import ApiPath
from segue.bridge.attempt import Attempt, bind_endpoint
from segue.bridge.caller import Caller
from segue.bridge.compaction import (
    ClientEntries,
    CompactedBody,
    CompactionRequest,
    CompactionTarget,
    continue_after,
    drop_threshold,
    find_compaction_request,
    find_threshold,
    make_entries,
    may_have_compactions,
)
from segue.bridge.provider_errors import TransportError, connection_error
from segue.bridge.providers import Endpoint
from segue.bridge.reasoning import ReplySealer
from segue.bridge.reply_relay import ReplyRelay
from segue.bridge.summary import MAX_SECONDS, Summary
from segue.canonical.blocks import Message, Native, Opaque
from segue.canonical.json import encode_json, parse_json_object
from segue.canonical.request import Reply, Request, Usage
from segue.errors import ProviderError, RemoteProtocolError
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import ApiError, CompactionForm, CompactionThreshold, RenderContext
from segue.wire.ids import IdMap
from segue.wire.json_values import JsonObject
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.registry import WIRES, find_wire_or_server
from segue.wire.stream.events import reply_events

_CHAT = "openai-chat"
_BYTES_PER_TOKEN = 4
# The part of the context that a body with a restored history may have; the rest is for the reply.
_ROOM_SHARE = 0.8


class CompactionRelay(ReplyRelay):
    """`ReplyRelay` for callers whose API has a `CompactionForm`."""

    _compacted: CompactedBody | None = None
    _request: CompactionRequest | None = None
    _summary: Summary | None = None
    _summarised: str | None = None
    """The compaction whose history is summarised, so that it fits the target's context."""
    _failed_at = ""
    """The target that wrote no summary."""
    _threshold: CompactionThreshold | None = None
    """The threshold above which the conversation is summarised now."""
    _summary_text: str | None = None
    """The summary of a conversation above the threshold."""
    _first_block: Opaque | None = None
    """The compaction that the reply begins with."""
    _deadline = inf
    """When all summaries of this exchange must be there."""
    _spent = Usage()
    """What finished and failed summaries of histories took."""

    def _start(self) -> list[Action]:
        self._restored = Report()
        if self._caller.api_path.operation == "compact":
            self._capture = None
        return super()._start()

    @cached_property
    def _entries(self) -> ClientEntries:
        settings = self._settings
        return ClientEntries(settings.keys, self._client, self._now, settings.max_age, settings.compaction_limit)

    @property
    def usage(self) -> Usage | None:
        usage = super().usage
        if self._summary is not None:
            usage = self._summary.usage + ((None if self._summary.is_complete else usage) or Usage())
        return usage if self._spent == Usage() else self._spent + (usage or Usage())

    @property
    def summary_usage(self) -> Usage | None:
        summary = self._spent if self._summary is None else self._spent + self._summary.usage
        return None if summary == Usage() else summary

    def _prepare(self) -> list[Action]:
        self._summary = self._summarised = self._threshold = None
        self._request = find_compaction_request(self._caller, self._given)
        body = self._given
        if may_have_compactions(self.wire, body):
            self._compacted = self._compacted or CompactedBody(self.wire, body, self._entries)
            target = self._compaction_target
            missing = self._compacted.find_missing(target) if self._settings.has_store else {}
            if missing:
                return self._load_compacted(self._compacted, missing)
            self._restored = Report()
            body = self._compacted.restore(target, self._restored)
            if self._request is None and self._compacted.restored is not None and len(body) > self._room:
                return self._fit(self._compacted, *self._compacted.restored)
        return self._send_body(body)

    def _send_body(self, body: bytes) -> list[Action]:
        request = self._request
        if self._is_native:
            self._use_body(body if request is None else request.native_body(body))
            return self._restore_reasoning()
        if request is not None:
            return self._summarise(request.plain_body(body), request.instructions)
        threshold = find_threshold(self.wire, self._caller.members_of(body))
        if threshold is not None:
            body = drop_threshold(self.wire, body)
            if self._summary_text is not None:
                body = continue_after(self.wire, body, self._summary_text)
            elif len(body) > threshold.tokens * _BYTES_PER_TOKEN and self._failed_at != self._selection.current.name:
                self._threshold = threshold
                return self._summarise(body, threshold.instructions)
        self._use_body(body)
        return self._restore_reasoning()

    @property
    def _room(self) -> float:
        """About how many bytes the context of the target has room for."""
        context = self._selection.current.context
        return inf if context is None else context * _BYTES_PER_TOKEN * _ROOM_SHARE

    def _fit(self, compacted: CompactedBody, digest: str, history: Sequence[JsonObject]) -> list[Action]:
        """Send the summary of a restored history that is too long for the target, or only its newest part."""
        endpoint = self._selection.current
        missing = compacted.name_summary(digest)
        if missing:
            return self._load_compacted(compacted, missing)
        self._restored = Report()
        target = self._compaction_target
        body = compacted.restore(target, self._restored, summarised=True)
        if compacted.has_summary(digest):
            return self._send_body(body)
        if self._failed_at == endpoint.name:
            self._restored, limit = Report(), int(self._room)
            return self._send_body(compacted.restore(target, self._restored, limit=limit))
        self._summarised = digest
        return self._begin_summary(self.wire.parse_request({self.wire.conversation_key: [*history]}).messages)

    @property
    def _is_native(self) -> bool:
        """Whether the target has the caller's API, and compacts conversations itself."""
        return self._compacts(self._selection.current)

    def _compacts(self, endpoint: Endpoint) -> bool:
        target = find_wire_or_server(endpoint.api, endpoint.profile, argument="api")
        row = target.constraints(parse_model(endpoint.model))
        return target.name == self.wire.name and row.compactions != "none"

    @property
    def _compaction_target(self) -> CompactionTarget:
        binding = bind_endpoint(self._selection.current)
        accounts = (bind_endpoint(target) for target in self._targets if self._compacts(target))
        first = next(accounts, binding)
        return CompactionTarget(binding, self._is_native, replace(first, model="") == replace(binding, model=""))

    def _load_compacted(self, compacted: CompactedBody, missing: Mapping[str, Any]) -> list[Action]:
        def proceed(found: Mapping[str, bytes]) -> list[Action]:
            compacted.add(missing, found)
            return self._prepare()

        return self.load(list(missing), proceed)

    def _use_body(self, body: bytes) -> None:
        if body != self._body:
            self._body = body
            for name in ("_conversation", "_opening"):
                vars(self).pop(name, None)

    def _send_attempt(self, attempt: Attempt) -> list[Action]:
        attempt.converted.report.extend(self._restored.findings)
        if self._summary is None:
            attempt.opening = self._first_block
        return super()._send_attempt(attempt)

    def _save(self, attempt: Attempt, response: Raw | None) -> list[Action]:
        saved = super()._save(attempt, response)
        if attempt.reply is None or not self._settings.has_store or not self._is_native:
            return saved
        binding = bind_endpoint(attempt.endpoint)
        entries = make_entries(self.wire, self._body, attempt.reply, binding, self._entries)
        return [*saved, Save(entries)] if entries else saved

    # ----------------------------------------------------------------------------------------------------- compactions

    def _summarise(self, body: bytes, instructions: str) -> list[Action]:
        """Let the target's model summarise the conversation."""
        value, _ = parse_json_object(body)
        messages = self.wire.parse_request(value).messages
        if not any(message.blocks for message in messages if message.speaker != "system"):
            error = ApiError(400, "There is nothing to summarize.", code=self._form.empty_code, error_kind="invalid")
            return self.respond_error(error)
        return self._begin_summary(messages, instructions)

    def _begin_summary(self, messages: Sequence[Message], instructions: str = "") -> list[Action]:
        self._summary = Summary(messages, self._selection.current, instructions)
        self._deadline = min(self._deadline, self._now + MAX_SECONDS)
        return self._send_part()

    @property
    def _now(self) -> float:
        return self._settings.now().timestamp()

    @property
    def _first_byte(self) -> float | None:
        return super()._first_byte if self._summary is None else self._deadline - self._now

    def _send_part(self) -> list[Action]:
        endpoint = self._selection.current
        if self._now >= self._deadline:
            late = TransportError("timeout", f"no summary of the conversation within {MAX_SECONDS:g} s")
            return self._end_attempt(connection_error(endpoint, late))
        return self._send_attempt(self._open_attempt(endpoint, reasoning=True))

    def _open_attempt(self, endpoint: Endpoint, *, reasoning: bool) -> Attempt:
        if self._summary is None:
            return super()._open_attempt(endpoint, reasoning=reasoning)
        body = self._summary.next_body(endpoint.model)
        caller = Caller(ApiPath(_CHAT, "reply"), WIRES[_CHAT], {}, body, {}, endpoint.model, stream=False)
        return Attempt(
            caller, body, self._route, endpoint, restorer=None, decoded=None, salt=self._salt, client=self._client
        )

    def _make_sealer(self, attempt: Attempt) -> ReplySealer | None:
        return super()._make_sealer(attempt) if self._summary is None else None

    def _close_whole(self, attempt: Attempt) -> list[Action]:
        summary = self._summary
        if summary is None:
            return super()._close_whole(attempt)
        try:
            summary.add(attempt.read_reply().reply)
        except RemoteProtocolError as error:
            return self._end_attempt(attempt.protocol_error(error))
        if not summary.is_complete:
            return self._send_part()
        if self._threshold is not None and not self._threshold.pauses:
            self._spent += summary.usage
            self._first_block, self._summary_text = self._make_block(summary), summary.text
            return self._prepare()
        if self._summarised is None or self._compacted is None:
            self._selection.succeed()
            return self._respond_compaction(summary)
        self._spent += summary.usage
        entries = self._compacted.save_summary(self._summarised, summary.text, bind_endpoint(attempt.endpoint))
        return [*([Save(entries)] if entries else []), *self._prepare()]

    def _end_attempt(self, error: ProviderError) -> list[Action]:
        if self._summary is None or (self._summarised is None and self._threshold is None):
            return super()._end_attempt(error)
        # Without a summary, the newest part of the history is better than an error.
        self._spent += self._summary.usage
        self._failed_at = self._selection.current.name
        return self._prepare()

    def _respond_compaction(self, summary: Summary) -> list[Action]:
        """Answer with one compaction that holds the summary."""
        wire, model, block = self.wire, self._selection.current.model, self._make_block(summary)
        created = int(self._settings.now().timestamp())
        name = self._caller.model if self._route.keeps_model_name else model
        reply = Reply((block,), self._form.finish, summary.usage, wire.make_reply_id(self._salt), name, created=created)
        body = self._given if self._request is None else self._request.plain_body(self._given)
        value, _ = parse_json_object(body)
        parsed: Request = wire.parse_request(value)
        ids = IdMap(wire.id_scheme(parse_model(model)), provider=wire.provider)
        context = RenderContext(ids, NameMap(ANY_NAME), Report(), request=parsed)
        if self._caller.stream:
            self._hold(wire.stream_renderer(context, name).render(reply_events(reply)))
            response = self._capture.response if self._capture is not None else None
            return [*self._save_response(response), *self._write_held(), *self._end_stream(b"")]
        rendered = wire.render_reply(reply, context)
        response = Raw(encode_json(rendered)) if self._capture is not None else None
        return [*self._save_response(response), *self.respond_json(rendered)]

    def _make_block(self, summary: Summary) -> Opaque:
        """Return a compaction that holds the summary."""
        envelope = self._entries.seal_summary(summary.text, self._selection.current.model) or ""
        item = self._form.make(self._salt, summary.text, envelope)
        native = Native(self.wire.name, item)
        return Opaque(item["type"], text=summary.text, native=native, omit_reason="compaction")

    @property
    def _form(self) -> CompactionForm:
        assert self.wire.compaction is not None
        return self.wire.compaction

    @property
    def _answered_body(self) -> bytes:
        """A compaction stands for all items before it."""
        return self._given if self._request is None else self._request.empty_body(self._given)

    def respond_json(self, body: Mapping[str, object]) -> list[Action]:
        if self._request is not None and self._request.is_standalone:
            body = self._request.render_standalone(self._given, body)
        return super().respond_json(body)

    def _save_response(self, response: Raw | None) -> list[Action]:
        entries = self._response_entry(response)
        return [Save(entries)] if entries else []
