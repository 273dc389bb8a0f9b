"""Open the stream readers and renderers of an API, which are imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.wire.base import RenderContext
    from segue.wire.stream.parse import StreamParser
    from segue.wire.stream.render import StreamRenderer


def stream_opener(reader: str, *dialect: object) -> Callable[[str], StreamParser]:
    """Return a function that opens a stream with this reader, `module:class`, which is imported on first use."""

    def open_stream(turn_key: str) -> StreamParser:
        from segue.wire.stream.parse import StreamParser

        return StreamParser(resolve_name(reader)(turn_key, *dialect))

    return open_stream


def renderer_opener(renderer: str, *dialect: object) -> Callable[[RenderContext, str | None], StreamRenderer]:
    """Return a function that returns this renderer, `module:class`, which is imported on first use."""
    return lambda context, model: resolve_name(renderer)(context, model, *dialect)
