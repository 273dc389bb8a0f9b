"""`segue trust`: trusts a project file to allow tools, start programs and choose where keys are sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from segue.cli import completers, config, options, streams, trust_store


@options.command("trust")
@click.argument("file", required=False, metavar="[FILE]", shell_complete=completers.files)
@click.option("--revoke", is_flag=True, help="Stop trusting the file.")
def command(file: str | None, *, revoke: bool, as_json: bool) -> None:
    """Trust a project's configuration file as it is now.

    FILE is by default the nearest .segue.toml in or above this directory. It may come from someone else: its [mcp]
    and [gateway] sections, `allow`, `env` and `sandbox` of [tools], `base_url`, `key_variable` and `headers` of
    [providers], and `store` are ignored until it is trusted, and again after it changes. Prints the settings that take
    effect.

    \b
      segue trust
      segue trust --revoke
    """
    path = Path(file) if file is not None else config.project_file()
    if path is None:
        raise streams.BadInputError("no .segue.toml in this directory or above; name a file")
    path = path.absolute()
    if revoke:
        state = "no longer trusted" if trust_store.remove(path) else "was not trusted"
        _print_state(path, state, {}, trusted=False, as_json=as_json)
        return
    settings, data = config.restricted_settings(path)
    trust_store.add(path, data)
    _print_state(path, "trusted until it changes", settings, trusted=True, as_json=as_json)


def _print_state(path: Path, state: str, settings: Mapping[str, str], *, trusted: bool, as_json: bool) -> None:
    if as_json:
        import msgspec

        fields = {
            "file": str(path),
            "trusted": trusted,
            "counts": {name: msgspec.Raw(value.encode()) for name, value in settings.items()},
        }
        streams.write(msgspec.json.encode(fields), b"\n")
        return
    from segue.view.sanitize import sanitize_line

    lines = [f"{path}: {state}", *(f"  {name} = {value}" for name, value in settings.items())]
    streams.write("".join(f"{line[: len(line) - len(line.lstrip())]}{sanitize_line(line)}\n" for line in lines))
