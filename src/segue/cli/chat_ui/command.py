"""The type of a chat command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from segue.errors import InputError
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat

Suggestion: TypeAlias = tuple[str, str]
"""A completion and its description."""
_Run: TypeAlias = "Callable[[Chat, str], Awaitable[None]]"
_Suggest: TypeAlias = "Callable[[Chat], Iterable[Suggestion]]"


class Command(Struct, frozen=True):
    """One command. `suggestions` lists completions for its arguments; `max_words` limits their number (default: as many
    as in `parameters`)."""

    name: str
    description: str
    run: Any
    parameters: str = ""
    allowed_while_busy: bool = True
    suggestions: Any = None
    max_words: int | None = None

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.parameters}".rstrip()

    def validate_arguments(self, arguments: str) -> str:
        """Return the arguments; raises `InputError` if there are too many."""
        limit = len(self.parameters.split()) if self.max_words is None else self.max_words
        if len(arguments.split()) > limit:
            raise InputError(f"too many arguments: {sanitize_line(arguments)!r}; usage: {self.usage}")
        return arguments

    async def __call__(self, chat: Chat, arguments: str) -> None:
        run: _Run = self.run
        await run(chat, arguments)

    def suggest(self, chat: Chat) -> Iterable[Suggestion]:
        suggest: _Suggest | None = self.suggestions
        return suggest(chat) if suggest is not None else ()
