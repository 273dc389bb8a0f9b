"""Parts ⇄ canonical blocks.

A part of the model's is one block, and a signature on it one more: a `Thinking` without text right before the block
that it signs (GEM-21). So reasoning that goes takes its signature along, and a signature that stays finds its part
again. A signature that is a part of its own (with an empty text) has that part as its fragment.

At home a part whose fragment is intact goes out as that very object; only signature, id and name are laid over it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, assert_never, cast

from msgspec import UNSET

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Native,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    text_of,
)
from segue.canonical.jsontext import parse_argument_text, write_text
from segue.errors import InputError
from segue.render.demands import TEXTS
from segue.wire.gemini.fields import (
    JsonObject,
    both,
    laid,
    look,
    needed_text,
    object_at,
    object_of,
    spelled,
    text_at,
)
from segue.wire.gemini.hosted import HOSTED_READERS, origin_of
from segue.wire.gemini.keys import FIELDS, is_newer
from segue.wire.gemini.media import API, BASE64, media_part, parse_file, parse_inline, unsupported
from segue.wire.gemini.results import fenced, parse_content, render_content
from segue.wire.gemini.spelling import Spelling
from segue.wire.media import report_lost_name
from segue.wire.tools import render_arguments_object

__all__ = [
    "API",
    "ITEM_KEYS",
    "members_of",
    "own_fragment",
    "parse_parts",
    "render_parts",
    "signs_the_next",
]


# ------------------------------------------------------------------------------------------------------------------ in


def parse_parts(parts: list[Any], model: str | None, *, own: bool = True) -> tuple[tuple[Block, ...], bool]:
    """The blocks of a content, and whether the API takes its parts as they are. `own`: the model said it."""
    blocks: list[Block] = []
    intact = bool(parts)
    for index, item in enumerate(parts):
        try:
            made = _parse_part(object_of(item), model, own)
        except InputError as error:
            raise error.under(f"parts[{index}]") from None
        intact = intact and all(block.native is None or block.native.intact for block in made)
        blocks += made
    return tuple(blocks), intact


def _parse_part(part: JsonObject, model: str | None, own: bool) -> list[Block]:
    origin = Origin(API, model, identity="absent")
    signature = needed_text(part, "thoughtSignature") or None
    signature = signature if own else None
    members = members_of(part)
    if own and members and look(part, "thought") is True and not members[0].startswith("function"):
        return [_parse_thought(part, signature, origin)]
    text = needed_text(part, "text")
    if not members or (members == ["text"] and not text):
        return _parse_without_data(part, signature, origin)
    signed: list[Block] = [Thinking(signature=signature, origin=origin)] if signature else []
    if len(members) == 1:
        return [*signed, _READERS[members[0]](part, model)]
    # GEM-10: one member a part
    alone = [{spelled(part, name): look(part, name)} for name in members]
    blocks = [_READERS[name](fragment, model) for name, fragment in zip(members, alone, strict=True)]
    return [*signed, *(block for block in blocks if not (isinstance(block, Text) and not block.text))]


def members_of(part: JsonObject) -> list[str]:
    """The kinds of data that a part has."""
    return [name for name in _READERS if look(part, name) is not None]


def _parse_thought(part: JsonObject, signature: str | None, origin: Origin) -> Block:
    text = needed_text(part, "text") or ""
    return Thinking(text, signature, origin=origin, native=Native(API, part))


def _parse_without_data(part: JsonObject, signature: str | None, origin: Origin) -> list[Block]:
    """An empty text, nothing at all, or a kind of part that segue does not know."""
    unknown = [key for key, value in part.items() if key not in FIELDS["part"] and value is not None]
    if look(part, "text") is None and unknown:
        signed: list[Block] = [Thinking(signature=signature, origin=origin)] if signature else []
        return [*signed, Opaque(unknown[0], native=Native(API, part, intact=is_newer(part)))]
    # GEM-10, GEM-21: without data a part is refused; a signature may stand alone, with an empty text.
    native = Native(API, part, look(part, "text") is not None)
    if signature is None:
        return [Text("", native=native)]
    return [Thinking(signature=signature, origin=origin, native=native)]


def _parse_text(part: JsonObject, _model: str | None) -> Block:
    return Text(text_at(part, "text") or "", native=Native(API, part))


def _parse_arguments(given: Any) -> tuple[Any, str | None, bool]:
    """Value, exact text where that is not JSON, and whether this is the object that the API wants (GEM-14)."""
    if isinstance(given, str):
        return *parse_argument_text(given), False
    return {} if given is None else given, None, given is None or isinstance(given, dict)


def _parse_call(part: JsonObject, model: str | None) -> Block:
    inner = object_of(look(part, "functionCall"), spelled(part, "functionCall"))
    arguments, text, intact = _parse_arguments(look(inner, "args"))
    return ToolCall(
        needed_text(inner, "name") or "",
        arguments,
        arguments_text=text,
        origin=origin_of(inner, model),
        native=Native(API, part, intact),
    )


def _parse_response(part: JsonObject, model: str | None) -> Block:
    inner = object_of(look(part, "functionResponse"), spelled(part, "functionResponse"))
    content, structured, failed, intact = parse_content(inner)
    return ToolResponse(
        name=needed_text(inner, "name") or None,
        content=content,
        structured=structured,
        error=failed,
        is_complete=True,
        origin=origin_of(inner, model),
        native=Native(API, part, intact),
    )


# Which member of a part says what it is, and who reads it.
_READERS: dict[str, Callable[[JsonObject, str | None], Block]] = {
    "functionCall": _parse_call,
    "functionResponse": _parse_response,
    "text": _parse_text,
    "inlineData": lambda part, _model: parse_inline(part),
    "fileData": lambda part, _model: parse_file(part),
    **HOSTED_READERS,
}
ITEM_KEYS = both(*_READERS, "thought", "thoughtSignature", "role", "parts")


# ----------------------------------------------------------------------------------------------------------------- out


def own_fragment(native: Native | None) -> JsonObject | None:
    """The fragment itself where this API wrote it and it still says everything."""
    if native is None or not native.intact or native.api != API:
        return None
    return cast("JsonObject", native.fragment)


def render_parts(blocks: Sequence[Block], out: Spelling, *, own: bool = True) -> list[JsonObject]:
    """`own`: the model says it, so that each signature is one of these blocks."""
    if not own:
        said = [block for block in blocks if not isinstance(block, Thinking)]
        return [_with_lawful_signature(_render_block(block, out), out) for block in said]
    parts: list[JsonObject] = []
    signature: str | None = None
    for block in blocks:
        if isinstance(block, Thinking):
            if signature is not None:
                parts.append(_signature_alone(signature))
            signature = block.signature if signs_the_next(block) else None
            if signature is None:
                parts.append(own_fragment(block.native) or _render_thought(block))
        else:
            parts.append(_signed(_render_block(block, out), signature))
            signature = None
    return parts if signature is None else [*parts, _signature_alone(signature)]


def _with_lawful_signature(part: JsonObject, out: Spelling) -> JsonObject:
    """GEM-18, GEM-21: a signature of the user's means nothing, but it must be base64."""
    signature = text_at(part, "thoughtSignature")
    if signature is None or re.fullmatch(BASE64, signature):
        return part
    out.report.add("reasoning", "a signature that can't be decoded: left out")
    return laid(part, thoughtSignature=None)


def signs_the_next(block: Block) -> bool:
    """Whether this is the signature of the block behind it, and no part of its own."""
    return isinstance(block, Thinking) and bool(block.signature) and not block.text and block.native is None


def _signed(part: JsonObject, signature: str | None) -> JsonObject:
    """The part with this signature, or without any."""
    return part if (look(part, "thoughtSignature") or None) == signature else laid(part, thoughtSignature=signature)


def _signature_alone(signature: str) -> JsonObject:
    return {"text": "", "thoughtSignature": signature}


def _render_thought(block: Thinking) -> JsonObject:
    if not block.text and block.signature:
        return _signature_alone(block.signature)
    part: JsonObject = {"text": block.text, "thought": True}
    return laid(part, thoughtSignature=block.signature) if block.signature else part


def _render_block(block: Text | ToolCall | ToolResponse | Media | Code | Opaque, out: Spelling) -> JsonObject:
    own = own_fragment(block.native)
    match block:
        case ToolCall():
            return _render_call(block, own, out)
        case ToolResponse():
            return _render_response(block, own, out)
        case _ if own is not None:
            return own
        case Text():
            return {"text": block.text}
        case Media():
            part = media_part(block, out.fetch, urls=out.traits.urls)
            if part is None:
                out.report.add("text", f"{block.kind} that the API does not take: told as text", subject=block.kind)
                return unsupported(block.kind, block.name, block.url, block.file_id)
            report_lost_name(block, part, out.report)
            return part
        case Code():
            return {"text": fenced(block)}
        case Opaque():
            out.report.add("text", "content of a kind unknown to the API is told as text", subject=block.kind)
            return unsupported(block.kind, block.text)
        case _:
            assert_never(block)


def _render_call(call: ToolCall, own: JsonObject | None, out: Spelling) -> JsonObject:
    if call.kind == "hosted":
        # GEM-24: whole, with their own ids
        if own is not None:
            return own
        if call.origin.provider == API:
            told = TEXTS.hosted_call.format(tool=call.name, arguments=write_text(call.arguments))
            return _told(told, call.id, call.name, out)
    stood = own or _changed_fragment(call.native)
    inner = object_at(stood, "functionCall")
    call_id, name = out.call(call, inner if stood else None)
    changes: JsonObject = {"id": call_id, "name": name}
    if own is None:
        changes["args"] = render_arguments_object(call, out.report)
    return _laid_in(stood, "functionCall", inner, changes)


def _render_response(response: ToolResponse, own: JsonObject | None, out: Spelling) -> JsonObject:
    if response.hosted:
        if own is not None:
            return own
        if response.origin.provider == API:
            said = text_of(response.content) if response.structured is UNSET else write_text(response.structured)
            told = TEXTS.hosted_result.format(tool=response.name, content=said)
            return _told(told, response.call_id, response.name, out)
    stood = own or _changed_fragment(response.native)
    inner = object_at(stood, "functionResponse")
    call_id, name = out.response(response, inner if stood else None)
    changes: JsonObject = {"id": call_id, "name": name}
    if own is None:
        said, media = render_content(response, out.projection)
        changes |= {"response": said, "parts": media or None}
    return _laid_in(stood, "functionResponse", inner, changes)


def _laid_in(part: JsonObject, member: str, inner: JsonObject, changes: JsonObject) -> JsonObject:
    """The part with these changes to what it holds; itself where there is none. An empty id is none."""
    if changes["id"] is None and not look(inner, "id"):
        del changes["id"]
    made = laid(inner, **changes)
    return part if part and made is inner else {**part, spelled(part, member): made}


def _changed_fragment(native: Native | None) -> JsonObject:
    """A fragment of this API that does not say all any more: what nobody modelled stays."""
    return cast("JsonObject", native.fragment) if native is not None and native.api == API else {}


def _told(text: str, call_id: str, name: str | None, out: Spelling) -> JsonObject:
    out.report.add("text", "a changed hosted interaction is told as text", call_id=call_id, subject=name)
    return {"text": text}
