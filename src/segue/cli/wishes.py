"""What was asked for this time, by flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from segue.cli import streams

__all__ = ["Wishes"]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was asked for this time; whatever is not, is as the user set it."""

    models: tuple[str, ...] = ()
    latest: bool = False
    conversation: str | None = None
    fork: bool = False
    system: str | None = None
    tool_format: str | None = None
    tools: tuple[str, ...] | None = None
    allow: tuple[str, ...] = ()
    steps: int | None = None
    trusting: bool = False
    keep: bool = True
    debug: bool = False

    @classmethod
    def given(cls, ctx: click.Context, flags: Mapping[str, Any]) -> Wishes:
        """From the flags of `options.agent_options`."""
        wished: dict[str, Any] = dict(flags)
        names: str | None = wished.pop("tools")
        none: bool = wished.pop("no_tools")
        everything, keep = wished.pop("allow_all"), not wished.pop("no_store")
        again = wished["latest"] or wished["conversation"] is not None
        for wrong, why in (
            (wished["latest"] and wished["conversation"] is not None, "-c and -s name different conversations"),
            (wished["fork"] and not again, "--fork is of a conversation; name it with -c or -s"),
            (again and not keep, "--no-store keeps nothing, so there is nothing to go on with"),
            (names is not None and none, "--tools and --no-tools ask for different things"),
        ):
            if wrong:
                raise click.UsageError(why, ctx)
        tools = () if none else _parted(names)
        wished["allow"] = (*wished["allow"], *(("*",) if everything else ()))
        wished |= {"tools": tools, "keep": keep, "system": _system(wished["system"])}
        return cls(**wished)


def _parted(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name for part in names.split(",") if (name := part.strip()))


def _system(text: str | None) -> str | None:
    """`@file` is what the file holds."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return streams.read(text[1:], wanted="a text").decode()
    except UnicodeDecodeError as error:
        raise streams.Unreadable(f"{text[1:]} is not UTF-8: {error.reason} at byte {error.start:,}") from None
