"""The order of roles: which may follow which (MIS-07 to MIS-09), the last (MIS-10) and the first (MIS-15)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from segue.conformance.chat_request import ChatRequest, Message
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import quote

table: RuleTable[ChatRequest] = RuleTable()


def _messages_with_predecessor(request: ChatRequest, role: str) -> Iterator[tuple[Message, str]]:
    for before, message in pairwise(request.messages):
        if message.role == role:
            yield message, before.role


@table.rule("MIS-07")
def no_user_after_tool(request: ChatRequest) -> Iterator[Problem]:
    """An assistant message is between a result and the next user message."""
    for message, before in _messages_with_predecessor(request, "user"):
        if before == "tool":
            yield Problem(message.path, "Unexpected role 'user' after role 'tool'")


@table.rule("MIS-08")
def tool_after_assistant(request: ChatRequest) -> Iterator[Problem]:
    """A result follows an assistant message or another result."""
    for message, before in _messages_with_predecessor(request, "tool"):
        if before not in ("assistant", "tool"):
            yield Problem(message.path, f"Unexpected role 'tool' after role {quote(before)}")


@table.rule("MIS-09")
def no_system_later(request: ChatRequest) -> Iterator[Problem]:
    """A system message follows neither an assistant message nor a result."""
    for message, before in _messages_with_predecessor(request, "system"):
        if before in ("assistant", "tool"):
            yield Problem(message.path, f"Unexpected role 'system' after role {quote(before)}")


@table.rule("MIS-10")
def last_role(request: ChatRequest) -> Iterator[Problem]:
    """The last message has the role user or tool, or is an assistant message with prefix."""
    if len(request.messages) < 2:
        return
    last = request.messages[-1]
    reason = "Expected last role User or Tool (or Assistant with prefix True) for serving but got"
    if last.role == "assistant" and last.data.get("prefix") is not True:
        yield Problem(last.path, f"{reason} assistant")
    elif last.role == "system":
        # The vendor's validators accept it, the API's error text does not list it.
        yield Problem(last.path, f"{reason} system", "risk")


@table.rule("MIS-15")
def first_message_valid(request: ChatRequest) -> Iterator[Problem]:
    """There is a message; a single one has the role user or system; the first has no calls and is not a result."""
    if not request.messages:
        yield Problem("messages", "Conversation must have at least one message")
        return
    first = request.messages[0]
    if len(request.messages) == 1:
        if first.role in ("assistant", "tool"):
            yield Problem(first.path, "Conversation must start with a user message or system message")
    elif first.role == "tool":
        # The validators count from the second message on, so they accept this one.
        yield Problem(first.path, "a result without a call; Conversation must start with a user message", "risk")
    elif request.turns and request.turns[0].calls[0].message == 0:
        severity: Severity = "reject" if request.turns[0].results else "risk"
        reason = "calls of the first message are not counted; Conversation must start with a user message"
        yield Problem(f"{first.path}.tool_calls", reason, severity)
