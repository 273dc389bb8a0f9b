"""`segue.Conversation`: a conversation that grows message by message and can be rendered for any target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil
from typing import Any, NamedTuple

import msgspec

from segue._conversation_state import ConversationState
from segue._convert import build_policy
from segue._literals import Api, Profile, ToolFormat
from segue._rendered import Rendered, make_sent_request
from segue._switch_cost import CostOf, Prompt, SwitchCost, cost_by_table, predict, predict_requests
from segue._tools import parse_declaration
from segue.canonical.blocks import Block, Message, Opaque, Origin, Speaker, Thinking, ToolCall, ToolResponse, origins_of
from segue.canonical.codec import decode_interaction, dumps, encode_value, loads
from segue.canonical.compress import CompressionResult, MessageChange, Summariser, compress
from segue.canonical.history import History, bind_reasoning
from segue.canonical.json import parse_json_object, to_plain_json
from segue.canonical.request import Options, Reply, Request, Tool
from segue.canonical.tokens import TokenCounter, TokenEstimator, estimate_settings
from segue.canonical.type_warmup import warm_type
from segue.coerce import Body, Content, choose_api, coerce_blocks, detect_reply_api, parse_loosely
from segue.conversion.convert import report_conflicting_results, report_dropped_model
from segue.conversion.segments import ExtendedBody, RenderedPrefix
from segue.conversion.target import RenderTarget
from segue.errors import InputError, format_count, mismatch_error, require_string, unknown_name_error
from segue.models import is_other_model, is_same_model, parse_model, resolve_alias
from segue.render.compaction import is_compaction
from segue.render.constraints import TEXTS, HostedPolicy, IdPolicy, OrphanPolicy, PendingPolicy, Policy, ReasoningPolicy
from segue.render.reasoning_prefix import digest_transcript, record_prefixes
from segue.render.report import ChainedReport, Report
from segue.render.transcript import Transcript
from segue.reply import map_reply, parse_reply
from segue.wire.base import Fetch, validate_fetch
from segue.wire.detect_body import detect_source
from segue.wire.registry import find_wire, find_wire_or_server, vendor_of_model

# For how many targets the rendered prefix is cached.
_MAX_CACHED_TARGETS = 3


class _CachedPrefix(NamedTuple):
    """A rendered prefix, valid while no message of it is changed."""

    prefix: RenderedPrefix
    edit_count: int
    is_used: bool = False
    """Whether the target was rendered for more than once."""


class Conversation:
    """A conversation with tools. `system`, `tools` and `options` can be changed at any time."""

    def __init__(
        self, system: str | None = None, tools: Sequence[Tool | Mapping[str, Any]] = (), **options: object
    ) -> None:
        self.state = ConversationState()
        self._prefixes: dict[RenderTarget, _CachedPrefix] = {}
        self._reported_changes: dict[tuple[str, str | None], int] = {}
        self._replaced: tuple[Request, Request] | None = None
        """The request of the conversation, and the same with the options of the last render."""
        self._input_changes: tuple[str, ...] = ()
        """What was changed in the body that the conversation continues, before it was parsed."""
        self.system = system
        self.tools = tools
        self.options = options

    def __repr__(self) -> str:
        calls = f", {format_count(len(self.pending), 'pending call')}" if self.pending else ""
        messages, tokens = format_count(len(self.messages), "message"), format_count(self.tokens, "token")
        return f"<Conversation: {messages}{calls}, about {tokens}>"

    @property
    def system(self) -> str | None:
        """The system text."""
        texts = self.state.request.system
        return "\n\n".join(block.text for block in texts) if texts else None

    @system.setter
    def system(self, text: str | None) -> None:
        if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("system text must be a string", path="system")
        self._update_request(system=coerce_blocks(text) if text else ())

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The declared tools; declarations of any API can be assigned."""
        return self.state.request.tools

    @tools.setter
    def tools(self, declarations: Sequence[Tool | Mapping[str, Any]]) -> None:
        if not isinstance(declarations, Iterable) or isinstance(declarations, str | bytes | bytearray | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"a list of tool declarations was expected, not {type(declarations).__name__}"
            raise InputError(message, path="tools")
        self._update_request(
            tools=tuple(tool for position, entry in enumerate(declarations) for tool in _parse_tools(entry, position))
        )

    @property
    def options(self) -> Options:
        """The options of the next request; a mapping can be assigned."""
        return self.state.request.options

    @options.setter
    def options(self, options: Options | Mapping[str, object]) -> None:
        if isinstance(options, Mapping):
            unknown = set(options) - set(Options.__struct_encode_fields__)
            if unknown:
                raise unknown_name_error("option", min(unknown), Options.__struct_encode_fields__, path="options")
            try:
                options = msgspec.convert(to_plain_json(dict(options)), warm_type(Options))
            except msgspec.ValidationError as error:
                raise mismatch_error(error, "options") from None
        self._update_request(options=options)

    def _update_request(self, **changes: object) -> None:
        """Change the request; its `native` is cleared, since it no longer matches the original body."""
        self.state.request = msgspec.structs.replace(self.state.request, native=None, **changes)

    @classmethod
    def from_body(cls, body: Body, *, source: Api | None = None) -> Conversation:
        """Return a conversation that continues a request body."""
        if source is not None:
            source = choose_api(source, body, None, argument="source")
        value, changes = parse_loosely(body, source)
        wire = find_wire(detect_source(value) if source is None else source, argument="source")
        request = wire.parse_request(value)
        chat = cls._from_request(request, record_prefixes(request))
        chat._input_changes = changes
        return chat

    @classmethod
    def _from_request(cls, request: Request, messages: Iterable[Message], *, turns: int = 0) -> Conversation:
        chat = cls()
        chat.state.request = msgspec.structs.replace(request, messages=())
        chat.state.history = History(messages, turns=turns)
        return chat

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, after compressions and rewinds."""
        return self.state.history.messages

    @property
    def pending(self) -> list[ToolCall]:
        """Calls without a result, in call order."""
        return self.state.history.pending

    def add_user(self, content: Content) -> None:
        """Add a user message: text, canonical blocks, or content parts of any API."""
        self.state.history.add(Message("human", coerce_blocks(content)))

    def add_assistant(self, text: str) -> None:
        """Add a reply that no model made, such as an example."""
        require_string(text, "text")
        self.add_blocks(*coerce_blocks(text))

    def add_reply(self, reply: Body | Reply, *, source: Api | None = None) -> Reply:
        """Add a model's reply and return it with this conversation's ids in its calls."""
        if not isinstance(reply, Reply):
            api = detect_reply_api(parse_json_object(reply)[0]) if source is None else source
            wire = find_wire(api, argument="source")
            reply = parse_reply(wire, reply)
            if self.state.sent_request is not None and self.state.sent_request.wire.name == wire.name:
                reply = map_reply(reply, self.state.sent_request)
        # Results that were added after the request was sent are not final yet.
        if self.state.synthetic_calls is not None:
            self.mark_sent()
        self.state.synthetic_calls = ()
        self.state.calibrate_tokens(reply.usage, reply.model)
        blocks = self._record_compactions(tuple(_clear_id(block) for block in reply.blocks))
        if any(isinstance(block, Thinking) for block in blocks):
            blocks = self._record_reasoning(blocks, reply.model)
        added = self.state.history.add(Message("ai", blocks, turn_key=self.state.history.open_turn()))
        return msgspec.structs.replace(reply, blocks=added[0].blocks if added else ())

    def _record_compactions(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Record how many messages a compaction in a reply stands for: the conversation has them all."""
        if not any(map(is_compaction, blocks)):
            return blocks
        count = {"messages": len(self.messages)}
        return tuple(
            msgspec.structs.replace(block, extra={**(block.extra or {}), **count}) if is_compaction(block) else block
            for block in blocks
        )

    def _record_reasoning(self, blocks: tuple[Block, ...], model: str | None) -> tuple[Block, ...]:
        """Record the model of a reply's reasoning, and its prefix where the model binds reasoning to it."""
        transcript, _, sent = self.state.last_request
        if transcript is None or sent is None:
            return blocks
        recorded = _choose_recorded(model, transcript.model)
        blocks = _attribute_reasoning(blocks, transcript.constraints.provider, model, recorded)
        name = resolve_alias(transcript.rules_model, recorded) or recorded or sent.wire.default_model
        if sent.wire.constraints(parse_model(name)).reasoning_binding == "prefix":
            blocks = bind_reasoning(blocks, digest_transcript(transcript))
        return blocks

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of the next request."""
        return ceil(self.state.estimate_tokens() * self.state.token_estimator.ratio())

    def switch_cost(
        self,
        target: str,
        *,
        current: str | None = None,
        ages: Mapping[str, float] | None = None,
        cost_of: CostOf | None = None,
    ) -> SwitchCost:
        """Predict what a switch to `target`, a `provider/model` or a model, costs; `str` of it is a sentence.

        `current` is the model to compare with, by default the one that replied last. `ages` are the seconds since the
        last reply of each of the two, by the same names: they decide whether its cache is still there. Prices are those
        of the table in segue, or of `cost_of`.
        """
        last = current or next(reversed(self.state.last_usages), None)
        if last is None:
            raise InputError("no model has replied yet; name one", path="current")
        here, there = (self._predict_prompt(name, (ages or {}).get(name)) for name in (last, target))
        if there.age is None or (there.provider != here.provider and is_same_model(there.model, here.model)):
            # Nothing proves that the target has a cache of this conversation.
            there = msgspec.structs.replace(there, last=None)
        outputs = [usage.output for usage, _ in self.state.last_usages.values()]
        return predict(here, there, cost_of or cost_by_table, output=outputs[-1] if outputs else 0)

    def requests_cost(
        self, model: str, count: int = 1, *, ages: Mapping[str, float] | None = None, cost_of: CostOf | None = None
    ) -> float | None:
        """Predict what the next `count` requests to a model cost, in dollars; None if it has no known price.

        `ages` and `cost_of` are those of `switch_cost`. Without an age, a model has no cache of this conversation.
        """
        prompt = self._predict_prompt(model, (ages or {}).get(model))
        if prompt.age is None:
            prompt = msgspec.structs.replace(prompt, last=None)
        newest = next(reversed(self.state.last_usages.values()), None)
        output = newest[0].output if newest is not None else None
        return predict_requests(prompt, cost_of or cost_by_table, output=output, count=count)

    def _predict_prompt(self, name: str, age: float | None) -> Prompt:
        provider, slash, model = name.partition("/")
        if not slash:
            provider, model = vendor_of_model(name) or "", name
        tokens, usage, is_measured = self.state.predict_tokens(model)
        return Prompt(provider, model, tokens, usage, age, is_measured=is_measured)

    def pin(self, message: Message) -> Message:
        """Exclude a message from compression; return it as it is stored now."""
        return self.state.history.pin(message)

    def compress(
        self, strategy: str, budget: int, *, summarise: Summariser | None = None, count: TokenCounter | None = None
    ) -> CompressionResult:
        """Compress the request to at most `budget` tokens by the estimate, or its messages by `count`.

        Strategies: `truncate-results`, `drop-oldest`, `middle-out` (which needs `summarise`), `dense`. The changes are
        in the result, and in the report of the next request to each target.
        """
        settings = ceil(estimate_settings(self.state.request) * self.state.token_estimator.ratio())
        request = msgspec.structs.replace(self.state.request, messages=self.state.history.complete_from_ledger()[0])
        result = compress(
            # Reasoning is bound to its prefix before the compression.
            record_prefixes(request),
            strategy,
            budget,
            count=count or self.state.token_estimator,
            summarise=summarise,
            has_provider_state=request.continues is not None,
            fixed=settings if count is None else 0,
        )
        if result.changes:
            self.state.history.replace_messages(result.messages, dict(enumerate(result.places)))
            self.state.compression_changes += result.changes
        return result

    def mark_sent(self) -> None:
        """Mark the last request as sent: its results are final.

        Calls that got a synthetic result in it are recorded as interrupted, unless they run in the background.
        """
        for call_id in self.state.synthetic_calls or ():
            if self.state.history.is_pending(call_id) and (call := self.state.find_call(call_id)).awaited:
                self.interrupt(call, TEXTS.no_result)
        self.state.synthetic_calls = None if self.state.sent_request is not None else ()
        self.state.history.mark_sent()

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        """Add the result of a call, given as a `ToolCall`, a canonical id, or a raw id in the newest turn.

        Text and blocks are kept; any other value is a JSON result. Bytes are not accepted: pass a `Media` block.
        """
        self.state.history.add(self.state.build_outcome(call, content, error=error))

    def cancel(self, call: ToolCall | str) -> None:
        """Record that a call was cancelled."""
        self.state.history.add(self.state.build_outcome(call, outcome="cancelled"))

    def interrupt(self, call: ToolCall | str, reason: str) -> None:
        """Record that a call was interrupted: its result is not known."""
        self.state.history.add(self.state.build_outcome(call, outcome="interrupted", reason=reason))

    def add_blocks(self, *blocks: Block, speaker: Speaker | None = None) -> tuple[Message, ...]:
        """Add blocks, such as parsed items. Without `speaker`, each block gets the default speaker of its type.

        Calls get this conversation's ids; results are paired by raw id, or by name and order.
        """

        for place, block in enumerate(blocks):
            if not isinstance(block, Block):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError("a block was expected, as returned by `parse_item`", path=f"blocks[{place}]")

        def speaker_of(block: Block) -> Speaker:
            return speaker or _default_speaker(block)

        added: list[Message] = []
        for run_speaker, run in groupby(map(self._clear_parsed_id, blocks), key=speaker_of):
            content = tuple(run)
            turn_key = self.state.history.open_turn() if any(isinstance(block, ToolCall) for block in content) else None
            added += self.state.history.add(Message(run_speaker, content, turn_key=turn_key))
        return tuple(added)

    def _clear_parsed_id(self, block: Block) -> Block:
        """Clear an id that this conversation did not assign: `parse_item` assigns one too."""
        if isinstance(block, ToolCall):
            return msgspec.structs.replace(block, id="")
        if isinstance(block, ToolResponse) and block.call_id not in self.state.history.ledger:
            return msgspec.structs.replace(block, call_id="", hosted=block.hosted or self._is_hosted_result(block))
        return block

    def _is_hosted_result(self, response: ToolResponse) -> bool:
        """Return whether the newest call with this raw id is hosted: the result itself may not contain that."""
        raw_id = response.origin.raw_id
        calls = (entry.call for entry in reversed(self.state.history.ledger.values()) if not entry.rewound)
        call = next((call for call in calls if call.origin.raw_id == raw_id), None) if raw_id is not None else None
        return call is not None and call.kind == "hosted" and not call.origin.is_approval

    def render(
        self,
        target: Api,
        model: str | None = None,
        *,
        profile: Profile | str | None = None,
        tool_format: ToolFormat = "auto",
        fetch: Fetch | None = None,
        options: Options | None = None,
        ids: IdPolicy = "auto",
        reasoning: ReasoningPolicy = "native",
        hosted: HostedPolicy = "pair",
        pending: PendingPolicy = "complete",
        orphans: OrphanPolicy = "text",
        policy: Policy | None = None,
    ) -> Rendered:
        """Render the next request for the target, or for a server profile of it.

        `options` are used for this request in place of those of the conversation; a `policy` has the values of `ids` to
        `orphans`.
        """
        require_string(model, "model", required=False)
        require_string(tool_format, "tool_format")
        validate_fetch(fetch)
        policy = build_policy(policy, ids=ids, reasoning=reasoning, hosted=hosted, pending=pending, orphans=orphans)
        wire = find_wire_or_server(target, profile, argument="target")
        request = self._replace_options(options)
        destination = RenderTarget.choose(
            request, wire, model, self._iter_origins(), tool_format=tool_format, policy=policy, fetch=fetch
        )
        extended = self._extend_prefix(destination, request)
        if extended is not None:
            report = ChainedReport((self._history_report(destination), extended.report))
            sent_request = make_sent_request(destination, request, extended.names)
            rendered = Rendered(report, sent_request, fragments=extended.fragments)
            return self._record_render(rendered, extended.transcript, extended.newest_report)
        report = Report()
        messages, restored_ids = self.state.history.complete_from_ledger()
        transcript, full = destination.render(msgspec.structs.replace(request, messages=messages), report)
        cached = self._prefixes.get(destination)
        if cached is not None and cached.is_used and not restored_ids:
            prefix = cached.prefix.with_whole_render(messages, transcript, full)
            self._prefixes[destination] = cached._replace(prefix=prefix)
        report = ChainedReport((self._history_report(destination, restored_ids), report))
        rendered = Rendered(report, make_sent_request(destination, request, full.names), body=full.body)
        return self._record_render(rendered, transcript, report)

    def _replace_options(self, options: Options | None) -> Request:
        """Return the request with these options; the same object as before if neither has changed."""
        request = self.state.request
        if options is None or options == request.options:
            return request
        if self._replaced is None or self._replaced[0] is not request or self._replaced[1].options != options:
            self._replaced = request, msgspec.structs.replace(request, options=options, native=None)
        return self._replaced[1]

    def _iter_origins(self) -> Iterator[Origin]:
        """Yield the origins of all replies, newest first."""
        for message in reversed(self.messages):
            yield from reversed(origins_of(message))

    def _history_report(self, target: RenderTarget, restored_ids: Iterable[str] = ()) -> Report:
        """Report a dropped model, restored and conflicting results, and compressions new for this target."""
        report = Report()
        for change in self._input_changes:
            report.add("adjusted", change)
        if target.model is None:
            report_dropped_model(self.state.request, target.wire, report)
        for call_id in restored_ids:
            report.add("supplied", "missing call or result restored from the conversation", call_id=call_id)
        report_conflicting_results(self.state.history.conflicting, report)
        key = target.wire.name, target.model
        for change in self.state.compression_changes[self._reported_changes.get(key, 0) :]:
            if not self.state.history.is_rewound(change.calls):
                for call_id in change.calls or (None,):
                    report.add("compressed", str(change), call_id=call_id)
        self._reported_changes[key] = len(self.state.compression_changes)
        return report

    def _extend_prefix(self, target: RenderTarget, request: Request) -> ExtendedBody | None:
        """Render what was added since the prefix for this target was rendered; None if a full render is needed.

        The first render for a target is a full one, so that a target that is used once costs nothing more.
        """
        history = self.state.history
        if not target.can_extend(request):
            return None
        cached = self._prefixes.pop(target, None)
        is_new = cached is None
        if cached is None or cached.prefix.request is not request or cached.edit_count != history.edit_count:
            cached = _CachedPrefix(target.start_prefix(request), history.edit_count)
        extended = None
        if not is_new and not history.has_gaps:
            extended = cached.prefix.extend(history.slice(cached.prefix.length))
            prefix = extended.prefix if extended is not None else target.start_prefix(request)
            cached = _CachedPrefix(prefix, history.edit_count, is_used=True)
        self._prefixes[target] = cached
        if len(self._prefixes) > _MAX_CACHED_TARGETS:
            del self._prefixes[next(iter(self._prefixes))]
        return extended

    def _record_render(self, rendered: Rendered, transcript: Transcript, report: Report) -> Rendered:
        """Record the rendered request: the next reply is parsed as the reply to it."""
        self.state.sent_transcript = transcript
        self.state.synthetic_calls = [
            call_id for finding in report.findings_of("synthetic") for call_id in finding.call_ids
        ]
        self.state.sent_request = rendered.sent_request
        return rendered

    def dump(self) -> bytes:
        """Encode the conversation in its stored form, with all tool calls and results."""
        history = self.state.history
        request = msgspec.structs.replace(self.state.request, messages=history.messages)
        extra_fields = (
            {"tokens": msgspec.to_builtins(self.state.token_estimator)} if self.state.token_estimator.learned else {}
        )
        if self.state.compression_changes:
            extra_fields["compressed"] = msgspec.to_builtins(self.state.compression_changes)
        ledger = [encode_value(entry) for entry in history.ledger.values()]
        return dumps(request, turns=history.turns, ledger=ledger, **extra_fields)

    @classmethod
    def load(cls, data: bytes) -> Conversation:
        """Load a conversation stored by `dump`."""
        request, envelope = loads(data)
        chat = cls._from_request(request, request.messages, turns=int(envelope.get("turns", 0)))
        stored = enumerate(envelope.get("ledger", ()))
        chat.state.history.restore(decode_interaction(entry, f"ledger[{position}]") for position, entry in stored)
        chat.state.token_estimator = msgspec.convert(envelope.get("tokens", {}), warm_type(TokenEstimator))
        chat.state.compression_changes = [
            msgspec.convert(change, warm_type(MessageChange)) for change in envelope.get("compressed", ())
        ]
        return chat


def _default_speaker(block: Block) -> Speaker:
    """Return the default speaker of a block: `tool` for results, `human` for approval answers, else `ai`."""
    if isinstance(block, ToolResponse) and not block.hosted:
        return "tool"
    return "human" if isinstance(block, Opaque) and block.origin.is_approval else "ai"


def _clear_id(block: Block) -> Block:
    """Clear the id of a call, so that this conversation assigns its own."""
    return msgspec.structs.replace(block, id="") if isinstance(block, ToolCall) and block.id else block


def _choose_recorded(answered: str | None, asked: str | None) -> str | None:
    """Return the model to record for reasoning: the reply's, or the one asked for if that serves another version.

    The next request asks for the same name. A model of another family is another vendor's.
    """
    if not answered or not asked or not is_other_model(answered, asked):
        return answered or asked
    return asked if parse_model(answered).family == parse_model(asked).family else answered


def _attribute_reasoning(
    blocks: tuple[Block, ...], provider: str, answered: str | None, recorded: str | None
) -> tuple[Block, ...]:
    """Attribute a reply's reasoning of this provider to the recorded model."""

    def attribute(block: Block) -> Block:
        if not isinstance(block, Thinking) or block.origin.provider != provider:
            return block
        if block.origin.model not in (None, answered):
            return block
        return msgspec.structs.replace(block, origin=msgspec.structs.replace(block.origin, model=recorded))

    return tuple(map(attribute, blocks))


def _parse_tools(tool: Tool | Mapping[str, Any], position: int) -> tuple[Tool, ...]:
    """Parse a tool declaration of any API; one object of Gemini declares several."""
    if isinstance(tool, Tool):
        return (tool,)
    if not isinstance(tool, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("a tool's declaration must be an object", path=f"tools[{position}]")
    return parse_declaration(tool, position)
