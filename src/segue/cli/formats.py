"""`segue formats`: lists the tool formats."""

from __future__ import annotations

from segue.cli import options, streams
from segue.cli.table import Column, write_table


@options.command("formats")
def command(*, as_json: bool) -> None:
    """List the tool formats that --tool-format takes, and the APIs that accept each.

    Without the option, the format is chosen by API and model. A text tool format works on every API: tools and calls
    are written as text.
    """
    from segue.wire.registry import WIRES
    from segue.wire.text.names import TEXT_FORMAT_NAMES
    from segue.wire.tool_formats import load_tool_formats

    # The APIs are in the order of the registry.
    formats = {name: [api for api in WIRES if api in form.wires] for name, form in load_tool_formats().items()}
    kinds = {name: "text" if name in TEXT_FORMAT_NAMES else "API" for name in formats}
    if as_json:
        import msgspec

        rows = [{"name": name, "kind": kinds[name], "apis": apis} for name, apis in formats.items()]
        streams.write(msgspec.json.encode(rows), b"\n")
        return
    cells = [(name, kinds[name], "all" if kinds[name] == "text" else " ".join(apis)) for name, apis in formats.items()]
    write_table([Column("name", "bold cyan"), Column("kind"), Column("APIs", "dim")], cells)
