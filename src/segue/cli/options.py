"""What the commands share: `--json`, `--version`, the FILE argument, the names of formats."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

__all__ = ["FORMAT", "FormatName", "command", "file_argument", "model_option", "profile_option", "tool_format_option"]

file_argument = click.argument("file", default="-", metavar="[FILE]")
model_option = click.option("--model", metavar="M", help="The model; rules follow its version.")
profile_option = click.option(
    "--profile",
    metavar="P",
    help="A server that speaks openai-chat its own way; segue formats --profiles lists them.",
)


tool_format_option = click.option(
    "--tool-format", metavar="F", help="How tools are written, against the model's habit; auto is by the model."
)


def command(
    name: str, *, json_help: str = "The result as one JSON value."
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with what every command has."""

    def make(function: Callable[..., Any]) -> click.Command:
        function = click.option("--json", "as_json", is_flag=True, help=json_help)(function)
        function = click.version_option(package_name="segue", message="segue %(version)s")(function)
        return click.command(name)(function)

    return make


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
