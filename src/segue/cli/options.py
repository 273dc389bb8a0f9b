"""What the commands share: `--json`, `--version`, the FILE argument, the names of formats."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from segue.cli import completing

__all__ = [
    "FORMAT",
    "FormatName",
    "Subcommands",
    "agent_options",
    "command",
    "file_argument",
    "id_argument",
    "model_option",
    "profile_option",
    "tool_format_option",
]

file_argument = click.argument("file", default="-", metavar="[FILE]", shell_complete=completing.files)
id_argument = click.argument("id", metavar="ID", shell_complete=completing.ids)
model_option = click.option("--model", metavar="M", help="The model; rules follow its version.")
profile_option = click.option(
    "--profile",
    metavar="P",
    shell_complete=completing.profiles,
    help="A server that speaks openai-chat its own way; segue formats --profiles lists them.",
)


tool_format_option = click.option(
    "--tool-format",
    metavar="F",
    shell_complete=completing.tool_formats,
    help="How tools are written, against the model's habit; auto is by the model.",
)


_AGENT_OPTIONS = (
    click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        metavar="PROVIDER/MODEL",
        shell_complete=completing.models,
        help="Whom to ask; several are asked in this order, where one does not answer.",
    ),
    click.option("-c", "--continue", "latest", is_flag=True, help="Go on with the latest conversation."),
    click.option(
        "-s",
        "--session",
        "conversation",
        metavar="ID",
        shell_complete=completing.ids,
        help="Go on with this conversation; the beginning of its id will do.",
    ),
    click.option("--fork", is_flag=True, help="Go on in a copy of it (with -c or -s)."),
    click.option("--system", metavar="TEXT", help="What the model is told beforehand; @FILE reads it from a file."),
    tool_format_option,
    click.option("--tools", metavar="A,B", help="Only these tools."),
    click.option("--no-tools", is_flag=True, help="No tools at all."),
    click.option("--allow", multiple=True, metavar="RULE", help="Let a tool run: shell, or 'shell(git log *)'."),
    click.option(
        "--dangerously-allow-all",
        "allow_all",
        is_flag=True,
        help="Let every tool run, unasked; rules that deny still hold.",
    ),
    click.option("--steps", type=click.IntRange(min=1), metavar="N", help="How many requests at most; 100."),
    click.option("--trust", "trusting", is_flag=True, help="Trust the project's .segue.toml, this time."),
    click.option("--no-store", is_flag=True, help="Keep nothing of it."),
    click.option("--debug", is_flag=True, help="Check every request by the provider's rules before it is sent."),
)


def agent_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What everything that runs an agent takes: who is asked, where it is kept, what tools may do."""
    for add in reversed(_AGENT_OPTIONS):
        function = add(function)
    return function


def command(
    name: str, *, of: click.Group | None = None, json_help: str = "The result as one JSON value."
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with what every command has; `of` another, or by itself."""

    def make(function: Callable[..., Any]) -> click.Command:
        function = click.option("--json", "as_json", is_flag=True, help=json_help)(function)
        function = click.version_option(package_name="segue", message="segue %(version)s")(function)
        return (of.command if of is not None else click.command)(name)(function)

    return make


class Subcommands(click.Group):
    """Commands of a command: the first one that was made is meant where none is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if not args or (first.startswith("-") and first not in ("-h", "--help", "--version")):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            ctx.fail(f"no such command '{args[0]}'; known are {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Also those of the command that is meant where none is named."""
        first = next(iter(self.commands.values()))
        rows = [row for option in first.get_params(ctx) if (row := option.get_help_record(ctx))]
        with formatter.section("Options"):
            formatter.write_dl(rows)
        self.format_commands(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class FormatName(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  older clicks take none
    """The name of an API that a body can be in. The registry is asked when a value is there, not for `--help`."""

    name = "API"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in (names := known()):
            near = get_close_matches(str(value).lower().replace("_", "-"), names, 1)
            hint = f" did you mean {near[0]}?" if near else ""
            self.fail(f"unknown format '{value}';{hint} known are {', '.join(names)}", param, ctx)
        return value

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"known are {', '.join(known())}"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in known() if name.startswith(incomplete)]


def known() -> list[str]:
    """The formats a body can have, in the order of the registry; a text format is never a body of its own."""
    import segue

    return [row.name for row in segue.formats() if row.kind != "text"]


FORMAT = FormatName()
option = partial(click.option, metavar="API", type=FORMAT)
