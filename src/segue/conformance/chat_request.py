"""A Chat Completions body parsed for its rules: messages, tool calls, and turns of calls and results.

A turn is one assistant message with calls and the tool messages after it. System messages between the results of a
turn are recorded in `system_messages`, so that the results after them still count for the turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from segue.conformance.lookup import list_objects, member, object_or_empty
from segue.conformance.values import has_text, is_list, text_or_empty
from segue.errors import InputError
from segue.models import Model

_SYSTEM_ROLES = frozenset({"system", "developer"})


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message; the role is `""` and `data` is empty if it is malformed."""

    index: int
    role: str
    data: Mapping[str, object]

    @property
    def path(self) -> str:
        return f"messages[{self.index}]"

    @property
    def content(self) -> object:
        return self.data.get("content")

    def parts(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield the parts of a list content with their paths."""
        return list_objects(self.content, f"{self.path}.content")


class Call(msgspec.Struct, frozen=True, gc=False):
    """An entry of `tool_calls`; `data` is empty if the entry is not an object."""

    message: int
    position: int
    data: Mapping[str, object]

    @property
    def path(self) -> str:
        return f"messages[{self.message}].tool_calls[{self.position}]"

    @property
    def id(self) -> object:
        return self.data.get("id")

    @property
    def is_function(self) -> bool:
        """True for a call of a function tool; custom and built-in calls have other members."""
        return self.data.get("type", "function") in ("function", None)

    @property
    def function(self) -> Mapping[str, object]:
        return object_or_empty(self.data.get("function"))


class Result(msgspec.Struct, frozen=True, gc=False):
    """A message of role `tool`."""

    message: Message

    @property
    def path(self) -> str:
        return self.message.path

    @property
    def id(self) -> object:
        return self.message.data.get("tool_call_id")


class Turn(msgspec.Struct, frozen=True, gc=False):
    """The calls of one assistant message, the results after it, and system messages between those."""

    calls: Sequence[Call]
    results: list[Result]
    system_messages: list[Message]

    def call_ids(self) -> set[str]:
        return {call.id for call in self.calls if has_text(call.id)}

    def result_ids(self) -> set[str]:
        return {result.id for result in self.results if has_text(result.id)}


class Tool(msgspec.Struct, frozen=True):
    """An entry of `tools`; `data` is empty if the entry is not an object."""

    index: int
    data: Mapping[str, object]

    @property
    def type(self) -> object:
        return self.data.get("type", "function")

    def definition(self) -> tuple[str, Mapping[str, object]]:
        """Return the path and value of the object with name and description."""
        key = "custom" if self.type == "custom" else "function"
        return f"tools[{self.index}].{key}", object_or_empty(self.data.get(key))


class ChatRequest(msgspec.Struct, frozen=True):
    """The body, parsed once for all rules."""

    body: Mapping[str, object]
    model: Model
    messages: Sequence[Message]
    calls: Sequence[Call]
    turns: Sequence[Turn]
    orphans: Sequence[Result]
    tools: Sequence[Tool]


def iter_messages(body: Mapping[str, object]) -> Iterator[tuple[int, str, Mapping[str, object]]]:
    """Yield index, role and value of each message; a malformed one has no role and no members.

    The rules about types report malformed messages. Raises `InputError` if the body has no messages at all.
    """
    if "messages" not in body:
        raise InputError("a list of messages is expected; the body has none", path="messages")
    messages = body["messages"]
    for index, message in enumerate(messages if is_list(messages) else ()):
        yield index, text_or_empty(member(message, "role")), object_or_empty(message)


def _parse_calls(message: Message) -> list[Call]:
    entries = message.data.get("tool_calls")
    if message.role != "assistant" or not is_list(entries):
        return []
    return [Call(message.index, position, object_or_empty(entry)) for position, entry in enumerate(entries)]


class _OpenTurn:
    """A turn while it is parsed: unanswered ids, and system messages not yet known to be inside the turn."""

    def __init__(self, calls: list[Call]) -> None:
        self.turn = Turn(calls, [], [])
        self.open_ids = self.turn.call_ids()
        self.pending: list[Message] = []

    def add(self, result: Result) -> None:
        self.turn.results.append(result)
        self.turn.system_messages.extend(self.pending)
        self.pending.clear()
        if has_text(result.id):
            self.open_ids.discard(result.id)


def _group_turns(messages: Sequence[Message], calls: Mapping[int, list[Call]]) -> tuple[list[Turn], list[Result]]:
    turns: list[Turn] = []
    orphans: list[Result] = []
    open_turn: _OpenTurn | None = None
    for message in messages:
        if message.role == "tool":
            if open_turn is None:
                orphans.append(Result(message))
            else:
                open_turn.add(Result(message))
        elif message.role in _SYSTEM_ROLES and open_turn is not None and open_turn.open_ids:
            open_turn.pending.append(message)
        elif message.index in calls:
            open_turn = _OpenTurn(calls[message.index])
            turns.append(open_turn.turn)
        else:
            open_turn = None
    return turns, orphans


def parse_request(body: Mapping[str, object], model: Model) -> ChatRequest:
    """Parse a body; raises `InputError` if it has no messages."""
    messages = [Message(*message) for message in iter_messages(body)]
    calls = {message.index: parsed for message in messages if (parsed := _parse_calls(message))}
    turns, orphans = _group_turns(messages, calls)
    declared = body.get("tools")
    tools = [Tool(index, object_or_empty(tool)) for index, tool in enumerate(declared if is_list(declared) else ())]
    all_calls = [call for message_calls in calls.values() for call in message_calls]
    return ChatRequest(body, model, messages, all_calls, turns, orphans, tools)


def find_non_functions(request: ChatRequest) -> Iterator[tuple[str, object]]:
    """Yield path and type of calls and tools of a type other than `function`, legacy `function_call` included."""
    for message in request.messages:
        if message.data.get("function_call"):
            yield f"{message.path}.function_call", "function_call"
        if message.role == "function":
            yield f"{message.path}.role", "function"
    for call in request.calls:
        if call.data.get("type") != "function":
            yield f"{call.path}.type", call.data.get("type")
    for tool in request.tools:
        if tool.type != "function":
            yield f"tools[{tool.index}].type", tool.type
