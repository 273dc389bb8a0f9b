"""Plain conversations on the chat wire: the express lane of every vendor that speaks it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from segue.canonical.jsontext import write_text
from segue.canonical.plain import Call, Content, Event, NotPlain, Plain, Turn, Words, checked_words
from segue.wire.lane import Lane
from segue.wire.openai_chat.dialect import ChatDialect
from segue.wire.openai_chat.request import BODY_KEYS

__all__ = ["chat_lane"]

# What bodies usually hold beside the keys that have a canonical word.
_USUAL_KEYS = frozenset(
    {"logit_bias", "logprobs", "metadata", "modalities", "n", "prediction", "prompt_cache_key", "safety_identifier"}
    | {"service_tier", "store", "stream_options", "top_logprobs", "verbosity", "web_search_options"}
)
_arguments = msgspec.json.Decoder(dict[str, Any])


class _Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


_Content: TypeAlias = str | list[_Text]
_Nothing: TypeAlias = Annotated[list[Any], Meta(max_length=0)] | None


class _Function(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: str


class _Call(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    id: str
    type: Literal["function"]
    function: _Function
    index: int | None = None


class _System(Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    content: _Content


class _Developer(Struct, tag_field="role", tag="developer", forbid_unknown_fields=True, gc=False):
    content: _Content


class _User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: _Content


class _Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The keys after the calls are those that an SDK writes down whether they say anything or not."""

    content: _Content | None | UnsetType = UNSET
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning: str | None = None
    refusal: None = None
    annotations: _Nothing = None
    audio: None = None
    function_call: None = None


class _Result(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    tool_call_id: str
    content: _Content
    name: str | UnsetType = UNSET


_Item: TypeAlias = _System | _Developer | _User | _Assistant | _Result


def chat_lane(dialect: ChatDialect) -> Lane:
    """The lane of a vendor on this wire."""
    return Lane(
        key="messages",
        items=list[_Item],
        body_keys=(BODY_KEYS | _USUAL_KEYS) - {"messages"},
        read=partial(_read, dialect=dialect),
        write=partial(_write, dialect=dialect),
    )


# ------------------------------------------------------------------------------------------------------------- reading


def _read(items: list[_Item], *, dialect: ChatDialect) -> Plain:
    events: list[Event] = []
    starts: list[int] = []
    position = head = next((i for i, item in enumerate(items) if not isinstance(item, _System | _Developer)), 0)
    while position < len(items):
        item = items[position]
        starts.append(position)
        if isinstance(item, _Assistant):
            turn = _read_turn(item, items[position + 1 : position + 1 + len(item.tool_calls or ())], dialect)
            events.append(turn)
            position += 1 + len(turn.calls)
        elif isinstance(item, _User):
            events.append(Words(checked_words(_texts(item.content))))
            position += 1
        else:
            raise NotPlain
    return Plain(events, starts, head)


def _texts(content: _Content) -> Content:
    return content if isinstance(content, str) else [part.text for part in content]


def _read_turn(item: _Assistant, answers: list[_Item], dialect: ChatDialect) -> Turn:
    content = _texts(item.content) if item.content else None
    if content is not None:
        checked_words(content)
    elif not item.tool_calls:
        raise NotPlain
    entries = item.tool_calls or ()
    calls = [Call(entry.id, entry.function.name, _arguments.decode(entry.function.arguments)) for entry in entries]
    if len(answers) < len(calls):
        raise NotPlain
    turn = Turn(content, calls, [], thoughts=_thoughts(item, dialect))
    for call, answer in zip(calls, answers, strict=True):
        if type(answer) is not _Result or answer.tool_call_id != call.raw_id:
            raise NotPlain
        if answer.name is not UNSET and answer.name != call.name:
            raise NotPlain
        result = answer.content
        if not isinstance(result, str):
            result, turn.listed = checked_words(_texts(result)), True
        turn.results.append(result)
    return turn


def _thoughts(item: _Assistant, dialect: ChatDialect) -> int:
    text = item.reasoning_content if item.reasoning_content is not None else item.reasoning
    return int(text is not None and (bool(text) or dialect.reasoning_key is not None))


# ------------------------------------------------------------------------------------------------------------- writing


def _write(events: Sequence[Event], *, dialect: ChatDialect) -> list[_Item]:
    items: list[_Item] = []
    for event in events:
        if isinstance(event, Words):
            items.append(_User(_parts(event.content)))
            continue
        content = None if event.content is None else _parts(event.content)
        calls = [
            _Call(call.sent_id, "function", _Function(call.name, write_text(call.arguments))) for call in event.calls
        ]
        items.append(_Assistant(content, event.reasoning, calls or None))
        items += [
            _Result(call.sent_id, _parts(result), call.name if dialect.named_results else UNSET)
            for call, result in zip(event.calls, event.results, strict=True)
        ]
    return items


def _parts(content: Content) -> _Content:
    """One text stands alone, several in a list."""
    if isinstance(content, str):
        return content
    return content[0] if len(content) == 1 else [_Text(text) for text in content]
