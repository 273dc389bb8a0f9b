"""Which result is whose, for a reader who sees calls and results one below the other."""

from __future__ import annotations

from segue.canonical.blocks import Message, ToolCall, ToolResponse, calls_of, responses_of
from segue.view.words import argument_text, shortened

__all__ = ["Calls"]

_SHOWN = 60


class Calls:
    """The calls that were shown so far. Where several wait at once each has a number, and its result the same."""

    def __init__(self) -> None:
        self._shown: dict[str, ToolCall] = {}
        self._numbers: dict[str, int] = {}
        self._open: set[str] = set()
        self._newest = ""

    def meet(self, message: Message) -> None:
        """A message that is about to be shown."""
        calls = [call for call in calls_of(message) if call.id]
        own = {response.call_id for response in responses_of(message)}
        waiting = [call for call in calls if call.id not in own]
        if len(waiting) > 1 or (waiting and self._open):
            for call in waiting:
                self._numbers[call.id] = len(self._numbers) + 1
        self._shown.update((call.id, call) for call in calls)
        self._open.update(call.id for call in waiting)
        self._newest = calls[-1].id if calls else self._newest

    def of_call(self, call: ToolCall) -> str:
        """What stands behind the name of a call."""
        return f" #{self._numbers[call.id]}" if call.id in self._numbers else ""

    def of_result(self, response: ToolResponse) -> str:
        """What stands behind the name of a result: the number of its call, or the call itself if that is far away."""
        self._open.discard(response.call_id)
        if response.call_id in self._numbers:
            return f" #{self._numbers[response.call_id]}"
        if response.call_id in ("", self._newest):
            return ""
        call = self._shown.get(response.call_id)
        return f" (of {shortened(argument_text(call), _SHOWN)})" if call is not None else " (its call is further up)"
