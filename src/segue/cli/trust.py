"""`segue trust`: trusts a project file to allow tools, start programs and choose where keys are sent; and a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from segue.cli import completers, config, options, project_context, streams, trust_store
from segue.runtime.git_repository import find_root


@options.command("trust")
@click.argument("file", required=False, metavar="[PATH]", shell_complete=completers.files)
@click.option("--revoke", is_flag=True, help="Stop trusting the file or folder.")
def command(file: str | None, *, revoke: bool, as_json: bool) -> None:
    """Trust a project: its configuration file as it is now, and the instruction files in its folder.

    The nearest .segue.toml in or above this directory may come from someone else: its [mcp] and [gateway] sections,
    `allow`, `env` and `sandbox` of [tools], `base_url`, `key_variable` and `headers` of [providers], and `store` are
    ignored until it is trusted, and again after it changes. AGENTS.md and CLAUDE.md are used in trusted folders and
    below. PATH is one file, or one folder. Prints the settings that take effect.

    \b
      segue trust
      segue trust --revoke
    """
    path = Path(file) if file is not None else config.project_file()
    folder = path if path is not None and path.is_dir() else None
    if file is None and project_context.find_files(Path.cwd()):
        folder = find_root(Path.cwd()) or Path.cwd()
    if path is None and folder is None:
        raise streams.BadInputError(
            "nothing to trust: no .segue.toml, AGENTS.md or CLAUDE.md here or above; name a file or a folder"
        )
    if path is not None and path != folder:
        _trust_file(path.absolute(), revoke=revoke, as_json=as_json, folder=folder)
    if folder is not None:
        folder = folder.absolute()
        state = "trusted" if not revoke else "no longer trusted" if trust_store.remove(folder) else "was not trusted"
        if not revoke:
            trust_store.add_folder(folder)
        if not as_json or path in (None, folder):
            _print_state(folder, state, {}, trusted=not revoke, as_json=as_json)


def _trust_file(path: Path, *, revoke: bool, as_json: bool, folder: Path | None) -> None:
    if revoke:
        state = "no longer trusted" if trust_store.remove(path) else "was not trusted"
        _print_state(path, state, {}, trusted=False, as_json=as_json, folder=folder)
        return
    settings, data = config.restricted_settings(path)
    trust_store.add(path, data)
    _print_state(path, "trusted until it changes", settings, trusted=True, as_json=as_json, folder=folder)


def _print_state(
    path: Path, state: str, settings: Mapping[str, str], *, trusted: bool, as_json: bool, folder: Path | None = None
) -> None:
    if as_json:
        import msgspec

        fields = {
            "file": str(path),
            "trusted": trusted,
            "counts": {name: msgspec.Raw(value.encode()) for name, value in settings.items()},
        }
        fields |= {"folder": str(folder)} if folder is not None else {}
        streams.write(msgspec.json.encode(fields), b"\n")
        return
    from segue.view.sanitize import sanitize_line

    lines = [f"{path}: {state}", *(f"  {name} = {value}" for name, value in settings.items())]
    streams.write("".join(f"{line[: len(line) - len(line.lstrip())]}{sanitize_line(line)}\n" for line in lines))
