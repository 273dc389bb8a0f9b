"""The type of a chat command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from segue.errors import InputError
from segue.view.clean import harmless_line

if TYPE_CHECKING:
    from segue.cli.chatting.loop import Chat

__all__ = ["Command", "Offer", "Offers"]

Offer: TypeAlias = tuple[str, str]
"""A completion and its description."""
Run: TypeAlias = "Callable[[Chat, str], Awaitable[None]]"
Offers: TypeAlias = "Callable[[Chat], Iterable[Offer]]"


class Command(Struct, frozen=True):
    """One command. `suggestions` lists completions for its arguments; `max_words` limits their number (default: as many
    as in `parameters`)."""

    name: str
    about: str
    run: Any
    takes: str = ""
    busy: bool = True
    offers: Any = None
    most: int | None = None

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.takes}".rstrip()

    def checked(self, words: str) -> str:
        """Return the arguments; raises `InputError` if there are too many."""
        limit = len(self.takes.split()) if self.most is None else self.most
        if len(words.split()) > limit:
            raise InputError(f"too many arguments: {harmless_line(words)!r}; usage: {self.usage}")
        return words

    async def __call__(self, chat: Chat, words: str) -> None:
        run: Run = self.run
        await run(chat, words)

    def offered(self, chat: Chat) -> Iterable[Offer]:
        offers: Offers | None = self.offers
        return offers(chat) if offers is not None else ()
