"""`segue.Conversation`: the long-lived form. What happens is added as it happens; any target can be rendered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Block, Message, Opaque, Speaker, Text, Thinking, ToolCall, ToolResponse, state_of
from segue.canonical.codec import decode_block, dumped, dumps, loads
from segue.canonical.history import History, Interaction, bound_to
from segue.canonical.jsontext import plain, read_object, write
from segue.canonical.learning import learnt
from segue.canonical.request import Options, Reply, Request, Tool
from segue.carry import say
from segue.convert import Body, policy_of
from segue.declarations import parse_declaration
from segue.errors import InputError, text_argument
from segue.models import identify
from segue.render.demands import TEXTS
from segue.render.reasoning_bound import remembering, sent_digest
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.replies import parse_reply
from segue.wire.base import Fetch
from segue.wire.detect import detect_source
from segue.wire.registry import WIRES, find

__all__ = ["Conversation", "Rendered"]

Content = str | Block | Sequence[Block] | Sequence[Mapping[str, Any]]

_RESPONSES_PARTS = frozenset({"input_text", "input_image", "input_file"})
_PART_TYPES = frozenset({"text", "image_url", "input_audio", "file", "image", "document", *_RESPONSES_PARTS})


class Rendered:
    """A body, ready to be sent."""

    def __init__(self, body: dict[str, Any], report: Report) -> None:
        self.body = body
        self.report = report

    @cached_property
    def data(self) -> bytes:
        return write(self.body)

    @property
    def fragments(self) -> list[bytes]:
        """The same bytes in pieces, to be written one after the other."""
        return [self.data]


class Conversation:
    """One conversation with tools. `system`, `tools` and `options` may be set again at any time."""

    def __init__(
        self, system: str | None = None, tools: Sequence[Tool | Mapping[str, Any]] = (), **options: object
    ) -> None:
        self._request = Request(())
        self._history = History()
        self._sent: Transcript | None = None
        self._made_up: list[str] = []
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

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._history.messages

    @property
    def pending(self) -> list[ToolCall]:
        """Calls that wait for their result, in call order."""
        return self._history.pending

    def add_user(self, content: Content) -> None:
        """A human's words: text, canonical blocks, or content parts as any API writes them."""
        self._history.add(Message("human", _blocks(content)))

    def add_reply(self, reply: Body | Reply, *, source: str | None = None) -> Reply:
        """Writes a model's answer down and gives it back with this conversation's ids in its calls."""
        if not isinstance(reply, Reply):
            named = _reply_source(read_object(reply)[0]) if source is None else source
            wire = find(named, argument="source")
            reply = parse_reply(wire, reply)
        self._settle_what_was_sent()
        blocks = tuple(_unnamed(block) for block in reply.blocks)
        if self._sent is not None and any(isinstance(block, Thinking) for block in blocks):
            blocks = bound_to(_signed_by(blocks, self._sent), sent_digest(self._sent))
        added = self._history.add(Message("ai", blocks, turn_key=self._history.open_turn()))
        return msgspec.structs.replace(reply, blocks=added[0].blocks if added else ())

    def _settle_what_was_sent(self) -> None:
        """What the last request said is what the model was told, also where it said that a result was missing."""
        for call_id in self._made_up:
            entry = self._history.ledger.get(call_id)
            if entry is not None and entry.state == "pending":
                why = "interrupted: no result was recorded"
                response = entry.call.respond(TEXTS.interrupted, error=True, outcome="interrupted", synthetic=why)
                self._history.add(Message("tool", (response,), turn_key=entry.turn_key))
        self._made_up = []
        self._history.mark_sent()

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        """The result of a call: given itself, by its canonical id, or by its raw id in the newest turn.

        Text and blocks stay what they are; any other value is a JSON result.
        """
        found = self._call(call)
        if content is None or isinstance(content, str):
            response = found.respond(content or "", error=error)
        elif _are_blocks(content) or _are_parts(content):
            response = found.respond(_blocks(cast("Content", content)), error=error)
        else:
            response = found.respond((), structured=plain(content), error=error)
        self._history.add(Message("tool", (response,), turn_key=self._history.ledger[found.id].turn_key))

    def cancel(self, call: ToolCall | str) -> None:
        """Ends a call that will have no result."""
        found = self._call(call)
        response = found.respond(TEXTS.cancelled, error=True, outcome="cancelled", synthetic="cancelled")
        self._history.add(Message("tool", (response,), turn_key=self._history.ledger[found.id].turn_key))

    def _call(self, call: ToolCall | str) -> ToolCall:
        ledger = self._history.ledger
        key = call.id if isinstance(call, ToolCall) else call
        if key in ledger:
            return ledger[key].call
        newest = next(reversed(ledger.values())).turn_key if ledger else None
        same = [e.call for e in ledger.values() if e.turn_key == newest and e.call.origin.raw_id == key]
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
        calls = (entry.call for entry in reversed(self._history.ledger.values()))
        call = next((call for call in calls if call.origin.raw_id == raw_id), None) if raw_id is not None else None
        return call is not None and call.kind == "hosted" and not call.origin.is_approval

    def render(
        self,
        target: str,
        model: str | None = None,
        *,
        tool_format: str = "auto",
        fetch: Fetch | None = None,
        ids: str = "auto",
        reasoning: str = "native",
        hosted: str = "pair",
        pending: str = "complete",
        orphans: str = "text",
    ) -> Rendered:
        """The request that continues this conversation on the target."""
        text_argument(model, "model", needed=False)
        text_argument(tool_format, "tool_format")
        policy = policy_of(ids=ids, reasoning=reasoning, hosted=hosted, pending=pending, orphans=orphans)
        wire = find(target, argument="target")
        report = Report()
        messages, supplied = self._history.supplied()
        for call_id in supplied:
            report.add("supplied", "one side of this interaction came from the ledger", call_id=call_id)
        for call_id, entry in self._history.ledger.items():
            for response in entry.evidence:
                report.add("dedupe", f"another result, {state_of(response)}: kept as evidence", call_id=call_id)
        request = msgspec.structs.replace(self._request, messages=messages)
        source = WIRES.get(request.native.api) if request.native is not None else None
        if model is None and source is not None and source.provider == wire.provider:
            model = request.model
        transcript, said = say(request, wire, report, policy, model=model, tool_format=tool_format, fetch=fetch)
        self._sent = transcript if identify(model).family else None
        self._made_up = [finding.call_id for finding in report.of("synthetic") if finding.call_id is not None]
        return Rendered(said.body, report)

    def dump(self) -> bytes:
        """The stored form, ledger included."""
        history = self._history
        request = msgspec.structs.replace(self._request, messages=history.messages)
        return dumps(request, turns=history.turns, ledger=[dumped(entry) for entry in history.ledger.values()])

    @classmethod
    def load(cls, data: bytes) -> Conversation:
        """What `dump` wrote."""
        request, envelope = loads(data)
        made = cls._from_request(request, request.messages, turns=int(envelope.get("turns", 0)))
        for position, entry in enumerate(envelope.get("ledger", ())):
            loaded = _loaded(entry, f"ledger[{position}]")
            made._history.ledger[loaded.call.id] = loaded
        return made


def _voice(block: Block) -> Speaker:
    """Who says this: results are the client's, answers to a request for approval the human's, the rest the model's."""
    if isinstance(block, ToolResponse) and not block.hosted:
        return "tool"
    return "human" if isinstance(block, Opaque) and block.origin.is_approval else "ai"


def _loaded(entry: Mapping[str, Any], path: str) -> Interaction:
    def block(stored: object, name: str) -> Any:
        return decode_block(stored, f"{path}.{name}") if stored is not None else None

    return Interaction(
        call=block(entry.get("call"), "call"),
        turn_key=str(entry.get("turn_key", "")),
        completion=block(entry.get("completion"), "completion"),
        evidence=[block(item, "evidence") for item in entry.get("evidence", ())],
        seen=bool(entry.get("seen", False)),
    )


def _unnamed(block: Block) -> Block:
    """A block that gets its id here: one that it was given elsewhere says nothing in this conversation."""
    return msgspec.structs.replace(block, id="") if isinstance(block, ToolCall) and block.id else block


def _are_blocks(content: object) -> bool:
    if isinstance(content, Block):
        return True
    if not isinstance(content, list | tuple):
        return False
    items = cast("Sequence[object]", content)
    return bool(items) and all(isinstance(item, Block) for item in items)


def _are_parts(content: object) -> bool:
    """Whether these are content parts as an API writes them, such as `{"type": "text", "text": …}`."""
    items = cast("list[object]", content) if isinstance(content, list) else []
    kinds = [cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None for item in items]
    return bool(kinds) and all(isinstance(kind, str) and kind in _PART_TYPES for kind in kinds)


def _blocks(content: Content) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, Block):
        return (content,)
    if _are_blocks(content):
        return tuple(cast("Sequence[Block]", content))
    if not _are_parts(content):
        raise InputError("text, blocks or content parts were expected", path="content")
    parts = cast("list[dict[str, Any]]", plain(content))
    if any(part["type"] in _RESPONSES_PARTS for part in parts):
        wire, root = WIRES["openai-responses"], "input"
    else:
        wire, root = WIRES["anthropic" if any("source" in part for part in parts) else "openai-chat"], "messages"
    return wire.parse_request({root: [{"role": "user", "content": parts}]}).messages[0].blocks


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


def _reply_source(value: Mapping[str, Any]) -> str:
    if "choices" in value:
        family = identify(value.get("model") if isinstance(value.get("model"), str) else None).family
        return family if family in WIRES else "openai-chat"
    if "candidates" in value or "promptFeedback" in value:
        return "gemini"
    if value.get("object") == "response" or isinstance(value.get("output"), list):
        return "openai-responses"
    if isinstance(value.get("output"), dict):
        return "bedrock"
    if value.get("type") == "message" or isinstance(value.get("content"), list):
        return "anthropic"
    raise InputError("this is not a reply of a known API; name `source` if it is one")
