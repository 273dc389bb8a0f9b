"""What a command of the chat is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from segue.cli.chatting.loop import Chat

__all__ = ["Command", "Offer", "Offers"]

Offer: TypeAlias = tuple[str, str]
"""Something to complete, and what is said beside it."""
Run: TypeAlias = "Callable[[Chat, str], Awaitable[None]]"
Offers: TypeAlias = "Callable[[Chat], Iterable[Offer]]"


class Command(Struct, frozen=True):
    """One command. `busy` says whether it may be given while a turn runs; `offers` what may follow it."""

    name: str
    about: str
    run: Any
    takes: str = ""
    busy: bool = True
    offers: Any = None

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.takes}".rstrip()

    async def __call__(self, chat: Chat, words: str) -> None:
        run: Run = self.run
        await run(chat, words)

    def offered(self, chat: Chat) -> Iterable[Offer]:
        offers: Offers | None = self.offers
        return offers(chat) if offers is not None else ()
