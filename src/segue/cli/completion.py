"""`segue completion`: prints the shell completion script."""

from __future__ import annotations

import click

from segue.cli import options, streams

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_SEGUE_COMPLETE"


@options.command("completion", json_help="Print the script as a JSON value.")
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@click.pass_context
def command(ctx: click.Context, shell: str, *, as_json: bool) -> None:
    """Print the shell completion script for bash, zsh or fish. It also completes models, ids and formats.

    \b
      eval "$(segue completion bash)"       in ~/.bashrc
      eval "$(segue completion zsh)"        in ~/.zshrc, after compinit
      segue completion fish | source        in ~/.config/fish/config.fish
    """
    script = _script(ctx.find_root().command, shell)
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode({"shell": shell, "script": script}), b"\n")
    else:
        streams.write(script)


def _script(root: click.Command, shell: str) -> str:
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    # Not `kind.source`: for bash that starts a shell to check its version.
    return ShellComplete.source(kind(root, {}, "segue", _VARIABLE))
