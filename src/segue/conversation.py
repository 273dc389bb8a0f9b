"""`segue.Conversation`: a conversation that grows message by message and can be rendered for any target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from math import ceil
from typing import Any, cast

import msgspec

from segue.answering import Answering, Asked, understood
from segue.canonical.blocks import (
    Block,
    Message,
    Opaque,
    Outcome,
    Speaker,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    state_of,
)
from segue.canonical.codec import decode_interaction, dumped, dumps, loads
from segue.canonical.compress import Compressed, Note, Summarise, compress
from segue.canonical.history import History, bound_to
from segue.canonical.jsontext import plain, read_object, write
from segue.canonical.learning import learnt
from segue.canonical.request import Options, Reply, Request, Tool, Usage
from segue.canonical.tokens import Count, Estimate, weigh, weigh_settings
from segue.carry import Kept, Said, say
from segue.contents import Content, are_blocks, are_parts, blocks_of, reply_source
from segue.convert import Body, policy_of, with_profile
from segue.declarations import parse_declaration
from segue.errors import InputError, text_argument
from segue.increments import Chained, Increments
from segue.models import identify
from segue.render.demands import TEXTS, Policy
from segue.render.reasoning_bound import remembering, sent_digest
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.replies import parse_reply
from segue.wire.base import Fetch, Wire
from segue.wire.detect import detect_source
from segue.wire.names import NameMap
from segue.wire.registry import WIRES, find
from segue.wire.text.registry import TEXT_FORMATS

__all__ = ["Conversation", "Rendered"]

# For how many targets the rendered prefix is cached.
_TARGETS = 3


class Rendered:
    """A body ready to be sent. `fragments` are its bytes in chunks, to be written one after the other."""

    def __init__(
        self,
        report: Report,
        asked: Asked,
        *,
        body: dict[str, Any] | None = None,
        fragments: list[bytes] | None = None,
    ) -> None:
        self.report = report
        self._asked = asked
        if body is not None:
            self.body = body
        if fragments is not None:
            self.fragments = fragments

    @cached_property
    def body(self) -> dict[str, Any]:
        return read_object(self.data)[0]

    @cached_property
    def fragments(self) -> list[bytes]:
        return [write(self.body)]

    @cached_property
    def data(self) -> bytes:
        return b"".join(self.fragments)

    @property
    def asked(self) -> Asked:
        """The target, and the projected tool names."""
        return self._asked

    def answer(self) -> Answering:
        """Return a reader for the provider's stream: `feed` it the bytes; `close` returns a reply for `add_reply`."""
        return Answering(self._asked)


class _Target(msgspec.Struct, frozen=True):
    """The target of a render and its settings."""

    wire: Wire
    model: str | None
    tool_format: str
    policy: Policy
    fetch: Fetch | None

    def __hash__(self) -> int:
        return hash((self.wire.name, self.model, self.tool_format, self.policy))

    @property
    def grows(self) -> bool:
        """Whether the rendered prefix can be cached: not with text formats or reasoning bound to its prefix."""
        if self.tool_format in TEXT_FORMATS:
            return False
        return self.wire.demands(identify(self.model or self.wire.default_model)).reasoning_bound != "prefix"

    def asked(self, request: Request, names: NameMap) -> Asked:
        return Asked(self.wire, request, names, self.model or self.wire.default_model, self.tool_format)

    def say(self, request: Request, report: Report, kept: Kept | None = None) -> tuple[Transcript, Said]:
        return say(
            request,
            self.wire,
            report,
            self.policy,
            model=self.model,
            tool_format=self.tool_format,
            fetch=self.fetch,
            kept=kept,
        )


class Conversation:
    """A conversation with tools. `system`, `tools` and `options` can be changed at any time."""

    def __init__(
        self, system: str | None = None, tools: Sequence[Tool | Mapping[str, Any]] = (), **options: object
    ) -> None:
        self._request = Request(())
        self._history = History()
        self._growing: dict[_Target, tuple[Request, Increments]] = {}
        self._sent: Transcript | None = None
        self._made_up: Sequence[str] = ()
        self._asked: Asked | None = None
        self._compressed: list[Note] = []
        self._told: dict[tuple[str, str | None], int] = {}
        self._estimate = Estimate()
        self._weighed: tuple[int, int, float] = (0, 0, 0.0)
        self.system = system
        self.tools = tools
        self.options = options

    @property
    def system(self) -> str | None:
        texts = self._request.system
        return "\n\n".join(block.text for block in texts) if texts else None

    @system.setter
    def system(self, text: str | None) -> None:
        if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("system text must be a string", path="system")
        self._set(system=(Text(text),) if text else ())

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._request.tools

    @tools.setter
    def tools(self, declarations: Sequence[Tool | Mapping[str, Any]]) -> None:
        self._set(tools=tuple(tool for at, given in enumerate(declarations) for tool in _declared(given, at)))

    @property
    def options(self) -> Options:
        return self._request.options

    @options.setter
    def options(self, options: Options | Mapping[str, object]) -> None:
        if isinstance(options, Mapping):
            unknown = set(options) - set(Options.__struct_encode_fields__)
            if unknown:
                known = ", ".join(Options.__struct_encode_fields__)
                raise InputError(f"unknown option {min(unknown)!r}; known are {known}", path="options")
            try:
                options = msgspec.convert(plain(dict(options)), learnt(Options))
            except msgspec.ValidationError as error:
                raise InputError(str(error), path="options") from None
        self._set(options=options)

    def _set(self, **changes: object) -> None:
        """Change the request; its `native` is cleared, since it no longer matches the original body."""
        self._request = msgspec.structs.replace(self._request, native=None, **changes)

    @classmethod
    def from_body(cls, body: Body, *, source: str | None = None) -> Conversation:
        """Return a conversation that continues a request body."""
        value, _ = read_object(body)
        wire = find(detect_source(value) if source is None else source, argument="source")
        request = wire.parse_request(value)
        return cls._from_request(request, remembering(request))

    @classmethod
    def _from_request(cls, request: Request, messages: Iterable[Message], *, turns: int = 0) -> Conversation:
        made = cls()
        made._request = msgspec.structs.replace(request, messages=())
        made._history = History(messages, turns=turns)
        return made

    @classmethod
    def resumed(cls, request: Request, history: History) -> Conversation:
        """Return a conversation from its stored parts: a request without messages, and the history."""
        made = cls()
        made._request = msgspec.structs.replace(request, messages=())
        made._history = history
        return made

    @property
    def request(self) -> Request:
        """The request without its messages: system text, tools, options."""
        return self._request

    @request.setter
    def request(self, request: Request) -> None:
        self._request = msgspec.structs.replace(request, messages=())

    @property
    def history(self) -> History:
        """The history: every change of the conversation passes through it."""
        return self._history

    @property
    def estimate(self) -> Estimate:
        """The token estimator, calibrated with the usage that providers reported."""
        return self._estimate

    @estimate.setter
    def estimate(self, estimate: Estimate) -> None:
        self._estimate = estimate

    @property
    def asked(self) -> tuple[Transcript | None, Sequence[str], Asked | None]:
        """The last render: its transcript, the calls that got synthetic results for it, and its projected names."""
        return self._sent, self._made_up, self._asked

    @asked.setter
    def asked(self, asked: tuple[Transcript | None, Sequence[str], Asked | None]) -> None:
        self._sent, self._made_up, self._asked = asked

    @property
    def compressed(self) -> list[Note]:
        """The changes made by compressions. Each target's next report includes the new ones."""
        return self._compressed

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._history.messages

    @property
    def pending(self) -> list[ToolCall]:
        """Calls without a result, in call order."""
        return self._history.pending

    def add_user(self, content: Content) -> None:
        """Add a user message: text, canonical blocks, or content parts of any API."""
        self._history.add(Message("human", blocks_of(content)))

    def add_reply(self, reply: Body | Reply, *, source: str | None = None) -> Reply:
        """Add a model's reply and return it with this conversation's ids in its calls."""
        if not isinstance(reply, Reply):
            api = reply_source(read_object(reply)[0]) if source is None else source
            wire = find(api, argument="source")
            reply = parse_reply(wire, reply)
            if self._asked is not None and self._asked.wire.name == wire.name:
                reply = understood(reply, self._asked)
        self.settle()
        self.learn(reply.usage, reply.model)
        blocks = tuple(_unnamed(block) for block in reply.blocks)
        if self._sent is not None and any(isinstance(block, Thinking) for block in blocks):
            blocks = _signed_by(blocks, self._sent)
            if self._sent.demands.reasoning_bound == "prefix":
                blocks = bound_to(blocks, sent_digest(self._sent))
        added = self._history.add(Message("ai", blocks, turn_key=self._history.open_turn()))
        return msgspec.structs.replace(reply, blocks=added[0].blocks if added else ())

    def learn(self, usage: Usage | None, model: str | None) -> None:
        """Calibrate the token estimate of the request with the usage that the provider reported."""
        if usage is not None and usage.input:
            self._estimate.learn(self._weight(), usage.input, identify(model).family)

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of the next request."""
        return ceil(self._weight() * self._estimate.ratio())

    def _weight(self) -> float:
        edits, place, weight = self._weighed
        if edits != self._history.edits:
            place, weight = 0, 0.0
        new = self._history.part(place)
        # One by one: the same floating-point sum, however often it was continued.
        for message in new:
            weight += weigh(message)
        self._weighed = self._history.edits, place + len(new), weight
        return weigh_settings(self._request) + weight

    def pin(self, message: Message) -> Message:
        """Exclude a message from compression; return it as it is stored now."""
        return self._history.pin(message)

    def compress(
        self, strategy: str, budget: int, *, summarise: Summarise | None = None, count: Count | None = None
    ) -> Compressed:
        """Compress the messages to at most `budget` tokens, by the estimate or by `count`.

        Strategies: `truncate-results`, `drop-oldest`, `middle-out` (which needs `summarise`), `dense`. The changes are
        in the result, and in the report of the next request to each target.
        """
        request = msgspec.structs.replace(self._request, messages=self._history.supplied()[0])
        made = compress(
            # Reasoning is bound to its prefix before the compression.
            remembering(request),
            strategy,
            budget,
            count=count or self._estimate,
            summarise=summarise,
            elsewhere=request.continues is not None,
        )
        if made.notes:
            self._history.reduce(made.messages)
            self._compressed += made.notes
        return made

    def settle(self) -> None:
        """Mark the last request as sent: calls with a synthetic result in it become interrupted, results final."""
        for call_id in self._made_up:
            entry = self._history.ledger.get(call_id)
            if entry is not None and entry.state == "pending" and not entry.taken_back:
                self.interrupt(entry.call, "interrupted: no result was recorded")
        self._made_up = ()
        self._history.mark_sent()

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        """Add the result of a call, given as a `ToolCall`, a canonical id, or a raw id in the newest turn.

        Text and blocks are kept; any other value is a JSON result.
        """
        self._history.add(self.outcome_of(call, content, error=error))

    def cancel(self, call: ToolCall | str) -> None:
        """Record that a call was cancelled."""
        self._history.add(self.outcome_of(call, outcome="cancelled"))

    def interrupt(self, call: ToolCall | str, why: str) -> None:
        """Record that a call was interrupted: its result is not known."""
        self._history.add(self.outcome_of(call, outcome="interrupted", why=why))

    def outcome_of(
        self,
        call: ToolCall | str,
        content: object = None,
        *,
        error: bool = False,
        outcome: Outcome | None = None,
        why: str = "cancelled",
    ) -> Message:
        """Return the message with the result or other outcome of a call, without adding it."""
        found = self.call_of(call)
        if outcome is not None:
            text = TEXTS.cancelled if outcome == "cancelled" else TEXTS.interrupted
            response = found.respond(text, error=True, outcome=outcome, synthetic=why)
        elif content is None or isinstance(content, str):
            response = found.respond(content or "", error=error)
        elif are_blocks(content) or are_parts(content):
            response = found.respond(blocks_of(cast("Content", content)), error=error)
        else:
            response = found.respond((), structured=plain(content), error=error)
        return Message("tool", (response,), turn_key=self._history.ledger[found.id].turn_key)

    def call_of(self, call: ToolCall | str) -> ToolCall:
        """Return the call given as a `ToolCall`, a canonical id, or a raw id in the newest turn."""
        ledger = self._history.ledger
        key = call.id if isinstance(call, ToolCall) else call
        if key in ledger:
            return ledger[key].call
        same = [found for found in self._history.newest_calls if found.origin.raw_id == key]
        waiting = [found for found in same if ledger[found.id].state == "pending"]
        if not same:
            raise InputError(f"unknown tool call {key!r}: not in this conversation, nor a raw id in its newest turn")
        return (waiting or same)[0]

    def add_blocks(self, *blocks: Block, speaker: Speaker | None = None) -> tuple[Message, ...]:
        """Add blocks of any source, such as parsed items, each with its natural speaker unless `speaker` is given.

        Calls get this conversation's ids; results are paired by raw id, or by name and order.
        """

        for place, block in enumerate(blocks):
            if not isinstance(block, Block):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError("a block was expected, as returned by `parse_item`", path=f"blocks[{place}]")

        def speaker_of(block: Block) -> Speaker:
            return speaker or _voice(block)

        added: list[Message] = []
        for run_speaker, run in groupby(map(self._at_large, blocks), key=speaker_of):
            content = tuple(run)
            turn_key = self._history.open_turn() if any(isinstance(block, ToolCall) for block in content) else None
            added += self._history.add(Message(run_speaker, content, turn_key=turn_key))
        return tuple(added)

    def _at_large(self, block: Block) -> Block:
        """Clear an id that is not one of this conversation: an item parsed alone has an id of its own."""
        if isinstance(block, ToolCall):
            return msgspec.structs.replace(block, id="")
        if isinstance(block, ToolResponse) and block.call_id not in self._history.ledger:
            return msgspec.structs.replace(block, call_id="", hosted=block.hosted or self._was_run_there(block))
        return block

    def _was_run_there(self, response: ToolResponse) -> bool:
        """Whether the newest call of this raw id is hosted: a result alone may not show it."""
        raw_id = response.origin.raw_id
        calls = (entry.call for entry in reversed(self._history.ledger.values()) if not entry.taken_back)
        call = next((call for call in calls if call.origin.raw_id == raw_id), None) if raw_id is not None else None
        return call is not None and call.kind == "hosted" and not call.origin.is_approval

    def render(
        self,
        target: str,
        model: str | None = None,
        *,
        profile: str | None = None,
        tool_format: str = "auto",
        fetch: Fetch | None = None,
        ids: str = "auto",
        reasoning: str = "native",
        hosted: str = "pair",
        pending: str = "complete",
        orphans: str = "text",
    ) -> Rendered:
        """Render the next request for the target, or for a server profile of it."""
        text_argument(model, "model", needed=False)
        text_argument(tool_format, "tool_format")
        policy = policy_of(ids=ids, reasoning=reasoning, hosted=hosted, pending=pending, orphans=orphans)
        wire = find(target, argument="target")
        request = self._request
        source = WIRES.get(request.native.api) if request.native is not None else None
        if model is None and source is not None and source.provider == wire.provider:
            model = request.model
        if profile is not None:
            wire = with_profile(wire, profile)
        destination = _Target(wire, model, tool_format, policy, fetch)
        cache = self._grown(destination)
        whole = cache.render(request, self._history) if cache is not None else None
        if whole is not None:
            report = Chained((self._noted(destination), whole.report))
            rendered = Rendered(report, destination.asked(request, whole.names), fragments=whole.pieces)
            return self._remembered(rendered, whole.transcript, whole.newest)
        report = Report()
        messages, supplied = self._history.supplied()
        transcript, made = destination.say(msgspec.structs.replace(request, messages=messages), report)
        if cache is not None:
            cache.begin(request, self._history, made, report, transcript)
        report = Chained((self._noted(destination, supplied), report))
        rendered = Rendered(report, destination.asked(request, made.names), body=made.body)
        return self._remembered(rendered, transcript, report)

    def _noted(self, target: _Target, supplied: Iterable[str] = ()) -> Report:
        """Report conflicts in the history, and changes by compressions that this target's reports do not have yet."""
        report = Report()
        for call_id in supplied:
            report.add("supplied", "missing call or result restored from the ledger", call_id=call_id)
        for call_id, entry in self._history.doubted.items():
            for response in entry.evidence:
                report.add("dedupe", f"second result ({state_of(response)}) stored but not sent", call_id=call_id)
        key = target.wire.name, target.model
        for change in self._compressed[self._told.get(key, 0) :]:
            if not self._history.took_back(change.calls):
                report.add("compressed", str(change), call_id=change.calls[0] if len(change.calls) == 1 else None)
        self._told[key] = len(self._compressed)
        return report

    def _grown(self, target: _Target) -> Increments | None:
        """Return the render cache for this target; None where its prefix can't be cached."""
        if not target.grows:
            return None
        request, cache = self._growing.pop(target, (None, None))
        if cache is None or request is not self._request:
            cache = Increments(target.wire.root, target.say)
        self._growing[target] = self._request, cache
        if len(self._growing) > _TARGETS:
            del self._growing[next(iter(self._growing))]
        return cache

    def _remembered(self, rendered: Rendered, transcript: Transcript, report: Report) -> Rendered:
        """Record the transcript, the synthetic results and the names that the next reply belongs to."""
        self._sent = transcript if identify(transcript.model).family else None
        self._made_up = [finding.call_id for finding in report.of("synthetic") if finding.call_id is not None]
        self._asked = rendered.asked
        return rendered

    def dump(self) -> bytes:
        """Encode the conversation in its stored form, with the ledger."""
        history = self._history
        request = msgspec.structs.replace(self._request, messages=history.messages)
        more = {"tokens": msgspec.to_builtins(self._estimate)} if self._estimate.learned else {}
        if self._compressed:
            more["compressed"] = msgspec.to_builtins(self._compressed)
        ledger = [dumped(entry) for entry in history.ledger.values()]
        return dumps(request, turns=history.turns, ledger=ledger, **more)

    @classmethod
    def load(cls, data: bytes) -> Conversation:
        """Load a conversation stored by `dump`."""
        request, envelope = loads(data)
        made = cls._from_request(request, request.messages, turns=int(envelope.get("turns", 0)))
        stored = enumerate(envelope.get("ledger", ()))
        made._history.restore(decode_interaction(entry, f"ledger[{position}]") for position, entry in stored)
        made._estimate = msgspec.convert(envelope.get("tokens", {}), learnt(Estimate))
        made._compressed = [msgspec.convert(note, learnt(Note)) for note in envelope.get("compressed", ())]
        return made


def _voice(block: Block) -> Speaker:
    """Return the natural speaker of a block: `tool` for results, `human` for approval answers, else `ai`."""
    if isinstance(block, ToolResponse) and not block.hosted:
        return "tool"
    return "human" if isinstance(block, Opaque) and block.origin.is_approval else "ai"


def _unnamed(block: Block) -> Block:
    """Clear the id of a call, so that this conversation assigns its own."""
    return msgspec.structs.replace(block, id="") if isinstance(block, ToolCall) and block.id else block


def _signed_by(blocks: tuple[Block, ...], sent: Transcript) -> tuple[Block, ...]:
    """Attribute reasoning without a model name to the model of the request."""

    def attribute(block: Block) -> Block:
        if not isinstance(block, Thinking) or block.origin.model is not None:
            return block
        if block.origin.provider != sent.demands.provider:
            return block
        return msgspec.structs.replace(block, origin=msgspec.structs.replace(block.origin, model=sent.model))

    return tuple(map(attribute, blocks))


def _declared(tool: Tool | Mapping[str, Any], position: int) -> tuple[Tool, ...]:
    """Parse a tool declaration of any API; one object of Gemini declares several."""
    if isinstance(tool, Tool):
        return (tool,)
    if not isinstance(tool, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("a tool's declaration must be an object", path=f"tools[{position}]")
    return parse_declaration(tool, position)
