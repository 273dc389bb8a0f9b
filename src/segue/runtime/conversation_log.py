"""`ConversationLog`: the interface through which a session and its scheduler write a conversation.

`StoredConversation` implements it with a store; `InMemoryLog` without one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol, cast
from uuid import uuid4

from segue._conversation import Conversation
from segue._literals import Api
from segue._rendered import Rendered
from segue.canonical.blocks import Message, ToolCall
from segue.canonical.compress import CompressionResult
from segue.canonical.request import Reply
from segue.store.replay import change_settings, publish_result, result_call_id


class ConversationLog(Protocol):
    """The write interface to a conversation. `record_result` stores a result, `flush` adds it to the history.

    Results enter the history in call order. If all earlier calls of the turn have results, `record_result` adds the
    result to the history itself, together with results of later calls that waited for it: one write for each call.
    """

    @property
    def id(self) -> str:
        """The id of the conversation."""
        ...

    @property
    def chat(self) -> Conversation:
        """The conversation, for reading only."""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the history."""
        ...

    @property
    def pending(self) -> list[ToolCall]:
        """Calls without a result, in call order."""
        ...

    def render(self, target: str, model: str | None = None, **policy: Any) -> Rendered:
        """Render the next request, as `Conversation.render` does."""
        ...

    def update_settings(self, **settings: Any) -> None:
        """Change `system`, `tools` or `options`."""
        ...

    def add_user(self, content: Any) -> None:
        """Add a user message."""
        ...

    def add_reply(self, reply: Reply) -> Reply:
        """Add a reply, and return it with this conversation's ids in its calls."""
        ...

    def is_runnable(self, call: ToolCall) -> bool:
        """Return whether this call may be run: pending, without a stored result, not started by another process."""
        ...

    def record_result(
        self,
        call: ToolCall,
        content: object = None,
        *,
        error: bool = False,
        outcome: Literal["denied", "cancelled"] | None = None,
    ) -> None:
        """Store the result or other outcome of a call."""
        ...

    def flush(self, *calls: ToolCall) -> None:
        """Add the stored results of these calls to the history, in this order."""
        ...

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        """Add the result of a call to the history at once."""
        ...

    def mark_sent(self) -> None:
        """Mark the last rendered request as sent: its results are final from now on."""
        ...

    def record_broken(self, reply: Reply) -> None:
        """Store an incomplete reply as evidence; it does not enter the history."""
        ...

    def switch(
        self, target: str, model: str | None = None, *, provider: str | None = None, emulated: bool = False
    ) -> None:
        """Record another target or model, used from the next request on."""
        ...

    def compress(self, strategy: str, budget: int, **more: Any) -> CompressionResult:
        """Compress the history to a token budget, as `Conversation.compress` does."""
        ...

    def renew_lease(self) -> None:
        """Renew the lease, if there is one."""
        ...

    def close(self) -> None:
        """Release the lease, if there is one."""
        ...

    def create_child(self, chat: Conversation, title: str) -> ConversationLog:
        """Create a log of the same kind for a subagent."""
        ...


class InMemoryLog:
    """A `ConversationLog` in memory. `broken` holds the incomplete replies."""

    def __init__(self, chat: Conversation | None = None, *, title: str | None = None) -> None:
        self.id = uuid4().hex
        self.chat = chat if chat is not None else Conversation()
        self.title = title
        self.target: tuple[str, str | None] | None = None
        self.broken: list[Reply] = []
        self._results: dict[str, Message] = {}

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.chat.messages

    @property
    def pending(self) -> list[ToolCall]:
        return self.chat.pending

    def render(self, target: str, model: str | None = None, **policy: Any) -> Rendered:
        return self.chat.render(cast("Api", target), model, **policy)

    def update_settings(self, **settings: Any) -> None:
        change_settings(self.chat, settings)

    def add_user(self, content: Any) -> None:
        self._flush_pending()
        self.chat.add_user(content)

    def add_reply(self, reply: Reply) -> Reply:
        self._flush_pending()
        return self.chat.add_reply(reply)

    def is_runnable(self, call: ToolCall) -> bool:
        return self.chat.state.history.is_pending(call.id) and call.id not in self._results

    def record_result(
        self,
        call: ToolCall,
        content: object = None,
        *,
        error: bool = False,
        outcome: Literal["denied", "cancelled"] | None = None,
    ) -> None:
        message = self.chat.state.build_outcome(call, content, error=error, outcome=outcome)
        ready = publish_result(self.chat.state.history, self._results, message)
        self._results[result_call_id(message)] = message
        self._add_results(map(result_call_id, ready))

    def flush(self, *calls: ToolCall) -> None:
        self._add_results(call.id for call in calls if call.id in self._results)

    def _flush_pending(self) -> None:
        self.flush(*self.chat.pending)

    def _add_results(self, calls: Iterable[str]) -> None:
        for call_id in calls:
            self.chat.state.history.add(self._results.pop(call_id))

    def add_result(self, call: ToolCall | str, content: object = None, *, error: bool = False) -> None:
        self.chat.add_result(call, content, error=error)

    def mark_sent(self) -> None:
        self._flush_pending()
        self.chat.mark_sent()

    def record_broken(self, reply: Reply) -> None:
        self.broken.append(reply)

    def switch(
        self, target: str, model: str | None = None, *, provider: str | None = None, emulated: bool = False
    ) -> None:
        self.target = target, model

    def compress(self, strategy: str, budget: int, **more: Any) -> CompressionResult:
        return self.chat.compress(strategy, budget, **more)

    def renew_lease(self) -> None:
        """Do nothing: an in-memory log has no lease."""

    def close(self) -> None:
        """Do nothing: an in-memory log has no lease."""

    def create_child(self, chat: Conversation, title: str) -> InMemoryLog:
        return InMemoryLog(chat, title=title)
