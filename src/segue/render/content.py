"""The passes about what blocks hold: errors where there is no flag, media where they may not stand, empty texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

import msgspec

from segue.canonical.blocks import Block, Media, Message, Opaque, Silence, Text, ToolResponse, edited
from segue.canonical.jsontext import write_text
from segue.render.demands import TEXTS
from segue.render.draft import Draft, same_objects
from segue.render.report import Kind, Report

__all__ = ["captions", "empties", "error_text", "errors", "heard", "media", "silent"]

_RESULTS: frozenset[type] = frozenset({ToolResponse})
_SHOWN = frozenset({Media, Opaque, ToolResponse})
_SILENT: dict[Silence, tuple[Kind, str]] = {
    "repeated": ("dedupe", "it was there before under the same id: left out"),
    "missing": ("dropped", "it stands for history that this body does not hold: that history is missing"),
    "listing": ("dropped", "a list of tools is no part of the conversation: left out"),
    "declaring": ("moved", "its tools are declared with the others"),
    "instruction": ("dropped", "an instruction to the API itself: left out"),
}


def silent(draft: Draft) -> Draft:
    """What is no part of the conversation goes back to its API whole, or is left out. Nobody says it."""

    def kept(_message: Message, block: Block) -> list[Block]:
        return [block] if _is_whole(draft, block) else heard((block,), draft.report)

    if not any(isinstance(block, Opaque) and block.silent for message in draft.messages for block in message.blocks):
        return draft
    made = draft.map_blocks(kept)
    pairs = zip(made.messages, draft.messages, strict=True)
    return made.with_messages(message for message, before in pairs if message.blocks or not before.blocks)


def heard(blocks: Iterable[Block], report: Report) -> list[Block]:
    """The blocks less those that nobody is to say; each of these is reported."""
    said: list[Block] = []
    for block in blocks:
        if isinstance(block, Opaque) and block.silent is not None:
            kind, why = _SILENT[block.silent]
            report.add(kind, f"{block.kind}: {why}", subject=block.text or block.kind)
        else:
            said.append(block)
    return said


def _is_whole(draft: Draft, block: Block) -> bool:
    return draft.at_home(block) and block.native is not None and block.native.intact


def errors(draft: Draft) -> Draft:
    """Where the API has no flag for a failed call, its text says so. Made-up results say it already.

    What failed or was ended without a word is said in one everywhere: a flag alone is refused, or tells nothing.
    """
    draft = _with_words(draft)
    if draft.demands.error_flag or not any(
        isinstance(block, ToolResponse) and block.error for message in draft.messages for block in message.blocks
    ):
        return draft

    def told(_message: Message, block: Block) -> list[Block]:
        if not isinstance(block, ToolResponse) or not block.error:
            return [block]
        if draft.demands.own_errors and block.native is not None and block.native.intact and draft.at_home(block):
            return [block]
        if block.synthetic is not None:
            return [msgspec.structs.replace(block, error=False)]
        first, *rest = _as_text(block) or [Text("")]
        label = first.text if isinstance(first, Text) else ""
        others = rest if isinstance(first, Text) else [first, *rest]
        said = Text(error_text(label))
        return [edited(block, content=(said, *others), structured=msgspec.UNSET, error=False)]

    return draft.map_blocks(told)


def _with_words(draft: Draft) -> Draft:
    def is_mute(block: Block) -> TypeGuard[ToolResponse]:
        if not isinstance(block, ToolResponse) or not (block.error or block.outcome is not None):
            return False
        silent = all(isinstance(part, Text) and not part.text for part in block.content or ())
        return silent and block.structured is msgspec.UNSET

    if not any(is_mute(block) for message in draft.messages for block in message.blocks):
        return draft

    def told(_message: Message, block: Block) -> list[Block]:
        stays = draft.goes_back(block) and _without_empty_parts(draft, block) is block
        if not is_mute(block) or stays:
            return [block]
        ends = {"cancelled": TEXTS.cancelled, "interrupted": TEXTS.interrupted}
        said = ends[block.outcome] if block.outcome is not None else TEXTS.failed
        draft.report.add("inserted", f"{said}, for it ended without a word", call_id=block.call_id, subject=block.name)
        return [edited(block, content=(Text(said),))]

    return draft.map_blocks(told)


def error_text(text: str) -> str:
    """What a failed call gave back, said as a failure."""
    told = TEXTS.error.format(content=text)
    return told if text else told.rstrip()


def _as_text(response: ToolResponse) -> list[Block]:
    if response.structured is not msgspec.UNSET:
        return [Text(write_text(response.structured)), *(response.content or ())]
    return list(response.content or ())


def media(draft: Draft) -> Draft:
    """Pictures and files stand where the target takes them; what it can't have at all is told as text."""
    messages: list[Message] = []
    waiting: list[Block] = []
    for message in draft.messages:
        if waiting and message.speaker != "tool":
            messages.append(Message("human", tuple(waiting)))
            waiting = []
        if not waiting and _shows_nothing(message):
            messages.append(message)
            continue
        results: list[Block] = []
        words: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ToolResponse):
                block, moved = _in_result(draft, block)
                results.append(block)
                waiting += moved
            elif _can_be_moved(block, draft, message):
                draft.report.add("moved", f"{block.kind} of an answer: put after it", subject=block.kind)
                words.append(Text(TEXTS.media_moved.format(kind=block.kind)))
                waiting += [Text(TEXTS.media_said.format(kind=block.kind)), block]
            else:
                words.append(_in_message(draft, message, block))
        # The human's words come after what belongs to the results before them.
        if results and words and message.speaker == "tool":
            words, waiting = [*waiting, *words], []
        blocks = (*results, *words) if message.speaker == "tool" else _in_place(message.blocks, results, words)
        messages.append(message if same_objects(blocks, message.blocks) else message.holding(blocks))
    if waiting:
        messages.append(Message("human", tuple(waiting)))
    return draft.with_messages(messages)


def _shows_nothing(message: Message) -> bool:
    """Whether it is plain that there is nothing but words, calls, or results in words."""
    kinds = frozenset(map(type, message.blocks))
    if kinds != _RESULTS:
        return kinds.isdisjoint(_SHOWN)
    results = [block for block in message.blocks if isinstance(block, ToolResponse)]
    return all(_SHOWN.isdisjoint(map(type, result.content or ())) for result in results)


def _in_place(original: tuple[Block, ...], results: list[Block], words: list[Block]) -> tuple[Block, ...]:
    """Results and words in the order in which they stood."""
    taken = {True: iter(results), False: iter(words)}
    return tuple(next(taken[isinstance(block, ToolResponse)]) for block in original)


def _can_be_moved(block: Block, draft: Draft, message: Message) -> TypeGuard[Media]:
    """Whether a model showed this, and the target takes it from the user only."""
    demands = draft.demands
    if message.speaker != "ai" or not isinstance(block, Media) or draft.at_home(block):
        return False
    return _sayable(draft, block) and block.kind in demands.media_human and block.kind not in demands.media_ai


def _in_message(draft: Draft, message: Message, block: Block) -> Block:
    if isinstance(block, Media | Opaque) and not _stays(draft, block):
        allowed = draft.demands.media_ai if message.speaker == "ai" else draft.demands.media_human
        if not (isinstance(block, Media) and _sayable(draft, block) and block.kind in allowed):
            return _unsupported(draft, block)
    return block


def _stays(draft: Draft, block: Media | Opaque) -> bool:
    """Whether this may be left to its own API. An answer to a request for approval goes back whole or not at all."""
    approves = isinstance(block, Opaque) and block.origin.is_approval
    return draft.goes_back(block) if approves else draft.at_home(block)


def _in_result(draft: Draft, response: ToolResponse) -> tuple[ToolResponse, list[Block]]:
    """The response as the target can have it, and what has to stand after the results instead."""
    if response.content and response.structured is not msgspec.UNSET and not draft.at_home(response):
        response = edited(response, content=tuple(_as_text(response)), structured=msgspec.UNSET)
    if not any(isinstance(block, Media | Opaque) for block in response.content or ()):
        return response, []
    allowed = draft.demands.media_results
    if response.error and not draft.demands.media_in_errors and not draft.at_home(response):
        allowed = frozenset[str]()
    kept: list[Block] = []
    moved: list[Block] = []
    for block in response.content or ():
        home = draft.at_home(block)
        unknown = home and isinstance(block, Opaque) and not draft.demands.text_results
        if not isinstance(block, Media | Opaque) or unknown:
            kept.append(block)
        elif not isinstance(block, Media) or not (home or _sayable(draft, block)):
            kept.append(_unsupported(draft, block))
        elif (home and (allowed or draft.demands.media_at_home)) or (
            block.kind in allowed and (block.data or draft.demands.urls_in_results or block.url is None)
        ):
            kept.append(block)
        elif block.kind in draft.demands.media_human:
            draft.report.add("moved", f"{block.kind} of a result: put after the results", call_id=response.call_id)
            kept.append(Text(TEXTS.media_moved.format(kind=block.kind)))
            moved += [Text(TEXTS.media_label.format(kind=block.kind, tool=draft.tool_name(response))), block]
        else:
            kept.append(_unsupported(draft, block))
    if all(a is b for a, b in zip(kept, response.content or (), strict=True)):
        return response, []
    whole = msgspec.structs.replace(response, content=tuple(kept))
    return edited(whole, content=tuple(_as_text(whole)), structured=msgspec.UNSET), moved


def _sayable(draft: Draft, block: Media) -> bool:
    """Whether the target could be given this, if only because it holds the file too."""
    if block.data or (block.url and not block.url.startswith("data:")):
        return True
    if block.url:
        # RFC 2397: without a type it is plain text, which no picture is.
        head, _, payload = block.url.removeprefix("data:").partition(",")
        return bool(payload and (head or block.kind == "document"))
    held = block.native is not None and block.native.api in draft.demands.file_ids_of
    return held and block.file_id is not None and block.kind in draft.demands.file_ids


def _unsupported(draft: Draft, block: Media | Opaque) -> Text:
    approved = isinstance(block, Opaque) and block.origin.is_approval
    label = TEXTS.approval_given if approved else TEXTS.unsupported.format(kind=block.kind)
    said = (block.name, _address(block), block.file_id) if isinstance(block, Media) else (block.text,)
    known = next((word for word in said if word), None) if isinstance(block, Media) else None
    which = f"{block.kind} {known!r}" if known else block.kind
    draft.report.add("text", f"{which} can't be said to {draft.demands.api}: told as text", subject=block.kind)
    return Text(" ".join([label, *(word for word in said if word)]))


def _address(block: Media) -> str | None:
    """Where it is to be found; a `data:` URL is no place."""
    return None if block.url is not None and block.url.startswith("data:") else block.url


def empties(draft: Draft) -> Draft:
    """No text and no message that the target refuses because nothing is in it."""
    messages: list[Message] = []
    for message in draft.messages:
        if draft.demands.empty_text != "kept" or not (draft.home or draft.at_home(message)):
            kept = [_without_empty_parts(draft, b) for b in message.blocks if not _is_refused(draft, b)]
            message = message if same_objects(kept, message.blocks) else message.holding(tuple(kept))
        if _says_nothing(draft, message):
            draft.report.add("dropped", f"an empty message of speaker {message.speaker}", subject=message.speaker)
        else:
            messages.append(message)
    return draft.with_messages(messages)


def captions(draft: Draft) -> Draft:
    """Words beside media that can't be the whole of a message."""
    wanting = draft.demands.media_with_words

    def worded(message: Message) -> Message:
        kinds = [block.kind for block in message.blocks if isinstance(block, Media) and block.kind in wanting]
        if not kinds or any(isinstance(block, Text) for block in message.blocks):
            return message
        draft.report.add("inserted", f"words beside a {kinds[0]} that stands alone", subject=kinds[0])
        return message.holding((*message.blocks, Text(TEXTS.media_alone.format(kind=kinds[0]))))

    return draft.with_messages(map(worded, draft.messages)) if wanting else draft


def _is_refused(draft: Draft, block: Block) -> bool:
    if not isinstance(block, Text) or _stays_empty(draft, block):
        return False
    return not (block.text if draft.demands.blank_text else block.text.strip())


def _stays_empty(draft: Draft, block: Block) -> bool:
    intact = block.native is not None and block.native.intact and draft.at_home(block)
    return intact and draft.demands.empty_text != "refused"


def _without_empty_parts(draft: Draft, block: Block) -> Block:
    """A result may be empty, but not have an empty part."""
    if not isinstance(block, ToolResponse) or not block.content or _stays_empty(draft, block):
        return block
    if len(block.content) == 1 and block.content[0].native is None:
        return block
    kept = tuple(part for part in block.content if not (isinstance(part, Text) and not part.text))
    return block if len(kept) == len(block.content) else edited(block, content=kept)


def _says_nothing(draft: Draft, message: Message) -> bool:
    if not message.blocks:
        intact = message.native is not None and message.native.intact and draft.at_home(message)
        return not (intact and message.speaker in draft.demands.empty_messages)
    if not isinstance(message.blocks[0], Text):
        return False
    if not all(isinstance(block, Text) and not block.text.strip() for block in message.blocks):
        return False
    if all(_stays_empty(draft, block) for block in message.blocks):
        return False
    if not draft.demands.blank_messages:
        return True
    # MIS-11: empty texts are no content either.
    empty = all(isinstance(block, Text) and not block.text for block in message.blocks)
    return empty and message.speaker not in draft.demands.empty_messages
