"""The options of one run, from command-line flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from segue.cli import streams

__all__ = ["RunOptions"]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of one run of an agent; what is not set comes from the configuration."""

    models: tuple[str, ...] = ()
    emulated: bool = False
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
    def from_flags(cls, ctx: click.Context, flags: Mapping[str, Any]) -> RunOptions:
        """From the flags of `options.agent_options`."""
        values: dict[str, Any] = dict(flags)
        names: str | None = values.pop("tools")
        no_tools: bool = values.pop("no_tools")
        allow_all, keep = values.pop("allow_all"), not values.pop("no_store")
        continues = values["latest"] or values["conversation"] is not None
        for wrong, message in (
            (values["latest"] and values["conversation"] is not None, "-c and -s can't be combined"),
            (values["fork"] and not continues, "--fork needs a conversation: use -c or -s"),
            (continues and not keep, "--no-store can't be combined with -c or -s"),
            (names is not None and no_tools, "--tools and --no-tools can't be combined"),
        ):
            if wrong:
                raise click.UsageError(message, ctx)
        tools = () if no_tools else _split_names(names)
        values["allow"] = (*values["allow"], *(("*",) if allow_all else ()))
        values |= {"tools": tools, "keep": keep, "system": _read_system(values["system"])}
        return cls(**values)


def _split_names(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name for part in names.split(",") if (name := part.strip()))


def _read_system(text: str | None) -> str | None:
    """The system prompt; `@file` is read from the file."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return streams.read(text[1:], expected="a text").decode()
    except UnicodeDecodeError as error:
        raise streams.BadInputError(f"{text[1:]} is not UTF-8: {error.reason} at byte {error.start:,}") from None
