"""Masking of secrets in tool output.

A shell gets no API key in its environment, but can read one from a file or another process. So the values of the
variables that are removed from its environment are replaced in everything that a tool returns. Only exact matches are
replaced, not encoded or split values. Short values and paths are not masked.
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
from segue.runtime.environ import child_environment, is_maskable
from segue.runtime.outputs import format_error
from segue.runtime.tool_types import Result, ToolError

_SET_DUMPABLE = 4


def find_hidden_secrets(environment: Callable[[], Mapping[str, str]] = child_environment) -> dict[str, str]:
    """Return the secrets of this process that are not in the given environment: value → variable name."""
    visible = environment()
    return {value: name for name, value in os.environ.items() if name not in visible and is_maskable(name, value)}


@cache
def protect_process_memory() -> None:
    """Prevent other processes of this user from reading this one's environment and memory.

    On Linux only; root can still read them.
    """
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        except (OSError, AttributeError):
            return


class SecretMask:
    """Replaces secrets in tool output. `secrets` maps each value to the name of its variable."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        # Longest first, as one value may contain another.
        self._replacements = [
            (value, f"[{secrets[value]} withheld]") for value in sorted(secrets, key=len, reverse=True)
        ]

    def mask_text(self, text: str) -> str:
        for value, mark in self._replacements:
            text = text.replace(value, mark)
        return text

    def mask(self, value: object) -> Any:
        """Mask all texts in a value, recursively."""
        match value:
            case str():
                return self.mask_text(value)
            case bytes() | bytearray():
                masked = bytes(value)
                for secret, mark in self._replacements:
                    masked = masked.replace(secret.encode(errors="surrogateescape"), mark.encode(errors="replace"))
                return masked
            case Result():
                return msgspec.structs.replace(value, content=self.mask(value.content))
            case Text() | Opaque():
                return msgspec.structs.replace(value, text=self.mask_text(value.text))
            case Code():
                return msgspec.structs.replace(value, code=self.mask_text(value.code))
            case dict():
                fields = cast("dict[object, object]", value)
                return {self.mask(name): self.mask(inner) for name, inner in fields.items()}
            case list():
                return [self.mask(inner) for inner in cast("list[object]", value)]
            case tuple() if type(cast("object", value)) is tuple:
                return tuple(self.mask(inner) for inner in cast("tuple[object, ...]", value))
            case _:
                return value

    def mask_error(self, error: Exception) -> Exception:
        """Return the error itself, or a `ToolError` with the masked message."""
        text = format_error(error)
        masked = self.mask_text(text)
        return error if masked == text else ToolError(masked)

    async def mask_awaitable(self, value: Awaitable[object]) -> Any:
        try:
            return self.mask(await value)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if (masked := self.mask_error(error)) is error:
                raise
            raise masked from None
