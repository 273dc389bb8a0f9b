"""What a command of the chat is."""

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
"""Something to complete, and what is said beside it."""
Run: TypeAlias = "Callable[[Chat, str], Awaitable[None]]"
Offers: TypeAlias = "Callable[[Chat], Iterable[Offer]]"


class Command(Struct, frozen=True):
    """One command. `busy` says whether it may be given while a turn runs; `offers` what may follow it,
    and `most` how many words: where nothing is said, as many as there are in `takes`."""

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
        """What follows the name; more than the command takes is a slip, and nothing is done."""
        most = len(self.takes.split()) if self.most is None else self.most
        if len(words.split()) > most:
            raise InputError(f"{harmless_line(words)!r} is more than /{self.name} takes: {self.usage}")
        return words

    async def __call__(self, chat: Chat, words: str) -> None:
        run: Run = self.run
        await run(chat, words)

    def offered(self, chat: Chat) -> Iterable[Offer]:
        offers: Offers | None = self.offers
        return offers(chat) if offers is not None else ()
