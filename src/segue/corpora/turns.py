"""`Turn`: what a row consists of for every format, after the renderer has paired, completed and ordered its calls.

The renderer's passes are those of the APIs, for a target that accepts everything a training row can hold. So a call has
exactly one result, which may be one that says that there was none, and a result without a call is marked text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    join_texts,
)
from segue.canonical.ids import normalize_to_openai_tool_id
from segue.canonical.json import encode_json_text
from segue.canonical.request import Tool
from segue.corpora.rows import Flag, Row, fact_of
from segue.errors import SegueError
from segue.render.constraints import Constraints, Policy
from segue.render.passes import render
from segue.render.report import Report
from segue.sessions.values import object_of
from segue.wire.tools import render_arguments_object, render_arguments_text

_PROVIDER = "training"
_UNREADABLE = "reasoning that only its provider can read"
_BROKEN = "kept as text: arguments that are not valid JSON"
_MEDIA = frozenset({"image", "audio", "document"})

TRAINING = Constraints(
    api=_PROVIDER,
    provider=_PROVIDER,
    results_in_call_order=True,
    calls_last=True,
    reasoning_replay="plain",
    has_error_flag=True,
    media_in_user=_MEDIA,
    media_in_results=_MEDIA,
    media_in_assistant=frozenset({"image"}),
)
"""A target that accepts whatever a row can hold."""


def make_target(
    name: str,
    *,
    user: Iterable[str] = ("image",),
    results: Iterable[str] = (),
    assistant: Iterable[str] = (),
    **changes: Any,
) -> Constraints:
    """Return the target of a format: the media that it has a place for, and other differences from `TRAINING`."""
    media = {"media_in_user": user, "media_in_results": results, "media_in_assistant": assistant}
    changes = {"has_error_flag": False, **{key: frozenset(kinds) for key, kinds in media.items()}, **changes}
    return msgspec.structs.replace(TRAINING, api=name, **changes)


_CUT = re.compile(
    r"\[?\.{3} ?\[?(?:\d[\d,]* (?:characters|chars|lines|bytes|tokens) )?(?:truncated|omitted)"
    r"|output (?:was )?truncated|<persisted-output>|\[truncated|characters truncated|content truncated",
    re.IGNORECASE,
)
_CUT_WORDS = ("truncated", "omitted", "<persisted-output>")


class Turn(Struct, frozen=True):
    """A message: of one role, a reply with its reasoning and calls, or the result of one call.

    `blocks` are texts and media. Calls have the ids of the row's file where these are unique.
    """

    role: Literal["system", "user", "assistant", "tool"]
    blocks: tuple[Text | Media, ...] = ()
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    result: ToolResponse | None = None
    model: str | None = None
    weight: int | None = None

    @property
    def text(self) -> str:
        return join_texts(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def is_cut_off(self) -> bool:
        """Whether this is a result that the client seems to have shortened."""
        if self.result is None:
            return False
        folded = self.text.casefold()
        return any(word in folded for word in _CUT_WORDS) and _CUT.search(self.text) is not None


class Turns(Struct, frozen=True):
    """The turns of a row, its tools, its flags, and how often what was changed or lost on the way."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...]
    flags: tuple[Flag, ...]
    changes: Counter[str]

    @property
    def system(self) -> str:
        """The system text at the beginning."""
        return self.turns[0].text if self.turns and self.turns[0].role == "system" else ""

    @property
    def models(self) -> list[str]:
        """The models of the replies, in the order of their first."""
        return list(dict.fromkeys(turn.model for turn in self.turns if turn.model))


def build_turns(row: Row, constraints: Constraints = TRAINING, *, only_model: str | None = None) -> Turns:
    """Return the turns of a row. With `only_model`, replies of other models get the weight 0."""
    changes: Counter[str] = Counter()
    report = Report(target=_PROVIDER)
    messages = tuple(_attribute(message, changes) for message in row.request.messages)
    request = msgspec.structs.replace(row.request, messages=messages)
    transcript = render(request, constraints, Policy(), report)
    changes.update(count_findings(report))
    turns = list(_turns_of(transcript.messages, changes))
    if transcript.system and constraints.system_position == "top":
        turns.insert(0, Turn("system", tuple(transcript.system)))
    if only_model is not None:
        turns = [_weigh(turn, only_model) for turn in turns]
    turns = _rename_calls(_merge(turns))
    _verify(turns)
    broken = sum(call.arguments is None and call.arguments_text is not None for turn in turns for call in turn.calls)
    changes[_BROKEN] += broken
    tools = tuple(tool for tool in transcript.tools if tool.kind != "hosted")
    flags: tuple[Flag, ...] = (*row.flags, "truncated") if any(turn.is_cut_off for turn in turns) else row.flags
    return Turns(tuple(turns), tools, flags, +changes)


def count_findings(report: Report) -> Counter[str]:
    """Return how often what was changed or lost."""
    found: Counter[str] = Counter()
    for finding in report.findings:
        if finding.level != "note":
            found[f"{finding.level}: {finding.message.replace(f' of {_PROVIDER}', '')}"] += max(
                1, len(finding.call_ids)
            )
    return found


def _attribute(message: Message, changes: Counter[str]) -> Message:
    """Return a message whose reasoning is the target's own, so that it is kept; the model is that of the turn."""
    if not any(isinstance(block, Thinking) for block in message.blocks):
        return message
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, Thinking):
            if not block.text:
                changes[f"lost: {_UNREADABLE}"] += 1
                continue
            block = Thinking(block.text, origin=Origin(_PROVIDER, block.origin.model, identity="absent"))
        blocks.append(block)
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def _turns_of(messages: Sequence[Message], changes: Counter[str]) -> Iterator[Turn]:
    for message in messages:
        model, weight = fact_of(message, "model"), fact_of(message, "weight")
        contents = tuple(_contents_of(message.blocks, changes))
        match message.speaker:
            case "system":
                yield Turn("system", contents)
            case "human":
                yield Turn("user", contents)
            case "ai":
                thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
                calls = tuple(block for block in message.blocks if isinstance(block, ToolCall))
                named = next((block.origin.model for block in thoughts if block.origin.model), None)
                reasoning = join_texts(block.text for block in thoughts)
                yield Turn("assistant", contents, reasoning, calls, model=model or named, weight=weight)
            case "tool":
                for block in message.blocks:
                    if isinstance(block, ToolResponse):
                        yield Turn("tool", tuple(_contents_of(_result_blocks(block), changes)), result=block)
                if contents:
                    yield Turn("user", contents)


def _result_blocks(result: ToolResponse) -> tuple[Block, ...]:
    if result.content or result.structured is msgspec.UNSET:
        return result.content or ()
    return (Text(encode_json_text(result.structured)),)


def _contents_of(blocks: Sequence[Block], changes: Counter[str]) -> Iterator[Text | Media]:
    for block in blocks:
        match block:
            case Text() | Media():
                yield block
            case Code():
                yield Text(f"```{block.language}\n{block.code}\n```")
            case Opaque() if block.text:
                yield Text(block.text)
            case Opaque():
                changes[f"lost: content of the type {block.kind}"] += 1
            case _:
                continue


def _weigh(turn: Turn, only_model: str) -> Turn:
    is_other = turn.role == "assistant" and turn.model != only_model
    return msgspec.structs.replace(turn, weight=0) if is_other else turn


def _merge(turns: Sequence[Turn]) -> list[Turn]:
    """Merge consecutive turns of the user, and consecutive replies of one model: templates expect roles in turn."""
    merged: list[Turn] = []
    for turn in turns:
        last = merged[-1] if merged else None
        if last is None or last.role != turn.role or turn.role not in ("user", "assistant"):
            merged.append(turn)
        elif turn.role == "user" or (not last.calls and (last.model, last.weight) == (turn.model, turn.weight)):
            reasoning = join_texts((last.reasoning, turn.reasoning))
            blocks = (*last.blocks, *turn.blocks)
            merged[-1] = msgspec.structs.replace(last, blocks=blocks, reasoning=reasoning, calls=turn.calls)
        else:
            merged.append(turn)
    return merged


def _rename_calls(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns with the ids that the file had, or ids in OpenAI's form where it had none, or one twice."""
    ids: dict[str, str] = {}
    used: set[str] = set()
    for turn in turns:
        for call in turn.calls:
            raw = call.origin.raw_id
            ids[call.id] = name = raw if raw and raw not in used else normalize_to_openai_tool_id(call.id)
            used.add(name)
    renamed: list[Turn] = []
    for turn in turns:
        if turn.calls:
            calls = tuple(msgspec.structs.replace(call, id=ids[call.id]) for call in turn.calls)
            turn = msgspec.structs.replace(turn, calls=calls)
        elif turn.result is not None:
            call_id = ids.get(turn.result.call_id, turn.result.call_id)
            turn = msgspec.structs.replace(turn, result=msgspec.structs.replace(turn.result, call_id=call_id))
        renamed.append(turn)
    return renamed


def _verify(turns: Sequence[Turn]) -> None:
    """Raise if a call does not have exactly one result: a bug in segue."""
    calls = [call.id for turn in turns for call in turn.calls]
    results = [turn.result.call_id for turn in turns if turn.result is not None]
    if len(set(calls)) != len(calls) or sorted(calls) != sorted(results):
        raise SegueError(f"{len(calls)} calls and {len(results)} results do not form pairs")


def arguments_text(call: ToolCall) -> str:
    """Return the arguments of a call as the model wrote them, where that is known; else as JSON."""
    fragment = object_of(call.native.fragment if call.native is not None else None)
    fields = object_of(fragment.get("function")) or fragment
    return render_arguments_text(call, Report(), fields.get("arguments"))


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call as an object: free text under `input`, invalid JSON under `_raw`."""
    return render_arguments_object(call, Report())


def media_url(media: Media) -> str:
    """Return the URL of an image or a file; its data as a `data:` URL."""
    return media.url or f"data:{media.mime or 'application/octet-stream'};base64,{media.data or ''}"
