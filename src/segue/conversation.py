"""`segue.Conversation`: the long-lived form. What happens is added as it happens; any target can be rendered."""

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

# Bodies for so many targets are kept to go on from.
_TARGETS = 3


class Rendered:
    """A body, ready to be sent: `fragments` are its bytes in pieces, to be written one after the other."""

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
        """Whom this is for, and how the tools are spelled there."""
        return self._asked

    def answer(self) -> Answering:
        """What reads the provider's stream: `feed` it the bytes; `close` gives a reply for `add_reply`."""
        return Answering(self._asked)


class _Target(msgspec.Struct, frozen=True):
    """Whom a conversation is rendered for, and how."""

    wire: Wire
    model: str | None
    tool_format: str
    policy: Policy
    fetch: Fetch | None

    def __hash__(self) -> int:
        return hash((self.wire.name, self.model, self.tool_format, self.policy))

    @property
    def grows(self) -> bool:
        """Whether what was said to it stays as it is; where reasoning is bound to all before it, all is looked at."""
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
    """One conversation with tools. `system`, `tools` and `options` may be set again at any time."""

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
            unknown = set(options) - set(Options.__struct_fields__)
            if unknown:
                known = ", ".join(Options.__struct_fields__)
                raise InputError(f"there is no option {min(unknown)!r}; there are {known}", path="options")
            try:
                options = msgspec.convert(plain(dict(options)), learnt(Options))
            except msgspec.ValidationError as error:
                raise InputError(str(error), path="options") from None
        self._set(options=options)

    def _set(self, **changes: object) -> None:
        """What is set anew is no longer what the body said that the conversation was begun from."""
        self._request = msgspec.structs.replace(self._request, native=None, **changes)

    @classmethod
    def from_body(cls, body: Body, *, source: str | None = None) -> Conversation:
        """A conversation that goes on from a request body."""
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
        """A conversation that goes on from what was kept of it: all of a request but its messages, and the history."""
        made = cls()
        made._request = msgspec.structs.replace(request, messages=())
        made._history = history
        return made

    @property
    def request(self) -> Request:
        """What the model is given beside the messages."""
        return self._request

    @request.setter
    def request(self, request: Request) -> None:
        self._request = msgspec.structs.replace(request, messages=())

    @property
    def history(self) -> History:
        """The one write boundary, for those who keep what passes it."""
        return self._history

    @property
    def estimate(self) -> Estimate:
        """What was learned of the tokens that providers count."""
        return self._estimate

    @estimate.setter
    def estimate(self, estimate: Estimate) -> None:
        self._estimate = estimate

    @property
    def asked(self) -> tuple[Transcript | None, Sequence[str], Asked | None]:
        """What the next reply answers: what was rendered last, the calls whose results were made up for it, and how
        tools were spelled."""
        return self._sent, self._made_up, self._asked

    @asked.setter
    def asked(self, asked: tuple[Transcript | None, Sequence[str], Asked | None]) -> None:
        self._sent, self._made_up, self._asked = asked

    @property
    def compressed(self) -> list[Note]:
        """What compressions did to messages: each target is told, in the report of its next request."""
        return self._compressed

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._history.messages

    @property
    def pending(self) -> list[ToolCall]:
        """Calls that wait for their result, in call order."""
        return self._history.pending

    def add_user(self, content: Content) -> None:
        """A human's words: text, canonical blocks, or content parts as any API writes them."""
        self._history.add(Message("human", blocks_of(content)))

    def add_reply(self, reply: Body | Reply, *, source: str | None = None) -> Reply:
        """Writes a model's answer down and gives it back with this conversation's ids in its calls."""
        if not isinstance(reply, Reply):
            named = reply_source(read_object(reply)[0]) if source is None else source
            wire = find(named, argument="source")
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
        """Holds the estimate of all that was sent against what the provider counted. Nothing is weighed twice."""
        if usage is not None and usage.input:
            self._estimate.learn(self._weight(), usage.input, identify(model).family)

    @property
    def tokens(self) -> int:
        """About how many tokens all of it costs, by what was learned so far."""
        return ceil(self._weight() * self._estimate.ratio())

    def _weight(self) -> float:
        edits, place, weight = self._weighed
        if edits != self._history.edits:
            place, weight = 0, 0.0
        new = self._history.part(place)
        # One by one: the same sum, however often it was gone on from.
        for message in new:
            weight += weigh(message)
        self._weighed = self._history.edits, place + len(new), weight
        return weigh_settings(self._request) + weight

    def pin(self, message: Message) -> Message:
        """Keeps a message of this conversation from every compression; gives it back as it is held now."""
        return self._history.pin(message)

    def compress(
        self, strategy: str, budget: int, *, summarise: Summarise | None = None, count: Count | None = None
    ) -> Compressed:
        """Makes the messages cost no more than `budget` tokens, by an estimate or by `count`.

        Strategies: `truncate-results`, `drop-oldest`, `middle-out` (which needs `summarise`), `dense`. What was done is
        in the notes of the answer, and in the report of the next request to each target.
        """
        request = msgspec.structs.replace(self._request, messages=self._history.supplied()[0])
        made = compress(
            # Reasoning is bound to what stands before it now, not to what will.
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
        """What the last request said is what the model was told, also where it said that a result was missing."""
        for call_id in self._made_up:
            entry = self._history.ledger.get(call_id)
            if entry is not None and entry.state == "pending" and not entry.taken_back:
                self.interrupt(entry.call, "interrupted: no result was recorded")
        self._made_up = ()
        self._history.mark_sent()

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        """The result of a call: given itself, by its canonical id, or by its raw id in the newest turn.

        Text and blocks stay what they are; any other value is a JSON result.
        """
        self._history.add(self.outcome_of(call, content, error=error))

    def cancel(self, call: ToolCall | str) -> None:
        """Ends a call that will have no result."""
        self._history.add(self.outcome_of(call, outcome="cancelled"))

    def interrupt(self, call: ToolCall | str, why: str) -> None:
        """Ends a call of which nobody knows any more what became of it."""
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
        """The message that ends a call, not yet said: its result, or that it has none."""
        found = self.call_of(call)
        if outcome is not None:
            words = TEXTS.cancelled if outcome == "cancelled" else TEXTS.interrupted
            response = found.respond(words, error=True, outcome=outcome, synthetic=why)
        elif content is None or isinstance(content, str):
            response = found.respond(content or "", error=error)
        elif are_blocks(content) or are_parts(content):
            response = found.respond(blocks_of(cast("Content", content)), error=error)
        else:
            response = found.respond((), structured=plain(content), error=error)
        return Message("tool", (response,), turn_key=self._history.ledger[found.id].turn_key)

    def call_of(self, call: ToolCall | str) -> ToolCall:
        """The call that is meant: by itself, by its canonical id, or by its raw id in the newest turn."""
        ledger = self._history.ledger
        key = call.id if isinstance(call, ToolCall) else call
        if key in ledger:
            return ledger[key].call
        same = [found for found in self._history.newest_calls if found.origin.raw_id == key]
        waiting = [found for found in same if ledger[found.id].state == "pending"]
        if not same:
            raise InputError(f"{key!r} is not a call of this conversation, nor the raw id of one in its newest turn")
        return (waiting or same)[0]

    def add_blocks(self, *blocks: Block, speaker: Speaker | None = None) -> tuple[Message, ...]:
        """Blocks of any make, such as parsed items, each in the voice that it has unless `speaker` names one.

        Calls get this conversation's ids; results find their calls by raw id, or by name and order.
        """

        for place, block in enumerate(blocks):
            if not isinstance(block, Block):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError("a block was expected, as `parse_item` gives them", path=f"blocks[{place}]")

        def voice_of(block: Block) -> Speaker:
            return speaker or _voice(block)

        added: list[Message] = []
        for voice, run in groupby(map(self._at_large, blocks), key=voice_of):
            said = tuple(run)
            calls = any(isinstance(block, ToolCall) for block in said)
            added += self._history.add(Message(voice, said, turn_key=self._history.open_turn() if calls else None))
        return tuple(added)

    def _at_large(self, block: Block) -> Block:
        """The block without an id that is not of this conversation: alone, an item has one of its own."""
        if isinstance(block, ToolCall):
            return msgspec.structs.replace(block, id="")
        if isinstance(block, ToolResponse) and block.call_id not in self._history.ledger:
            return msgspec.structs.replace(block, call_id="", hosted=block.hosted or self._was_run_there(block))
        return block

    def _was_run_there(self, response: ToolResponse) -> bool:
        """Whether the newest call of this raw id is one that the provider runs: an output alone may not say so."""
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
        """The request that continues this conversation on the target, or on a server that speaks it by a `profile`."""
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
        aim = _Target(wire, model, tool_format, policy, fetch)
        grown = self._grown(aim)
        whole = grown.render(request, self._history) if grown is not None else None
        if whole is not None:
            report = Chained((self._noted(aim), whole.report))
            rendered = Rendered(report, aim.asked(request, whole.names), fragments=whole.pieces)
            return self._remembered(rendered, whole.transcript, whole.newest)
        report = Report()
        messages, supplied = self._history.supplied()
        transcript, said = aim.say(msgspec.structs.replace(request, messages=messages), report)
        if grown is not None:
            grown.begin(request, self._history, said, report, transcript)
        report = Chained((self._noted(aim, supplied), report))
        rendered = Rendered(report, aim.asked(request, said.names), body=said.body)
        return self._remembered(rendered, transcript, report)

    def _noted(self, aim: _Target, supplied: Iterable[str] = ()) -> Report:
        """What the history itself has to say, and what compressions did that this target was not told yet."""
        noted = Report()
        for call_id in supplied:
            noted.add("supplied", "one side of this interaction came from the ledger", call_id=call_id)
        for call_id, entry in self._history.doubted.items():
            for response in entry.evidence:
                noted.add("dedupe", f"another result, {state_of(response)}: kept as evidence", call_id=call_id)
        told = aim.wire.name, aim.model
        for note in self._compressed[self._told.get(told, 0) :]:
            if not self._history.took_back(note.calls):
                noted.add("compressed", str(note), call_id=note.calls[0] if len(note.calls) == 1 else None)
        self._told[told] = len(self._compressed)
        return noted

    def _grown(self, aim: _Target) -> Increments | None:
        """What was rendered for this target before. None where what is said may bind all that was."""
        if not aim.grows:
            return None
        request, grown = self._growing.pop(aim, (None, None))
        if grown is None or request is not self._request:
            grown = Increments(aim.wire.root, aim.say)
        self._growing[aim] = self._request, grown
        if len(self._growing) > _TARGETS:
            del self._growing[next(iter(self._growing))]
        return grown

    def _remembered(self, rendered: Rendered, transcript: Transcript, report: Report) -> Rendered:
        """What the reply to this will be bound to, and what was made up for it."""
        self._sent = transcript if identify(transcript.model).family else None
        self._made_up = [finding.call_id for finding in report.of("synthetic") if finding.call_id is not None]
        self._asked = rendered.asked
        return rendered

    def dump(self) -> bytes:
        """The stored form, ledger included."""
        history = self._history
        request = msgspec.structs.replace(self._request, messages=history.messages)
        more = {"tokens": msgspec.to_builtins(self._estimate)} if self._estimate.learned else {}
        if self._compressed:
            more["compressed"] = msgspec.to_builtins(self._compressed)
        ledger = [dumped(entry) for entry in history.ledger.values()]
        return dumps(request, turns=history.turns, ledger=ledger, **more)

    @classmethod
    def load(cls, data: bytes) -> Conversation:
        """What `dump` wrote."""
        request, envelope = loads(data)
        made = cls._from_request(request, request.messages, turns=int(envelope.get("turns", 0)))
        stored = enumerate(envelope.get("ledger", ()))
        made._history.restore(decode_interaction(entry, f"ledger[{position}]") for position, entry in stored)
        made._estimate = msgspec.convert(envelope.get("tokens", {}), learnt(Estimate))
        made._compressed = [msgspec.convert(note, learnt(Note)) for note in envelope.get("compressed", ())]
        return made


def _voice(block: Block) -> Speaker:
    """Who says this: results are the client's, answers to a request for approval the human's, the rest the model's."""
    if isinstance(block, ToolResponse) and not block.hosted:
        return "tool"
    return "human" if isinstance(block, Opaque) and block.origin.is_approval else "ai"


def _unnamed(block: Block) -> Block:
    """A block that gets its id here: one that it was given elsewhere says nothing in this conversation."""
    return msgspec.structs.replace(block, id="") if isinstance(block, ToolCall) and block.id else block


def _signed_by(blocks: tuple[Block, ...], sent: Transcript) -> tuple[Block, ...]:
    """The blocks, with reasoning that does not name its model as that of the model that was asked."""

    def named(block: Block) -> Block:
        if not isinstance(block, Thinking) or block.origin.model is not None:
            return block
        if block.origin.provider != sent.demands.provider:
            return block
        return msgspec.structs.replace(block, origin=msgspec.structs.replace(block.origin, model=sent.model))

    return tuple(map(named, blocks))


def _declared(tool: Tool | Mapping[str, Any], position: int) -> tuple[Tool, ...]:
    """A tool as any API declares it; one object of Gemini's declares several."""
    if isinstance(tool, Tool):
        return (tool,)
    if not isinstance(tool, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("a tool's declaration must be an object", path=f"tools[{position}]")
    return parse_declaration(tool, position)
