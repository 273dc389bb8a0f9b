"""What makes one vendor on the chat wire differ from another, and what one rendering carries along.

A dialect is data: the functions of the wire read it and never ask for a vendor's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Native
from segue.canonical.request import Options
from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.wire.base import Projection
from segue.wire.idmap import IdScheme
from segue.wire.names import NameRule
from segue.wire.schema.rules import PLAIN, SchemaRules

__all__ = ["ChatDialect", "JsonObject", "Spelling", "left_out", "rewritten"]

JsonObject: TypeAlias = dict[str, Any]


def _plain_names(_model: Model) -> NameRule:
    return NameRule()


def _as_given(options: Options, _model: Model, _report: Report) -> Options:
    return options


class ChatDialect(Struct, frozen=True):
    """One vendor on this wire. The defaults are those of a server that knows the plain wire and no more."""

    name: str
    provider: str
    title: str
    default_model: str
    demands: Callable[[Model], Demands]
    ids: Callable[[Model], IdScheme]
    kind: Literal["wire", "dialect"] = "dialect"
    tool_format: str = "openai"
    names: Callable[[Model], NameRule] = _plain_names

    reasoning_key: str | None = None
    """The key of an assistant message that holds reasoning text."""
    reasoning_option: Literal["effort", "thinking"] = "effort"
    """`reasoning_effort` with its levels, or `thinking`, which is on or off."""
    developer: bool = False
    """Whether the role `developer` exists."""
    custom_tools: bool = False
    old_calls: bool = False
    """Whether `function_call` and the role `function`, which know no ids, are still understood."""
    call_types: frozenset[str] = frozenset()
    """Types of calls beside `function` and `custom` that hold a `function` all the same."""
    refusals: bool = False
    """Whether a refusal has a key of its own."""
    named_results: bool = False
    """Whether tool messages carry the tool's name."""
    media: frozenset[str] = frozenset({"image"})
    """Kinds of media that a user's message may hold."""
    limit_key: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    max_temperature: float = 2
    stop_limit: int = 4
    tool_limit: int = 128
    description_limit: int | None = None
    schemas: SchemaRules = PLAIN
    """What is taken of JSON Schema, in tools and for answers."""
    strict_schemas: SchemaRules | None = None
    """The same where `strict` is asked for; None where there is no such mode."""
    adjust: Callable[[Options, Model, Report], Options] = _as_given
    """What the vendor's models refuse, taken out of options that came from abroad."""


class Spelling:
    """One rendering: the dialect, the target's ids and names, and which calls went out in the old form."""

    __slots__ = ("dialect", "fetch", "ids", "legacy", "report", "spell")

    def __init__(self, dialect: ChatDialect, projection: Projection) -> None:
        self.dialect = dialect
        self.ids = projection.ids
        self.spell = projection.names.render
        self.report = projection.report
        self.fetch = projection.fetch
        self.legacy: set[str] = set()

    def home(self, native: Native | None) -> Native | None:
        """The native fragment if it is this very API's."""
        return native if native is not None and native.api == self.dialect.name else None


def rewritten(fragment: Mapping[str, Any], anew: JsonObject, modelled: frozenset[str]) -> JsonObject:
    """The fragment with its modelled keys written anew; the other keys stay, and so does the order."""
    body = {key: anew.get(key, value) for key, value in fragment.items() if key in anew or key not in modelled}
    body.update(anew)
    return body


def left_out(options: Options, report: Report, why: str, *names: str) -> Options:
    """The options without these; each that was set is reported."""
    said = [name for name in names if getattr(options, name) is not None]
    for name in said:
        report.add("adjusted", f"{name} is left out: {why}", subject=name)
    return msgspec.structs.replace(options, **dict.fromkeys(said)) if said else options
