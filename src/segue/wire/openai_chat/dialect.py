"""`ChatDialect`: the differences between vendors on the chat wire, and the render context.

A dialect is data: the functions of the wire read its fields and never compare a vendor's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Struct

from segue.canonical.blocks import UNKNOWN_PROVIDER
from segue.canonical.request import Options, Reasoning
from segue.models import Model
from segue.render.constraints import Constraints
from segue.render.report import Report, field_level
from segue.wire.base import ApiError, RenderContext, WireContext
from segue.wire.json_values import JsonObject
from segue.wire.mixed_body import BodyApi
from segue.wire.openai_shared import render_error
from segue.wire.options import OptionTypes, drop_options
from segue.wire.schema.rules import UNRESTRICTED, SchemaRules


class ChatDialect(Struct, frozen=True, dict=True):
    """One vendor on this wire. The defaults are those of a server with no extensions."""

    name: str
    provider: str
    default_model: str
    constraints: Callable[[Model], Constraints]
    kind: Literal["wire", "dialect", "server"] = "dialect"

    reasoning_key: str | None = None
    """The key of an assistant message that holds reasoning text."""
    reasoning_parts: bool = False
    """Whether reasoning is a `thinking` part of the assistant's content instead."""
    reasoning_option: Literal["effort", "thinking", "graded", "switch"] = "effort"
    """effort: `reasoning_effort`; thinking: `thinking` on or off; graded: both; switch: `enable_thinking`."""
    prefill_key: str | None = None
    """The key that marks a last assistant message as a prefill."""
    developer_role: bool = False
    """Whether the role `developer` exists."""
    custom_tools: bool = False
    vendor_options: bool = False
    """Whether this is OpenAI itself, with the options that both of its APIs share."""
    legacy_calls: bool = False
    """Whether the legacy `function_call` and role `function`, which have no ids, are accepted."""
    extra_call_types: frozenset[str] = frozenset()
    """Further call types that hold a `function` object."""
    untyped: bool = False
    """Whether a call or a declaration of a function may omit its type."""
    empty_lists: bool = False
    """Whether `tool_calls` may be empty, and `content` beside calls."""
    refusals: bool = False
    """Whether a refusal has a key of its own."""
    named_results: bool = False
    """Whether tool messages carry the tool's name."""
    arguments: Literal["text", "json", "object"] = "text"
    """What the arguments string must be: any text, JSON, or a JSON object."""
    invalid_json_arguments: bool = False
    """Whether arguments that are not valid JSON are known to be accepted, also in cross-API calls."""
    object_arguments: bool = False
    """Whether arguments may also be the object itself."""
    empty_content: str | None = None
    """The content of a message that has only calls."""
    content_parts: bool = True
    """Whether content may be a list of text parts; if not, texts are joined with line breaks."""
    glued_parts: bool = False
    """Whether chat templates put text parts together without white space: such texts are joined with an empty line."""
    media: frozenset[str] = frozenset({"image"})
    """Media kinds accepted in user messages."""
    string_media: bool = False
    """Whether a file or audio part holds a string (a URL or data) instead of an object: `document_url`."""
    max_tokens_key: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    media_urls: bool = True
    """Whether the vendor fetches image and video URLs."""
    stop_limit: int = 4
    tool_limit: int = 128
    empty_tools: bool = True
    """Whether an empty list of tools is accepted."""
    parameters_required: bool = False
    """Whether every declared function must have a valid draft 7 schema."""
    required_choice: bool = True
    """Whether `tool_choice` may be `required`."""
    hosted_tools: bool = True
    """Whether the vendor has hosted tools."""
    description_limit: int | None = None
    schema_rules: SchemaRules = UNRESTRICTED
    """The accepted subset of JSON Schema, for tools and response formats."""
    strict_schema_rules: SchemaRules | None = None
    """The same for `strict`; None if there is no such mode."""
    option_types: OptionTypes = {}
    """Options of this vendor alone that have no canonical field."""
    option_keys: Mapping[str, str | None] = {}
    """Keys of options that differ from the usual ones; None if the option does not exist."""
    allowed_keys: Mapping[str, frozenset[str]] = {}
    """Allowed keys by place, where others are rejected: `body`, a role, `call`, `call.function`, `tools`,
    `tools.function`, or a part type."""
    refused_keys: Mapping[str, frozenset[str]] = {}
    """Rejected keys by place, as in `allowed_keys`."""
    allowed_part_types: Mapping[str, frozenset[str]] = {}
    """Allowed part types by role, where others are rejected."""
    template_options: bool = False
    """Whether `chat_template_kwargs` may enable thinking."""
    encrypted_reasoning: bool = False
    """Whether encrypted reasoning is in `reasoning_details`: one entry per message, for its first call."""
    streamed_calls: bool = True
    """Whether arguments are streamed in deltas; if not, each call is sent whole."""
    usage_at_end: bool = False
    """Whether the last chunk of a stream always has the usage."""
    error_finish: str | None = None
    """The finish reason of a reply that broke off, if the vendor has one."""
    render_error: Callable[[ApiError], JsonObject] = render_error
    """Renders an error body."""
    by_model: Callable[[Model], Mapping[str, Any]] = lambda _model: {}
    """Returns the fields that differ for a model."""
    adjust_options: Callable[[Options, Model, Report], Options] = lambda options, _model, _report: options
    """Removes what the vendor's models reject from cross-API options."""

    @property
    def stream_fields(self) -> JsonObject:
        """The fields of a body that select a stream with its usage."""
        return {"stream": True} if self.usage_at_end else {"stream": True, "stream_options": {"include_usage": True}}

    @property
    def reasoning_provider(self) -> str:
        """The provider of reasoning in messages. OpenAI sends none, and the models of a server are of any provider."""
        return self.provider if self.kind == "dialect" else UNKNOWN_PROVIDER

    def for_model(self, model: Model) -> ChatDialect:
        """Return the dialect with the fields that differ for a model."""
        changes = self.by_model(model)
        return msgspec.structs.replace(self, **changes) if changes else self

    @cached_property
    def body_api(self) -> BodyApi:
        """This API, for tool items of other APIs in a body of it."""
        return BodyApi(self.name, "openai-chat", self.provider)

    def accepts_key(self, key: str) -> bool:
        """Return whether an assistant message may have this key."""
        allowed = self.allowed_keys.get("assistant")
        return (allowed is None or key in allowed) and (key != "refusal" or self.refusals)


class ChatContext(WireContext):
    """The render context: the dialect, projected ids and names, calls sent in the legacy form, and dropped keys.

    In a reply (`is_reply`) arguments that are not valid JSON are not wrapped.
    """

    def __init__(self, dialect: ChatDialect, render_context: RenderContext, *, is_reply: bool = False) -> None:
        super().__init__(render_context, dialect.name)
        self.dialect = dialect
        self.is_reply = is_reply
        self.legacy_calls: set[str] = set()
        self.dropped_keys: set[tuple[str, str]] = set()


_PLACE_NAMES = {"body": "the request", "call": "tool calls", "call.function": "tool calls", "text": "text parts"}


def drop_unknown_keys(entry: JsonObject, place: str, context: ChatContext) -> JsonObject:
    """Drop the keys that the target rejects in this place; returns the same object if there are none."""
    allowed = context.dialect.allowed_keys.get(place)
    refused: Set[str] = entry.keys() & context.dialect.refused_keys.get(place, ())
    dropped = refused if allowed is None else refused | (entry.keys() - allowed)
    if not dropped:
        return entry
    for key in sorted(dropped):
        if (place, key) not in context.dropped_keys and entry[key] is not None:
            owner = _PLACE_NAMES.get(place, f"{place} messages")
            message = f"`{key}` of {owner} dropped: not accepted by {context.dialect.name}"
            context.report.add("dropped", message, subject=key, fault="projection", level=field_level(key))
        context.dropped_keys.add((place, key))
    return {key: value for key, value in entry.items() if key not in dropped}


def is_reasoning_off(reasoning: Reasoning | None) -> bool:
    """Return whether reasoning is disabled, by `enabled` or by effort."""
    return reasoning is not None and reasoning.is_off


def fit_reasoning(
    options: Options, report: Report, reasoning_support: Literal["never", "optional", "always"]
) -> Options:
    """Drop the reasoning option where the model never reasons or always does."""
    reasoning = options.reasoning
    if reasoning is None or reasoning_support == "optional":
        return options
    if is_reasoning_off(reasoning) == (reasoning_support == "never"):
        # A model that always reasons does so at its maximum.
        has_amount = reasoning.effort not in (None, "high") or (
            reasoning.effort is None and reasoning.budget is not None
        )
        if reasoning_support == "always" and has_amount:
            return drop_options(options, report, "the model always reasons and has no effort setting", "reasoning")
        return msgspec.structs.replace(options, reasoning=None)
    why = "the model does not support reasoning" if reasoning_support == "never" else "the model always reasons"
    return drop_options(options, report, why, "reasoning")
