"""The passes for the content of blocks: omitted blocks, error results, media, empty texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeGuard

import msgspec

from segue.canonical.blocks import (
    Block,
    Media,
    Message,
    OmitReason,
    Opaque,
    Speaker,
    Text,
    ToolCall,
    ToolResponse,
    edit_block,
)
from segue.canonical.json import are_identical, encode_json_text
from segue.render.constraints import TEXTS
from segue.render.draft import Draft
from segue.render.report import FindingKind, Level, Report

_RESULT_TYPES: frozenset[type] = frozenset({ToolResponse})
_MEDIA_TYPES = frozenset({Media, Opaque, ToolResponse})
_ROLE_NAMES: dict[Speaker, str] = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
_OMIT_FINDINGS: dict[OmitReason, tuple[FindingKind, Level, str]] = {
    "repeated": ("dedupe", "note", "{kind} dropped: repeats an item with the same id"),
    "missing": ("dropped", "lost", "{kind} dropped: refers to history that is not in this body"),
    "compaction": ("dropped", "note", "{kind} dropped: the caller has the messages that it stands for"),
    "listing": ("dropped", "note", "{kind} dropped: a list of tools is not part of the conversation"),
    "declaring": ("moved", "changed", "{kind}: tools declared in mid-conversation moved to the tool declarations"),
    "instruction": ("dropped", "lost", "{kind} dropped: an instruction to the API, not part of the conversation"),
    "notice": ("dropped", "note", "{kind} dropped: a notice of the provider, not part of the conversation"),
}


def drop_omitted(draft: Draft) -> Draft:
    """Drop incomplete calls and items that are no part of the conversation; same-API, intact items are kept."""

    def keep_or_drop(_message: Message, block: Block) -> list[Block]:
        is_kept = isinstance(block, Opaque) and draft.is_intact(block)
        return [block] if is_kept else drop_omitted_blocks((block,), draft.report)

    if not any(_is_omitted(block) for message in draft.messages for block in message.blocks):
        return draft
    changed = draft.map_blocks(keep_or_drop)
    pairs = zip(changed.messages, draft.messages, strict=True)
    return changed.with_messages(message for message, before in pairs if message.blocks or not before.blocks)


def _is_omitted(block: Block) -> bool:
    return (isinstance(block, Opaque) and block.omit_reason is not None) or (
        isinstance(block, ToolCall) and block.broken
    )


def drop_omitted_blocks(blocks: Iterable[Block], report: Report) -> list[Block]:
    """Return the blocks without those that are omitted cross-API; each of these is reported."""
    kept: list[Block] = []
    for block in blocks:
        if isinstance(block, Opaque) and block.omit_reason is not None:
            kind, level, message = _OMIT_FINDINGS[block.omit_reason]
            report.add(kind, message.format(kind=block.kind), subject=block.text or block.kind, level=level)
        elif isinstance(block, ToolCall) and block.broken:
            why = f"incomplete call of {block.name} dropped: it was cut off"
            report.add("dropped", why, call_id=block.id, subject=block.name)
        else:
            kept.append(block)
    return kept


def label_errors(draft: Draft) -> Draft:
    """Mark error results in their text where the API has no error flag; the text of synthetic results already does.

    Failed, cancelled and interrupted results without text get a fixed text: some targets reject a flag without text.
    Same-API content that is valid only in results without the flag stays, and the flag becomes text.
    """
    draft = _add_failure_texts(draft)
    has_flag = draft.constraints.has_error_flag

    def is_marked(block: Block) -> TypeGuard[ToolResponse]:
        if not isinstance(block, ToolResponse) or not block.error:
            return False
        return (
            _rejects_flag(draft, block)
            if has_flag
            else not (draft.constraints.keeps_own_errors and draft.is_intact(block))
        )

    if not any(is_marked(block) for message in draft.messages for block in message.blocks):
        return draft

    def mark(_message: Message, block: Block) -> list[Block]:
        if not is_marked(block):
            return [block]
        if has_flag:
            why = "error flag of a tool result rendered as text: an error result may hold only text"
            draft.report.add("text", why, call_id=block.call_id, subject=block.name)
        if block.synthetic is not None:
            return [msgspec.structs.replace(block, error=False)]
        first, *rest = _structured_to_text(block) or [Text("")]
        is_plain = isinstance(first, Text) and _content_kind(draft, first) == "text"
        label = first.text if isinstance(first, Text) and is_plain else ""
        others = rest if is_plain else [first, *rest]
        marked = Text(format_error(label))
        return [edit_block(block, content=(marked, *others), structured=msgspec.UNSET, error=False)]

    return draft.map_blocks(mark)


def _rejects_flag(draft: Draft, response: ToolResponse) -> bool:
    """Return whether the result holds same-API content that is neither text nor media, so it can't be moved."""
    if not draft.constraints.errors_need_text or response.hosted:
        return False
    others = [block for block in response.content or () if not isinstance(block, Media) and draft.is_native(block)]
    return any(_content_kind(draft, block) != "text" for block in others)


def _add_failure_texts(draft: Draft) -> Draft:
    def is_empty_failure(block: Block) -> TypeGuard[ToolResponse]:
        if not isinstance(block, ToolResponse) or not (block.error or block.outcome is not None):
            return False
        empty = all(isinstance(part, Text) and not part.text for part in block.content or ())
        return empty and block.structured is msgspec.UNSET

    if not any(is_empty_failure(block) for message in draft.messages for block in message.blocks):
        return draft

    def add_text(_message: Message, block: Block) -> list[Block]:
        if not is_empty_failure(block):
            return [block]
        needs_text = draft.constraints.errors_need_text and not block.hosted
        if not needs_text and draft.is_intact(block) and _drop_empty_parts(draft, block) is block:
            return [block]
        outcomes = {"denied": TEXTS.denied, "cancelled": TEXTS.cancelled, "interrupted": TEXTS.interrupted}
        text = outcomes[block.outcome] if block.outcome is not None else TEXTS.failed
        why = f"added the text {text} to a failed tool result without content"
        draft.report.add("inserted", why, call_id=block.call_id, subject=block.name)
        return [edit_block(block, content=(Text(text),))]

    return draft.map_blocks(add_text)


def format_error(text: str) -> str:
    """Return the text of an error result with the error label."""
    labelled = TEXTS.error.format(content=text)
    return labelled if text else labelled.rstrip()


def _structured_to_text(response: ToolResponse) -> list[Block]:
    if response.structured is not msgspec.UNSET:
        return [Text(encode_json_text(response.structured)), *(response.content or ())]
    return list(response.content or ())


def place_media(draft: Draft) -> Draft:
    """Move media to where the target accepts them; render what it does not support as text."""
    messages: list[Message] = []
    waiting: list[Block] = []
    for message in draft.messages:
        if waiting and message.speaker != "tool":
            messages.append(Message("human", tuple(waiting)))
            waiting = []
        if not waiting and _has_no_media(message):
            messages.append(message)
            continue
        results: list[Block] = []
        others: list[Block] = []
        moved_blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ToolResponse):
                block, moved = _convert_result_media(draft, block)
                results.append(block)
                waiting += moved
            elif _can_be_moved(block, draft, message):
                draft.report.add("moved", f"{block.kind} in a reply moved after the reply", subject=block.kind)
                moved_blocks.append(block)
                waiting += [Text(TEXTS.media_from_reply.format(kind=block.kind)), block]
            else:
                converted = _convert_message_media(draft, message, block)
                # Models imitate what they find in their own messages, so a label stands in a user message.
                is_label = message.speaker == "ai" and isinstance(converted, Text) and converted is not block
                (waiting if is_label else others).append(converted)
                moved_blocks += [block] if is_label else []
        # Media moved out of results come before the user's content.
        if results and others and message.speaker == "tool":
            others, waiting = [*waiting, *others], []
        kept = tuple(block for block in message.blocks if not any(block is moved for moved in moved_blocks))
        blocks = (*results, *others) if message.speaker == "tool" else _restore_order(kept, results, others)
        messages.append(message if are_identical(blocks, message.blocks) else message.with_blocks(blocks))
    if waiting:
        messages.append(Message("human", tuple(waiting)))
    return draft.with_messages(messages)


def _has_no_media(message: Message) -> bool:
    """Return whether the message clearly has no media or unknown content, also in its results."""
    kinds = frozenset(map(type, message.blocks))
    if kinds != _RESULT_TYPES:
        return kinds.isdisjoint(_MEDIA_TYPES)
    results = [block for block in message.blocks if isinstance(block, ToolResponse)]
    return all(_MEDIA_TYPES.isdisjoint(map(type, result.content or ())) for result in results)


def _restore_order(original: tuple[Block, ...], results: list[Block], others: list[Block]) -> tuple[Block, ...]:
    """Return results and other blocks in their original order."""
    remaining = {True: iter(results), False: iter(others)}
    return tuple(next(remaining[isinstance(block, ToolResponse)]) for block in original)


def _can_be_moved(block: Block, draft: Draft, message: Message) -> TypeGuard[Media]:
    """Return whether this is media of a reply that the target accepts in user messages only."""
    constraints = draft.constraints
    if message.speaker != "ai" or not isinstance(block, Media) or draft.is_native(block):
        return False
    return (
        _is_renderable(draft, block)
        and block.kind in constraints.media_in_user
        and block.kind not in constraints.media_in_assistant
    )


def _convert_message_media(draft: Draft, message: Message, block: Block) -> Block:
    if isinstance(block, Media | Opaque) and not _can_stay(draft, block):
        allowed = draft.constraints.media_in_assistant if message.speaker == "ai" else draft.constraints.media_in_user
        if not (isinstance(block, Media) and _is_renderable(draft, block) and block.kind in allowed):
            return _unsupported_to_text(draft, block)
    return block


def _can_stay(draft: Draft, block: Media | Opaque) -> bool:
    """Return whether this is same-API and may be kept. An answer to an approval request must also be unchanged."""
    if _is_refused(draft, block) or _is_refused_file(draft, block, "message"):
        return False
    if block.kind in draft.constraints.tool_changes and block.extra:
        return True
    is_approval = isinstance(block, Opaque) and block.origin.is_approval
    return draft.is_intact(block) if is_approval else draft.is_native(block)


def _is_refused(draft: Draft, block: Block) -> bool:
    """Return whether the model rejects the media; a body without a model name may be for another one."""
    return isinstance(block, Media) and block.kind in draft.constraints.refused_media and draft.model is not None


def _is_refused_file(draft: Draft, block: Block, place: Literal["message", "result"]) -> bool:
    """Return whether this is a file id that the model rejects in this place."""
    if not isinstance(block, Media) or block.file_id is None or block.data:
        return False
    return (place, block.kind) in draft.constraints.refused_files


def _convert_result_media(draft: Draft, response: ToolResponse) -> tuple[ToolResponse, list[Block]]:
    """Return the result with media that the target accepts, and the media that must follow the results instead."""
    if response.content and response.structured is not msgspec.UNSET and not draft.is_native(response):
        response = edit_block(response, content=tuple(_structured_to_text(response)), structured=msgspec.UNSET)
    if not any(isinstance(block, Media | Opaque) for block in response.content or ()):
        return response, []
    allowed = draft.constraints.media_in_results
    if response.error and draft.constraints.errors_need_text and not response.hosted:
        allowed = frozenset[str]()
    kept: list[Block] = []
    moved: list[Block] = []
    for block in response.content or ():
        is_own = draft.is_native(block) and not _is_refused(draft, block)
        is_accepted = not _is_refused_file(draft, block, "result")
        is_native = is_own and is_accepted
        unknown = is_native and isinstance(block, Opaque) and not draft.constraints.text_only_results
        if not isinstance(block, Media | Opaque) or unknown:
            kept.append(block)
        elif not isinstance(block, Media) or not (is_own or _is_renderable(draft, block)):
            kept.append(_unsupported_to_text(draft, block))
        elif (is_native and (allowed or draft.constraints.keeps_own_result_media)) or (
            block.kind in allowed
            and is_accepted
            and (block.data or draft.constraints.allows_urls_in_results or block.url is None)
        ):
            kept.append(block)
        elif block.kind in draft.constraints.media_in_user and not _is_refused_file(draft, block, "message"):
            why = f"{block.kind} in a tool result moved after the results: not accepted inside them"
            draft.report.add("moved", why, call_id=response.call_id)
            kept.append(Text(TEXTS.media_moved.format(kind=block.kind)))
            moved += [Text(TEXTS.media_label.format(kind=block.kind, tool=draft.tool_name(response))), block]
        else:
            kept.append(_unsupported_to_text(draft, block))
    if are_identical(kept, response.content or ()):
        return response, []
    whole = msgspec.structs.replace(response, content=tuple(kept))
    return edit_block(whole, content=tuple(_structured_to_text(whole)), structured=msgspec.UNSET), moved


def _is_renderable(draft: Draft, block: Media) -> bool:
    """Return whether the media can be rendered: by its data, its URL, or a file id that the target can resolve."""
    if block.data or (block.url and not block.url.startswith("data:")):
        return True
    if block.url:
        # RFC 2397: without a type it is plain text, which only a document can be.
        head, _, payload = block.url.removeprefix("data:").partition(",")
        return bool(payload and (head or block.kind == "document"))
    has_file = block.native is not None and block.native.api in draft.constraints.file_id_apis
    return has_file and block.file_id is not None and block.kind in draft.constraints.file_id_kinds


def _unsupported_to_text(draft: Draft, block: Media | Opaque) -> Text:
    is_approval = isinstance(block, Opaque) and block.origin.is_approval
    label = TEXTS.approval_given if is_approval else TEXTS.unsupported.format(kind=block.kind)
    details = (block.name, _media_url(block), block.file_id) if isinstance(block, Media) else (block.text,)
    detail_shown = next((detail for detail in details if detail), None) if isinstance(block, Media) else None
    description = f"{block.kind} {detail_shown!r}" if detail_shown else block.kind
    # A link or a text can be sent, the bytes of a file and unknown content cannot.
    is_sent = bool(_media_url(block) if isinstance(block, Media) else block.text)
    draft.report.add(
        "text",
        f"{description} rendered as text: not supported by {draft.constraints.api}",
        subject=block.kind,
        level="changed" if is_sent or is_approval else "lost",
    )
    return Text(" ".join([label, *(detail for detail in details if detail)]))


def _media_url(block: Media) -> str | None:
    """Return the URL of the media; None for a `data:` URL."""
    return None if block.url is not None and block.url.startswith("data:") else block.url


def drop_empty(draft: Draft) -> Draft:
    """Drop texts and messages that the target rejects because they are empty."""
    messages: list[Message] = []
    for message in draft.messages:
        if draft.constraints.empty_text != "kept" or not (draft.is_same_api or draft.is_native(message)):
            kept = [_drop_empty_parts(draft, b) for b in message.blocks if not _is_rejected_text(draft, b)]
            message = message if are_identical(kept, message.blocks) else message.with_blocks(tuple(kept))
        if _is_empty_message(draft, message):
            draft.report.add(
                "dropped",
                f"empty {_ROLE_NAMES[message.speaker]} message dropped",
                subject=message.speaker,
                level="note",
            )
        else:
            messages.append(message)
    return draft.with_messages(messages)


def insert_captions(draft: Draft) -> Draft:
    """Add text to messages with media that the target accepts only together with text."""
    kinds_needing_text = draft.constraints.media_needs_text

    def add_caption(message: Message) -> Message:
        all_kinds = [_content_kind(draft, block) for block in message.blocks]
        kinds = [kind for kind in all_kinds if kind in kinds_needing_text]
        # BED-07: beside results a rejection is only reported, so a same-API message stays.
        beside_results = draft.is_same_api and ToolResponse in map(type, message.blocks)
        if not kinds or "text" in all_kinds or beside_results:
            return message
        why = f"added text to a message with only a {kinds[0]}: the target requires text"
        draft.report.add("inserted", why, subject=kinds[0])
        return message.with_blocks((*message.blocks, Text(TEXTS.media_caption.format(kind=kinds[0]))))

    return draft.with_messages(map(add_caption, draft.messages)) if kinds_needing_text else draft


def _content_kind(draft: Draft, block: Block) -> str | None:
    """Return the kind of content that a block is sent as; None for calls, results and other blocks."""
    match block:
        case Media():
            return block.kind
        case Text():
            return draft.constraints.unchanged_text_kind(block) if draft.is_intact(block) else "text"
        case _:
            return None


def _is_rejected_text(draft: Draft, block: Block) -> bool:
    if not isinstance(block, Text) or _can_stay_empty(draft, block):
        return False
    return not (block.text if draft.constraints.allows_blank_text else block.text.strip())


def _can_stay_empty(draft: Draft, block: Block) -> bool:
    intact = block.native is not None and block.native.intact and draft.is_native(block)
    return intact and draft.constraints.empty_text != "refused"


def _drop_empty_parts(draft: Draft, block: Block) -> Block:
    """Return a result without empty text parts: a result may be empty, but not have an empty part."""
    if not isinstance(block, ToolResponse) or not block.content or _can_stay_empty(draft, block):
        return block
    if len(block.content) == 1 and block.content[0].native is None:
        return block
    kept = tuple(part for part in block.content if not (isinstance(part, Text) and not part.text))
    return block if len(kept) == len(block.content) else edit_block(block, content=kept)


def _is_empty_message(draft: Draft, message: Message) -> bool:
    if not message.blocks:
        intact = message.native is not None and message.native.intact and draft.is_native(message)
        return not (intact and message.speaker in draft.constraints.empty_message_speakers)
    if not isinstance(message.blocks[0], Text):
        return False
    if not all(isinstance(block, Text) and not block.text.strip() for block in message.blocks):
        return False
    if all(_can_stay_empty(draft, block) for block in message.blocks):
        return False
    if not draft.constraints.allows_blank_messages:
        return True
    # MIS-11: empty texts do not count as content.
    empty = all(isinstance(block, Text) and not block.text for block in message.blocks)
    return empty and message.speaker not in draft.constraints.empty_message_speakers
