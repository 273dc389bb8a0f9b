"""Labels that match tool results to their calls in a listing."""

from __future__ import annotations

from segue.canonical.blocks import Message, ToolCall, ToolResponse, calls_of, responses_of
from segue.view.format import format_arguments, shorten

__all__ = ["CallLabels"]

_MAX_ARGUMENTS = 60


class CallLabels:
    """The calls listed so far. Where several are open at once, a call and its result get the same number."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._numbers: dict[str, int] = {}
        self._open: set[str] = set()
        self._newest = ""

    def add_message(self, message: Message) -> None:
        """Record a message before it is listed."""
        calls = [call for call in calls_of(message) if call.id]
        answered = {response.call_id for response in responses_of(message)}
        pending = [call for call in calls if call.id not in answered]
        if len(pending) > 1 or (pending and self._open):
            for call in pending:
                self._numbers[call.id] = len(self._numbers) + 1
        self._calls.update((call.id, call) for call in calls)
        self._open.update(call.id for call in pending)
        self._newest = calls[-1].id if calls else self._newest

    def label_call(self, call: ToolCall) -> str:
        """The label after the name of a call."""
        return f" #{self._numbers[call.id]}" if call.id in self._numbers else ""

    def label_result(self, response: ToolResponse) -> str:
        """The label after the name of a result: its call's number, or its arguments if it is not the newest."""
        self._open.discard(response.call_id)
        if response.call_id in self._numbers:
            return f" #{self._numbers[response.call_id]}"
        if response.call_id in ("", self._newest):
            return ""
        call = self._calls.get(response.call_id)
        return (
            f" (of {shorten(format_arguments(call), _MAX_ARGUMENTS)})"
            if call is not None
            else " (its call is not shown)"
        )
