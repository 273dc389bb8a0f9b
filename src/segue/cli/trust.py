"""`segue trust`: whether a project's file may allow tools, start programs and say where keys go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from segue.cli import completing, config, options, streams, trusted


@options.command("trust")
@click.argument("file", required=False, metavar="[FILE]", shell_complete=completing.files)
@click.option("--revoke", is_flag=True, help="Trust it no longer.")
def command(file: str | None, *, revoke: bool, as_json: bool) -> None:
    """Trust FILE, or the nearest .segue.toml above this directory, as it is now.

    A project's file may come from somebody else. What it says under [mcp], `allow` and `env` of [tools], `base_url`,
    `key_variable` and `headers` of [providers], and its `store` count only once it is trusted; when it changes, it is
    not any more. What counts from then on is told, with its values.

    \b
      segue trust
      segue trust --revoke
    """
    place = Path(file) if file is not None else config.project_file()
    if place is None:
        raise streams.Unreadable("there is no .segue.toml in this directory or above; name a file")
    place = place.absolute()
    if revoke:
        _tell(place, ("trusted no longer" if trusted.forget(place) else "was not trusted"), {}, as_json=as_json)
        return
    wants, data = config.wanted(place)
    trusted.remember(place, data)
    _tell(place, "trusted until it changes", wants, as_json=as_json)


def _tell(place: Path, state: str, wants: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        import msgspec

        now = {
            "file": str(place),
            "trusted": state.startswith("trusted until"),
            "counts": {name: msgspec.Raw(value.encode()) for name, value in wants.items()},
        }
        streams.write(msgspec.json.encode(now), b"\n")
        return
    from segue.view.clean import harmless_line

    lines = [f"{place}: {state}", *(f"  {name} = {value}" for name, value in wants.items())]
    streams.write("".join(f"{line[: len(line) - len(line.lstrip())]}{harmless_line(line)}\n" for line in lines))
