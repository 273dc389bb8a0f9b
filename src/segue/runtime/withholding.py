"""That secrets which tools are kept from are not told all the same.

A shell has no key in its environment, but ways to find one: in a file, in another process. So the text of a secret that
was withheld is taken out of whatever a tool gives back, before anybody hears of it: exactly that text, not one that was
encoded or cut up. What is short, or a path, is no secret worth the damage.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, cast

import msgspec

from segue.canonical.blocks import Code, Opaque, Text
from segue.runtime.environ import child_environment, is_worth_hiding
from segue.runtime.outputs import error_words
from segue.runtime.tooling import Result, ToolError

__all__ = ["Veil", "hide_process", "withheld_from"]

_SET_DUMPABLE = 4


def withheld_from(environment: Callable[[], Mapping[str, str]] = child_environment) -> dict[str, str]:
    """The names of the secrets that are not in an environment, by their values."""
    given = environment()
    return {value: name for name, value in os.environ.items() if name not in given and is_worth_hiding(name, value)}


@cache
def hide_process() -> None:
    """Keeps other processes of this user from reading this one's environment and memory, where the system can.

    On Linux only; the superuser reads everything.
    """
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        except (OSError, AttributeError):
            return


class Veil:
    """Takes secrets out of what a tool says. `secrets` are names by values."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        # What holds another goes first.
        self._marks = [(value, f"[{secrets[value]} withheld]") for value in sorted(secrets, key=len, reverse=True)]

    def text(self, text: str) -> str:
        for value, mark in self._marks:
            text = text.replace(value, mark)
        return text

    def over(self, value: object) -> Any:
        """The value without them, however deep they are."""
        match value:
            case str():
                return self.text(value)
            case bytes() | bytearray():
                told = bytes(value)
                for secret, mark in self._marks:
                    told = told.replace(secret.encode(errors="surrogateescape"), mark.encode(errors="replace"))
                return told
            case Result():
                return msgspec.structs.replace(value, content=self.over(value.content))
            case Text() | Opaque():
                return msgspec.structs.replace(value, text=self.text(value.text))
            case Code():
                return msgspec.structs.replace(value, code=self.text(value.code))
            case dict():
                fields = cast("dict[object, object]", value)
                return {self.over(name): self.over(inner) for name, inner in fields.items()}
            case list():
                return [self.over(inner) for inner in cast("list[object]", value)]
            case tuple() if type(cast("object", value)) is tuple:
                return tuple(self.over(inner) for inner in cast("tuple[object, ...]", value))
            case _:
                return value

    def error(self, error: Exception) -> Exception:
        """The error itself, or its words without them."""
        words = error_words(error)
        veiled = self.text(words)
        return error if veiled == words else ToolError(veiled)

    async def awaited(self, value: Awaitable[object]) -> Any:
        try:
            return self.over(await value)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if (told := self.error(error)) is error:
                raise
            raise told from None
