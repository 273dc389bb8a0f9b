"""`segue export`: a stored conversation as HTML, Markdown, the store's own JSON, or a request body of any API."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from segue.cli import options, streams, user_store
from segue.cli.findings import format_levels

if TYPE_CHECKING:
    from segue.store.base import ConversationStore, ConversationSummary
    from segue.view.page import Page


def _render_page(
    store: ConversationStore, summary: ConversationSummary, render: Callable[[Page], Iterator[str]]
) -> Iterable[bytes]:
    from segue.cli import providers
    from segue.view.page import build_page

    page = build_page(store, summary, providers.load().cost)
    return (chunk.encode(errors="replace") for chunk in render(page))


def _render_html(store: ConversationStore, summary: ConversationSummary) -> Iterable[bytes]:
    from segue.view.html import render_html

    return _render_page(store, summary, render_html)


def _render_markdown(store: ConversationStore, summary: ConversationSummary) -> Iterable[bytes]:
    from segue.view.markdown import render_markdown

    return _render_page(store, summary, render_markdown)


def _render_json(store: ConversationStore, summary: ConversationSummary) -> Iterable[bytes]:
    from segue.store.export import dump_events

    return dump_events(summary, store.events(summary.id))


class Document(NamedTuple):
    """A format of exports that is not a request body. `is_text` is whether it is text for people, and not JSON."""

    suffix: str
    render: Callable[[ConversationStore, ConversationSummary], Iterable[bytes]]
    is_text: bool = True


DOCUMENTS: Mapping[str, Document] = {
    "html": Document(".html", _render_html),
    "md": Document(".md", _render_markdown),
    "json": Document(".json", _render_json, is_text=False),
}


class _ExportFormat(options.ApiName):
    """A document format or the name of an API."""

    name = "FORMAT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from segue.errors import InputError, unknown_name_error
        from segue.wire.registry import find_wire_or_server, provider_names

        if value not in DOCUMENTS:
            try:
                find_wire_or_server(value, argument="")
            except InputError:
                error = unknown_name_error("format", value, self.known_names(), path="", others=provider_names())
                self.fail(error.message, param, ctx)
        return value

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"known formats: {', '.join(self.known_names())}"

    def known_names(self) -> list[str]:
        return [*DOCUMENTS, *super().known_names()]


@options.command("export")
@options.id_argument
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    type=_ExportFormat(),
    required=True,
    help=f"{', '.join(DOCUMENTS)}, or the name of an API.",
)
@options.model_option
@click.option("--out", metavar="FILE", help="Write to this file; a new file is readable by its owner only.")
def command(id: str, *, form: str, model: str | None, out: str | None, as_json: bool) -> None:
    """Export a stored conversation.

    As a document (html, md), as JSON for segue import, or as a request body of an API.

    \b
      segue export 1nfm --format html --out chat.html
      segue export 1nfm --format anthropic --model claude-sonnet-4-5
    """
    import msgspec

    if model is not None and form in DOCUMENTS:
        raise click.UsageError("--model works only if --format is an API", click.get_current_context())
    is_text = form in DOCUMENTS and DOCUMENTS[form].is_text
    with (
        user_store.connect() as store,
        open_export(store, (summary := store.get(store.find_id(id))), form, model) as (chunks, more),
    ):
        levels = [finding["level"] for finding in more.get("report", {}).get("findings", ())]
        if not as_json and {*levels} - {"note"}:
            text = format_levels(levels)
            model_option = f" --model {model}" if model is not None else ""
            streams.print_message(f"findings: {text}; for details: segue diag {summary.id} --to {form}{model_option}")
        if out not in (None, streams.STDIO):
            streams.replace_file(out, chunks, private=True)
            if as_json:
                streams.write(msgspec.json.encode({"id": summary.id, "format": form, "out": out, **more}), b"\n")
        elif as_json:
            head = msgspec.json.encode({"id": summary.id, "format": form, **more})
            body = _json_string(chunks) if is_text else chunks
            streams.write_all(chain((head[:-1], b',"body":'), body, (b"}\n",)))
        else:
            is_shown = is_text and streams.is_terminal(sys.stdout)
            streams.write_all(_end_line(map(_sanitize, chunks) if is_shown else chunks))


def _sanitize(chunk: bytes) -> bytes:
    from segue.view.sanitize import sanitize

    return sanitize(chunk.decode()).encode()


def _json_string(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks of UTF-8 as one JSON string."""
    import msgspec

    yield b'"'
    for chunk in chunks:
        yield msgspec.json.encode(chunk.decode())[1:-1]
    yield b'"'


def _end_line(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks, and a line end if the last one has none."""
    last = b""
    for last in chunks:
        yield last
    if not last.endswith(b"\n"):
        yield b"\n"


@contextmanager
def open_export(
    store: ConversationStore, summary: ConversationSummary, form: str, model: str | None
) -> Generator[tuple[Iterable[bytes], dict[str, Any]]]:
    """Open an export: its bytes in chunks, and the report for a request body.

    The store is read with the chunks of a document. A body is complete before the first chunk.
    """
    if form not in DOCUMENTS:
        from segue.store.body import MIN_MESSAGES, render_body
        from segue.store.segments import read_segments
        from segue.wire.registry import find_wire_or_server

        read = read_segments(store, summary.id, min_messages=MIN_MESSAGES)
        row = find_wire_or_server(form, argument="format")
        if model is None and row.profile is None and read.state.target == row.name:
            model = read.state.model
        with render_body(read, form, model) as body:
            yield body.chunks(), {"report": body.report.to_dict()}
    else:
        yield DOCUMENTS[form].render(store, summary), {}
