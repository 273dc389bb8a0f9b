"""The pass for the response format: adds instructions to the system text where the target has no option for it."""

from __future__ import annotations

import msgspec

from segue.canonical.blocks import Block, Message, Text, edit_block, text_of
from segue.canonical.json import encode_json_text
from segue.canonical.request import ResponseFormat
from segue.render.constraints import TEXTS
from segue.render.draft import Draft

_NAMES = {"json": "format", "schema": "schema"}
_NO_OPTION = "the target has no option for it"
JSON_WORD_INSERTED = 'the word "json" added to the prompt: the target requires it with a JSON response format'


def apply_response_format(draft: Draft) -> Draft:
    """Move an unsupported schema into the system text; add the word "json" where the target requires it."""
    form = draft.options.response_format
    if draft.is_same_api or form is None or form.kind == "text":
        return draft
    supported = draft.constraints.response_formats
    if draft.tools and not draft.constraints.response_format_with_tools:
        supported = frozenset[str]()
    if form.kind not in supported:
        # Without a schema the JSON is always an object.
        wrapped = (form.schema or {}).get("type", "object") == "object"
        is_json = "json" in supported and wrapped
        subject, why = "response_format", "the target supports JSON only without a schema" if is_json else _NO_OPTION
        draft.report.add("adjusted", f"response {_NAMES[form.kind]} moved into the system text: {why}", subject=subject)
        draft = draft.with_options(response_format=ResponseFormat("json") if is_json else None)
        return _append_instruction(draft, _format_instruction(form))
    required = form.kind == "json" or (form.kind == "schema" and draft.constraints.json_word_for_schemas)
    if not required or draft.constraints.json_word == "free" or _starts_with_json_word(draft):
        return draft
    draft.report.add("inserted", JSON_WORD_INSERTED)
    return _append_instruction(draft, _format_instruction(form))


def _format_instruction(form: ResponseFormat) -> str:
    return TEXTS.json_schema.format(schema=encode_json_text(form.schema)) if form.schema else TEXTS.json


def has_json_word(text: str) -> bool:
    return "json" in text.lower()


def _starts_with_json_word(draft: Draft) -> bool:
    """Return whether the word is in the system text or in the first user message.

    Later messages are not considered: the prefix must not depend on them.
    """
    texts = [] if draft.constraints.json_word == "messages" else [block.text for block in draft.system]
    for message in draft.messages:
        if message.speaker not in ("system", "human"):
            break
        texts.append(text_of(message.blocks))
        if message.speaker == "human":
            break
    return any(map(has_json_word, texts))


def _append_instruction(draft: Draft, line: str) -> Draft:
    """Append the line to the system text, in a message if the target requires it there."""
    if draft.constraints.system_position == "top" and draft.constraints.json_word != "messages":
        return msgspec.structs.replace(draft, system=(*draft.system, Text(line)))
    head = next((i for i, message in enumerate(draft.messages) if message.speaker != "system"), len(draft.messages))
    leading, rest = draft.messages[:head], draft.messages[head:]
    if not leading:
        return draft.with_messages((Message("system", (Text(line),)), *rest))
    last = leading[-1]
    return draft.with_messages((*leading[:-1], last.with_blocks(_append_line(last.blocks, line)), *rest))


def _append_line(blocks: tuple[Block, ...], line: str) -> tuple[Block, ...]:
    if blocks and isinstance(blocks[-1], Text) and blocks[-1].text:
        return (*blocks[:-1], edit_block(blocks[-1], text=f"{blocks[-1].text}\n\n{line}"))
    return (*blocks, Text(line))
