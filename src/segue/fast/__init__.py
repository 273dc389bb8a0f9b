"""The fast path: typed parsing and rendering of regular conversations, without the passes of the full pipeline.

The full pipeline converts the rest of a body (model, system, tools, options) with a minimal conversation: one event for
each trait that the rest or a finding can depend on. Its result is a *body template*, kept for later turns of the
conversation and for others with the same rest. The items of the whole conversation are then parsed and rendered with
types. Any other body is converted by the full pipeline; the tests compare both on every shape that is accepted.

Conversations are remembered (`segue.fast.memory`): of a body that continues one, only the newest items are converted,
with types if it is long and regular (`segue.fast.regular`), otherwise by the passes (`segue.fast.conversation`). A
short one that continues none is converted by the full pipeline, until there were several with the same beginning: a
template is made once it saves more than it costs.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Event

from segue.fast import large, regular
from segue.fast.body_template import clear_templates
from segue.fast.memory import UNSUPPORTED, ConversationMemory
from segue.fast.regular import FastConversion
from segue.pipeline import Conversion, ConvertJob
from segue.wire.names import clear_projected_names
from segue.wire.schema import clear_rendered_schemas
from segue.wire.text.names import TEXT_FORMAT_NAMES

__all__ = ["FastConversion", "clear", "conversations", "convert_fast", "convert_regular", "enable", "remember"]

conversations = ConversationMemory()
"""The conversations that `convert_fast` remembers."""
_switched_off = Event()
# A conversation with no more messages is short: the passes convert and continue it.
_MAX_SHORT_LENGTH = 16


def enable(enabled: bool) -> None:
    """Switch the whole package on or off: without it, all bodies are converted by the full pipeline."""
    if enabled:
        _switched_off.clear()
    else:
        _switched_off.set()


def convert_fast(data: bytes, job: ConvertJob) -> FastConversion | Conversion | None:
    """Return the converted body, or None if the full pipeline is needed.

    It is a `Conversion` of the full pipeline where a template was made from the whole body.
    """
    if _switched_off.is_set():
        return None
    if job.restore is not None or job.needs_transcript:
        return _convert_window(data, job)
    continued = _convert_continued(data, job)
    if continued is not None:
        return continued
    if not conversations.needs_template(data, job, _MAX_SHORT_LENGTH):
        return None
    converted = convert_regular(data, job, remembered=job.fetch is None)
    return _convert_window(data, job) if converted is None else converted


def _convert_continued(data: bytes, job: ConvertJob) -> FastConversion | None:
    """Return the converted body if it continues a remembered conversation."""
    continued = conversations.convert_regular(data, job) if job.fetch is None else None
    if continued is not None:
        return continued
    return _convert_window(data, job, _MAX_SHORT_LENGTH)


def _convert_window(data: bytes, job: ConvertJob, max_length: int | None = None) -> FastConversion | None:
    """Return the converted body if it continues a conversation that is not regular, or short."""
    if job.fetch is not None:
        return None
    try:
        continued = conversations.convert(data, job, max_length)
    except UNSUPPORTED:
        return None
    if continued is None:
        return None
    return FastConversion(continued.source, continued.data, continued.report, continued.sent_body, continued.transcript)


def remember(data: bytes, conversion: Conversion, job: ConvertJob) -> bool:
    """Remember the conversation of a body that was converted whole. Return whether its rendered body is kept."""
    return job.fetch is None and not _switched_off.is_set() and conversations.add(data, conversion, job)


def convert_regular(data: bytes, job: ConvertJob, *, remembered: bool = False) -> FastConversion | Conversion | None:
    """Return the converted body if its history is regular; a `Conversion` where a template was made from all of it."""
    if not _is_supported(job):
        return None
    if len(data) > large.MIN_SIZE:
        with suppress(*UNSUPPORTED):
            return large.convert_large(data, job)
    try:
        converted = regular.convert_regular(data, job)
    except UNSUPPORTED:
        return None
    if isinstance(converted, Conversion):
        return converted
    conversion, conversation = converted
    if remembered and conversation is not None:
        conversations.add_regular(data, conversation, job)
    return conversion


def _is_supported(job: ConvertJob) -> bool:
    return job.tool_format not in TEXT_FORMAT_NAMES and job.target.fast_path is not None


def clear() -> None:
    """Clear everything that was cached from earlier conversions, also the names and schemas of their tools."""
    conversations.clear()
    clear_projected_names()
    clear_rendered_schemas()
    clear_templates()
