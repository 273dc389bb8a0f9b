"""What a target wants of a transcript, as data: one row for each API and generation of models.

The passes read these rows and nothing else of a provider. A new API is a new row, never a new branch.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from segue.canonical.texts import REMOVED

__all__ = ["TEXTS", "Demands", "Policy"]


class Demands(Struct, frozen=True):
    """The target's row. The defaults are those of an API that takes anything."""

    api: str
    """The wire or dialect: a block whose `native.api` is this one is at home."""
    provider: str
    """Who makes ids and reasoning there."""

    results: Literal["each", "joint", "alone"] = "each"
    """One message a result; all results of a turn in one message with the human's words after them; or all in one
    message with nothing else in it."""
    adjacent: bool = True
    """Results stand right behind their calls. Where not, they may stand anywhere at home."""
    in_call_order: bool = False
    """They stand there in the order of the calls, at home too."""
    by_position: bool = False
    """Results are paired with calls by their order; an id that fits no call does not matter."""
    loose_without_id: bool = False
    """Calls and results of a type that never had an id are not checked against each other: at home they stay."""
    unique_ids: Literal["never", "turn", "conversation"] = "turn"
    own_id: str = r".+"
    """The pattern of ids that the target takes back as they are."""
    own_name: str = r"[\s\S]+"
    """The pattern of tool names that go home as they are."""
    alternation: Literal["free", "merged", "strict"] = "free"
    """`merged`: neighbours of one role count as one message, so abroad they are made one; `strict`: also at home."""
    bridge: bool = False
    """An assistant must stand between a result and the human's next words."""
    calls_alone: bool = False
    """A message with calls holds no words; they stand in a message before it."""
    calls_one_by_one: bool = False
    """A message holds one call at most; the others follow, each behind the result of the one before."""
    first: Literal["any", "human"] = "any"
    first_at_home: Literal["any", "named", "human"] = "any"
    """At home anything may come first all the same: whatever the model, if one is named, or it may not."""
    first_calls: bool = True
    """Whether the very first message may hold calls, or be a lone reply, at home."""
    no_messages: bool = True
    """Whether at home there may be no message at all."""
    human_wanted: bool = False
    """A human must have spoken somewhere."""
    ending: Literal["free", "prefill", "marked", "human"] = "free"
    """What an assistant at the end means: a turn like any other, the start of the answer, that too if it is marked so
    (the mark stands nowhere else), or an error."""
    system_last: bool = True
    """Whether system text may be the end, at home."""
    prefill_while_reasoning: bool = True
    """Whether a prefill is lawful while reasoning is switched on."""
    blank_ending: bool = True
    """Whether a prefill may end in white space."""
    pauses: bool = True
    """Whether the end may be a tool that the provider runs itself."""
    own_hosted: str = r"[\s\S]*"
    """The pattern of tools run by the provider that go home as they are."""

    system: Literal["top", "inline"] = "inline"
    later_system: Literal["developer", "system", "text"] = "developer"
    later_system_at_home: bool = True
    """Whether system text that came so may stand behind other messages; else it is told as `later_system` says."""
    system_after_reply: bool = True
    """Whether system text may follow an assistant or a result, at home."""

    reasoning: Literal["none", "refused", "signed", "plain"] = "none"
    """What of its own reasoning the target takes back: nothing, nothing even at home, what it signed, or its plain
    text."""
    reasons: bool = True
    """Whether the model reasons at all."""
    reasoning_bound: Literal["provider", "model", "prefix"] = "provider"
    reasoning_whole: bool = True
    """All reasoning of a message goes back, or none of it; else each block is judged by itself."""
    own_signature: str = r"[\s\S]*"
    """The pattern of signatures that the target may have made."""
    reasoning_alone: bool = True
    """Whether a message may hold reasoning and nothing else."""
    reasoning_leads: bool = False
    """Reasoning stands right before what was made with it; without it, what the provider knows that by is void."""
    reasoning_on_calls: Literal["never", "asked", "default", "always"] = "never"
    """Every message with calls must carry reasoning (a placeholder where there is none): while it is asked for, unless
    it is switched off, or in any case."""
    reasoning_on_words: bool = False
    """Then messages without calls must carry it too."""
    placeholder_signature: str = ""
    """What the target takes for a signature of its own on the first call of a message; without it the placeholder is a
    text at the beginning."""
    reasoning_by_default: bool = False
    """Whether the model reasons unless it is told not to."""
    reasoning_switch: bool = True
    """Whether it can be told not to."""
    reasoning_refuses_tools: bool = False
    """Reasoning can't be asked for beside declared functions."""
    reasoning_opens_loop: bool = False
    """While reasoning is on, an open exchange must begin with it."""
    reasoning_adapts: bool = False
    """Reasoning that is asked for without a budget is left to the model, which demands no beginning."""
    reasoning_forbids_forced_choice: bool = False
    reasoning_at_end: bool = True
    """Whether a final assistant message may hold reasoning while reasoning is off."""

    schemas: bool = True
    """Whether an answer can be asked for by its schema, and not just as JSON."""
    json_word: Literal["free", "anywhere", "messages"] = "free"
    """Where the word «json» must stand if JSON is asked for: nowhere, in any text, or in one that is not at the top."""
    json_word_for_schemas: bool = False
    """Whether it must stand there for an answer by a schema, too."""

    error_flag: bool = False
    own_errors: bool = True
    """Whether without such a flag results of failed calls go home as they are: they say it in their own way."""
    empty_text: Literal["kept", "home", "refused"] = "kept"
    """Whether a text block may be empty: wherever it stood so at home, at home where its fragment is intact, or
    nowhere. Abroad an empty one is left out."""
    blank_text: bool = True
    """Whether a text block of a message may be white space and nothing else."""
    blank_messages: bool = True
    """Whether a message may hold nothing but white space."""
    empty_messages: frozenset[str] = frozenset()
    """Speakers whose messages may be without any content, at home. Abroad such a message is left out."""
    media_human: frozenset[str] = frozenset()
    media_ai: frozenset[str] = frozenset()
    media_results: frozenset[str] = frozenset()
    media_apart: frozenset[str] = frozenset()
    """Media that can't stand in one message with results, wherever they come from."""
    media_with_words: frozenset[str] = frozenset()
    """Media that can't be the whole of a message: some words must stand beside them."""
    file_ids: frozenset[str] = frozenset()
    """Kinds of media that may be given by a file id that one of the APIs in `file_ids_of` holds."""
    file_ids_of: frozenset[str] = frozenset()
    media_in_errors: bool = True
    urls_in_results: bool = True
    """Whether media in results may be given by URL."""
    media_at_home: bool = False
    """Whether results go home with whatever they hold."""
    text_results: bool = False
    """Results hold text and nothing else, not even what nobody knows."""
    tools_wanted: Literal["never", "abroad", "always"] = "never"
    """At least one tool must be declared where the history has calls."""


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """What the caller chooses; the default first."""

    ids: Literal["auto", "canonical", "native"] = "auto"
    reasoning: Literal["native", "text", "none"] = "native"
    hosted: Literal["pair", "text", "drop"] = "pair"
    pending: Literal["complete", "keep"] = "complete"
    orphans: Literal["text", "drop"] = "text"


class TEXTS:
    """Every word that segue puts into a conversation of its own accord."""

    interrupted = "[interrupted: no result was recorded]"
    cancelled = "[cancelled before it finished]"
    failed = "[failed without a message]"
    error = "[error] {content}"
    compressed = REMOVED
    orphan = "[result of {tool}; its call is no longer part of this conversation]"
    bridge = "[continued]"
    head = "[continued]"
    tail = "Continue."
    unsupported = "[{kind} not supported here]"
    undisclosed = "[run by the provider, output not disclosed]"
    media_moved = "[{kind} follows]"
    media_alone = "[{kind} attached]"
    media_label = "[{kind} from the result of {tool}]"
    media_said = "[{kind} from the answer before]"
    system = "[system] {content}"
    reasoning = "[reasoning] {content}"
    hosted_call = "[{tool} was run by the provider: {arguments}]"
    approval_asked = "[approval asked for {tool}: {arguments}]"
    approval_given = "[answer to the request for approval]"
    hosted_result = "[result of {tool}, run by the provider] {content}"
    no_reasoning = "."
    json = "Answer in JSON."
    json_schema = "Answer in JSON that fits this schema: {schema}"
