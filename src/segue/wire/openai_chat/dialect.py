"""What makes one vendor on the chat wire differ from another, and what one rendering carries along.

A dialect is data: the functions of the wire read it and never ask for a vendor's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Native
from segue.canonical.request import Options, Reasoning
from segue.models import Model
from segue.render.demands import Demands
from segue.render.report import Report
from segue.wire.base import ApiError, Projection
from segue.wire.fields import JsonObject
from segue.wire.idmap import IdScheme
from segue.wire.names import NameRule
from segue.wire.openai import left_out, render_error
from segue.wire.schema.rules import PLAIN, SchemaRules

__all__ = ["ChatDialect", "JsonObject", "Spelling", "fit_reasoning", "is_off", "left_out", "within"]


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
    reasoning_parts: bool = False
    """Whether reasoning stands among the parts of an assistant's content instead, as `thinking`."""
    reasoning_option: Literal["effort", "thinking", "graded", "switch"] = "effort"
    """`reasoning_effort` with its levels; `thinking`, which is on or off; both; or `enable_thinking` with a budget."""
    prefill_key: str | None = None
    """The key that marks a last assistant message as the beginning of the answer."""
    developer: bool = False
    """Whether the role `developer` exists."""
    custom_tools: bool = False
    kindred_options: bool = False
    """Whether this is OpenAI itself, with the options that its other API has too."""
    old_calls: bool = False
    """Whether `function_call` and the role `function`, which know no ids, are still understood."""
    call_types: frozenset[str] = frozenset()
    """Types of calls beside `function` and `custom` that hold a `function` all the same."""
    untyped_calls: bool = False
    """Whether a call may leave its type out."""
    refusals: bool = False
    """Whether a refusal has a key of its own."""
    named_results: bool = False
    """Whether tool messages carry the tool's name."""
    arguments: Literal["text", "json", "object"] = "text"
    """What the text of arguments must be: anything, JSON, or a JSON object."""
    broken_arguments: bool = False
    """Whether text that is no JSON is known to be taken for arguments, of a call from abroad too."""
    argument_objects: bool = False
    """Whether arguments may also be the object itself."""
    empty_content: str | None = None
    """What stands for content where a message has nothing but calls."""
    content_parts: bool = True
    """Whether texts may stand side by side in a list; if not, they are joined by line breaks."""
    media: frozenset[str] = frozenset({"image"})
    """Kinds of media that a user's message may hold."""
    flat_media: bool = False
    """Whether files and sounds are plain strings in their parts, files by URL (`document_url`)."""
    limit_key: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    max_temperature: float = 2
    media_urls: bool = True
    """Whether the vendor fetches pictures and films by itself."""
    stop_limit: int = 4
    tool_limit: int = 128
    empty_tools: bool = True
    """Whether an empty list of tools is taken."""
    parameters_wanted: bool = False
    """Whether every declared function must have a schema, and one of draft 7."""
    required_choice: bool = True
    """Whether some tool can be asked for without naming it."""
    hosted_tools: bool = True
    """Whether the vendor has tools that it runs itself."""
    description_limit: int | None = None
    schemas: SchemaRules = PLAIN
    """What is taken of JSON Schema, in tools and for answers."""
    strict_schemas: SchemaRules | None = None
    """The same where `strict` is asked for; None where there is no such mode."""
    option_keys: Mapping[str, str | None] = {}
    """What options are called where that is not their usual key; None where there is no such option."""
    known_keys: Mapping[str, frozenset[str]] = {}
    """The keys that may stand in a place, where others are refused: `body`, a role, `call`, `call.function`, `tools`,
    `tools.function`, or the type of a part."""
    part_types: Mapping[str, frozenset[str]] = {}
    """The types of parts that a role may hold, where others are refused."""
    template_options: bool = False
    """Whether `chat_template_kwargs` may switch thinking on."""
    sealed_reasoning: bool = False
    """Whether encrypted reasoning stands in `reasoning_details`, one entry a message, of its first call."""
    streamed_calls: bool = True
    """Whether the arguments of a call are streamed in pieces; if not, each call comes whole."""
    usage_at_end: bool = False
    """Whether a stream tells usage in its last chunk, asked or not."""
    error_finish: str | None = None
    """The reason to stop of a reply that broke off, where there is a word for it."""
    render_error: Callable[[ApiError], JsonObject] = render_error
    """The body of an error."""
    adjust: Callable[[Options, Model, Report], Options] = _as_given
    """What the vendor's models refuse, taken out of options that came from abroad."""

    def says(self, key: str) -> bool:
        """Whether an assistant's message may say something under this key."""
        known = self.known_keys.get("assistant")
        return (known is None or key in known) and (key != "refusal" or self.refusals)


class Spelling:
    """One rendering: the dialect, the target's ids and names, which calls went out in the old form, and which keys had
    to stay behind."""

    __slots__ = ("dialect", "fetch", "ids", "legacy", "report", "spell", "unknown")

    def __init__(self, dialect: ChatDialect, projection: Projection) -> None:
        self.dialect = dialect
        self.ids = projection.ids
        self.spell = projection.names.render
        self.report = projection.report
        self.fetch = projection.fetch
        self.legacy: set[str] = set()
        self.unknown: set[tuple[str, str]] = set()

    def home(self, native: Native | None) -> Native | None:
        """The native fragment if it is this very API's."""
        return native if native is not None and native.api == self.dialect.name else None


def within(entry: JsonObject, place: str, out: Spelling) -> JsonObject:
    """The object less the keys that the target refuses in this place; itself where there are none."""
    known = out.dialect.known_keys.get(place)
    if known is None or entry.keys() <= known:
        return entry
    for key in entry.keys() - known:
        if (place, key) not in out.unknown and entry[key] is not None:
            out.report.add("dropped", f"`{key}` is refused here ({place}): left out", subject=key, fault="projection")
        out.unknown.add((place, key))
    return {key: value for key, value in entry.items() if key in known}


def is_off(reasoning: Reasoning | None) -> bool:
    """Whether reasoning is switched off, in whichever words."""
    return reasoning is not None and (reasoning.enabled is False or reasoning.effort == "none")


def fit_reasoning(options: Options, report: Report, thinks: Literal["never", "asked", "always"]) -> Options:
    """Reasoning as this model can be told of it: not asked of one that never thinks, nor forbidden to one that must."""
    asked = options.reasoning
    if asked is None or thinks == "asked":
        return options
    if is_off(asked) == (thinks == "never"):
        # Such a model thinks as much as it can.
        measured = asked.effort not in (None, "high") or (asked.effort is None and asked.budget is not None)
        if thinks == "always" and measured:
            return left_out(options, report, "this model always thinks, without a measure", "reasoning")
        return msgspec.structs.replace(options, reasoning=None)
    why = "this model does not think" if thinks == "never" else "this model always thinks"
    return left_out(options, report, why, "reasoning")
