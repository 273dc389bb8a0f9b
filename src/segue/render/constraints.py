"""`Constraints`: what a target accepts, one row for each API and model generation. Also `Policy` and the fixed texts.

The passes read these values and never the name of a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from segue.canonical.blocks import Text
from segue.canonical.placeholders import REMOVED
from segue.render.ranges import BodyRange

FilePlace: TypeAlias = tuple[Literal["message", "result"], str]
"""A place and the kind of media in it."""


class Constraints(Struct, frozen=True):
    """The target's row. The defaults describe an API that accepts anything."""

    api: str
    """The wire or dialect: blocks with this `native.api` are same-API."""
    provider: str
    """The provider that ids and reasoning of this API are attributed to."""

    result_grouping: Literal["each", "joint", "alone"] = "each"
    """`each`: one message per result; `joint`: all results of a turn in one message, which the user's content may
    follow; `alone`: all in one message with nothing else in it."""
    results_adjacent: bool = True
    """Results must directly follow their calls. If False, same-API results may stand anywhere."""
    results_in_call_order: bool = False
    """Results must be in call order, also same-API."""
    pairs_by_position: bool = False
    """The target pairs results with calls by position; an id that matches no call is ignored."""
    unpaired_without_id: bool = False
    """The target does not pair calls and results of types that have no id: same-API they are left unchanged."""
    id_pattern: str = r".+"
    """The pattern of ids that the target accepts unchanged."""
    name_pattern: str = r"[\s\S]+"
    """The pattern of tool names that the target accepts unchanged."""
    alternation: Literal["free", "merged", "strict"] = "free"
    """`merged`: neighbours of one role count as one message, so cross-API they are merged; `strict`: also same-API."""
    filler_after_results: bool = False
    """An assistant message is required between a result and the next user message."""
    calls_without_text: bool = False
    """A message with calls must not hold text; that goes into a message before it."""
    calls_in_one_message: bool = False
    """All calls of a reply must be in one message: consecutive messages of the model are not merged by the target."""
    calls_last: bool = False
    """Nothing may stand between calls and their results: the calls of a message follow its other content."""
    one_call_per_message: bool = False
    """A message holds one call at most; each further call follows the result of the one before."""
    first_speaker: Literal["any", "human"] = "any"
    first_speaker_same_api: Literal["any", "human"] = "any"
    first_can_call: bool = True
    """Whether the very first message may hold calls, or be a lone reply, same-API."""
    allows_no_messages: bool = True
    """Whether a same-API body may have no messages."""
    needs_user_message: bool = False
    """At least one user message is required."""
    ending: Literal["free", "prefill", "marked", "human"] = "free"
    """How an assistant message at the end is handled. `free`: a normal turn; `prefill`: the start of the reply;
    `marked`: the start of the reply if it is flagged as such (no other message may be flagged); `human`: an error."""
    allows_system_last: bool = True
    """Whether system text may be last, same-API."""
    allows_prefill_while_reasoning: bool = True
    """Whether a prefill is valid while reasoning is on."""
    allows_blank_ending: bool = True
    """Whether a prefill may end in whitespace."""
    allows_pause: bool = True
    """Whether a hosted tool call or result may be last."""
    hosted_needs_result: bool = False
    """A hosted tool call must have its result before the next user message; at the end it may be open."""
    hosted_pattern: str = r"[\s\S]*"
    """The pattern of hosted tool names that the target accepts back unchanged."""

    system_position: Literal["top", "inline"] = "inline"
    later_system: Literal["developer", "system", "text"] = "developer"
    allows_system: bool = True
    """Whether system text is accepted; if not, it is rendered as user text."""
    later_system_same_api: bool = True
    """Whether same-API system text may follow other messages; else it is rendered as `later_system`."""
    allows_system_after_reply: bool = True
    """Whether system text may follow an assistant message or a result, same-API."""

    reasoning_replay: Literal["none", "newest", "refused", "signed", "either", "plain"] = "none"
    """Which of its own reasoning the target accepts in the history: `none`: only in unchanged same-API messages;
    `refused`: not even there; `signed` reasoning; `newest`: the same in same-API bodies in which only the newest reply
    has encrypted reasoning; `either` of `none` and `signed`, for an unknown model; or `plain` text."""
    can_reason: bool = True
    """Whether the model can reason."""
    reasoning_binding: Literal["provider", "model", "prefix"] = "provider"
    accepts_unknown_reasoning: bool = False
    """With `plain`: whether reasoning text of an unknown provider is accepted too."""
    signature_pattern: str = r"[\s\S]*"
    """The pattern of signatures that the target accepts."""
    allows_reasoning_alone: bool = True
    """Whether a message may hold only reasoning."""
    reasoning_precedes_item: bool = False
    """Reasoning directly precedes the item generated with it; without it, that item's id is rejected."""
    reasoning_required_on_calls: Literal["never", "requested", "default", "always"] = "never"
    """Every message with calls must have reasoning (a placeholder where there is none): while the request turns it on
    (`requested`), unless it is turned off (`default`), or always."""
    reasoning_required_on_text: bool = False
    """With `reasoning_required_on_calls`: messages without calls need it too."""
    placeholder_signature: str = ""
    """A dummy signature that the target accepts on the first call of a message; if empty, the placeholder is reasoning
    text at the beginning of the message."""
    reasoning_by_default: bool = False
    """Whether the model reasons unless reasoning is disabled."""
    can_disable_reasoning: bool = True
    """Whether reasoning can be disabled."""
    reasoning_excludes_tools: bool = False
    """Reasoning can't be combined with declared function tools."""
    open_exchange_needs_reasoning: bool = False
    """While reasoning is on, the first reply of an open exchange must begin with reasoning."""
    reasoning_is_adaptive: bool = False
    """Reasoning without a budget is adaptive, which lifts `open_exchange_needs_reasoning`."""
    reasoning_forbids_forced_choice: bool = False
    forced_choice_disables_reasoning: bool = False
    """Whether the target silently disables reasoning where a tool is forced: cross-API the request disables it."""
    allows_reasoning_at_end: bool = True
    """Whether the last assistant message may hold reasoning while reasoning is off."""

    response_formats: frozenset[str] = frozenset({"json", "schema"})
    """Which response formats are options: any JSON, JSON by a schema. Others become instructions."""
    response_format_with_tools: bool = True
    """Whether a response format may be combined with declared tools."""
    json_word: Literal["free", "anywhere", "messages"] = "free"
    """Where the word "json" must occur with a JSON response format: nowhere (`free`), `anywhere`, or in `messages`."""
    json_word_for_schemas: bool = False
    """Whether the word is also required with a schema response format."""

    compactions: Literal["none", "anywhere", "first"] = "none"
    """Where the target reads its own compactions of the history: `first` in a message, and then the newest one only."""

    tool_changes: frozenset[str] = frozenset()
    """The kinds of blocks that make a declared tool available or unavailable from there on, in any API's form."""

    option_ranges: Mapping[str, tuple[float, float]] = {}
    """The smallest and the largest value of options that the target rejects outside."""
    body_ranges: tuple[BodyRange, ...] = ()
    """The same for numbers of its own bodies that no other API has."""

    has_error_flag: bool = False
    keeps_own_errors: bool = True
    """Whether same-API error results are unchanged where there is no flag: the error is in their own content."""
    empty_text: Literal["kept", "intact", "refused"] = "kept"
    """Whether a text block may be empty: `kept`: same-API; `intact`: same-API where its fragment is intact; `refused`:
    never. Cross-API empty text is dropped."""
    allows_blank_text: bool = True
    """Whether a text block may be only whitespace."""
    allows_blank_messages: bool = True
    """Whether a message may hold only whitespace."""
    empty_message_speakers: frozenset[str] = frozenset()
    """Speakers whose messages may be empty same-API. Cross-API empty messages are dropped."""
    media_in_user: frozenset[str] = frozenset()
    media_in_assistant: frozenset[str] = frozenset()
    media_in_results: frozenset[str] = frozenset()
    refused_media: frozenset[str] = frozenset()
    """Media that are not accepted anywhere, also same-API."""
    refused_files: frozenset[FilePlace] = frozenset()
    """Where media of this kind may not be given by a file id, also same-API."""
    media_needs_text: frozenset[str] = frozenset()
    """Media that need text in the same message."""
    unchanged_text_kind: Callable[[Text], str] = lambda _block: "text"
    """The kind of content that an unchanged same-API text is sent as, such as `text` or `citationsContent`."""
    file_id_kinds: frozenset[str] = frozenset()
    """Kinds of media that may be given by a file id of one of the APIs in `file_id_apis`."""
    file_id_apis: frozenset[str] = frozenset()
    errors_need_text: bool = False
    """Error results must have text, and hold nothing else."""
    allows_urls_in_results: bool = True
    """Whether media in results may be URLs."""
    keeps_own_result_media: bool = False
    """Whether same-API results keep all their media."""
    text_only_results: bool = False
    """Results hold only text; unknown parts are rejected too."""
    tools_required: Literal["never", "cross-api", "always"] = "never"
    """When a history with calls requires at least one declared tool: never, only cross-API, or always."""


IdPolicy: TypeAlias = Literal["auto", "canonical", "native"]
ReasoningPolicy: TypeAlias = Literal["native", "text", "none"]
HostedPolicy: TypeAlias = Literal["pair", "text", "drop"]
PendingPolicy: TypeAlias = Literal["complete", "keep"]
OrphanPolicy: TypeAlias = Literal["text", "drop"]


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """Choices of the caller; docs/library.md describes the values."""

    ids: IdPolicy = "auto"
    reasoning: ReasoningPolicy = "native"
    hosted: HostedPolicy = "pair"
    pending: PendingPolicy = "complete"
    orphans: OrphanPolicy = "text"
    body_model: Literal["exact", "alias"] = "exact"
    """Whether the model name in a body is the model that generated its reasoning, or an alias that any model may have
    answered."""


PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator"
"""Accepted by Gemini in place of the signature of a call that another model made (GEM-17)."""


class TEXTS:
    """All fixed texts that segue inserts into a conversation."""

    no_result = "interrupted: no result was recorded"
    """The reason of a synthetic result, which is stored with it."""
    interrupted = f"[{no_result}]"
    cancelled = "[cancelled before it finished]"
    denied = "[denied: it did not run]"
    failed = "[failed without a message]"
    error = "[error] {content}"
    compressed = REMOVED
    orphan = "[result of {tool}; its call is no longer part of this conversation]"
    filler = "[continued]"
    first_user_message = "[continued]"
    last_user_message = "Continue."
    unsupported = "[{kind} not supported here]"
    running = "[still running: no result yet]"
    summary = "[summary of the conversation so far] {content}"
    lost_history = "[the conversation so far was compacted by its provider, and its content is not available here]"
    undisclosed = "[run by the provider, output not disclosed]"
    media_moved = "[{kind} follows]"
    media_caption = "[{kind} attached]"
    media_label = "[{kind} from the result of {tool}]"
    media_from_reply = "[{kind} from the answer before]"
    system = "[system] {content}"
    reasoning = "[reasoning] {content}"
    hosted_call = "[{tool} was run by the provider: {arguments}]"
    approval_requested = "[approval asked for {tool}: {arguments}]"
    approval_given = "[answer to the request for approval]"
    hosted_result = "[result of {tool}, run by the provider] {content}"
    reasoning_placeholder = "."
    json = "Answer in JSON."
    json_schema = "Answer in JSON that fits this schema: {schema}"
