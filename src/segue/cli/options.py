"""Options and arguments shared by the commands: `--json`, FILE, ID, API names, options of an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from segue.cli import completers, streams

if TYPE_CHECKING:
    from segue.canonical.request import Options as RequestOptions

COUNT = click.IntRange(1, 1_000_000_000)
file_argument = click.argument("file", default="-", metavar="[FILE]", shell_complete=completers.files)
id_argument = click.argument("id", metavar="ID", shell_complete=completers.ids)
model_option = click.option("--model", metavar="M", help="The name of the model; some rules depend on it.")
profile_option = click.option(
    "--profile",
    metavar="P",
    shell_complete=completers.profiles,
    help="The server, if it implements the API with rules of its own; see segue apis --profiles.",
)


verbose_option = click.option("-v", "--verbose", is_flag=True, help="Also print findings that are only notes.")
tool_format_option = click.option(
    "--tool-format",
    metavar="F",
    shell_complete=completers.tool_formats,
    help="Tool format; see segue formats (default: auto, by API and model).",
)


_AGENT_OPTIONS = (
    click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        metavar="PROVIDER/MODEL",
        shell_complete=completers.models,
        help="Model to use; repeat it to add models to fail over to.",
    ),
    click.option("--emulated", is_flag=True, help="Use emulated models: no key, no network, no cost."),
    click.option("-c", "--continue", "latest", is_flag=True, help="Continue the latest conversation of this folder."),
    click.option("--all-folders", "any_folder", is_flag=True, help="With -c: the latest conversation of all folders."),
    click.option(
        "-s",
        "--conversation",
        "--session",
        "conversation",
        metavar="ID",
        shell_complete=completers.ids,
        help="Continue this conversation: its number in segue log, or the beginning or end of its id.",
    ),
    click.option("--fork", is_flag=True, help="Continue in a copy of the conversation (with -c or -s)."),
    click.option(
        "-a",
        "--attach",
        "attached",
        multiple=True,
        metavar="FILE",
        shell_complete=completers.files,
        help="Attach a picture, a PDF or a text file; @FILE in the prompt does the same.",
    ),
    click.option(
        "-t", "--template", metavar="NAME", help="Use a prompt from a Markdown file; PROMPT becomes its arguments."
    ),
    click.option("--system", metavar="TEXT", help="System prompt; @FILE reads it from a file."),
    tool_format_option,
    click.option(
        "-o",
        "--option",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Option of requests, such as temperature=0; repeatable.",
    ),
    click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Maximum number of tokens of a reply."),
    click.option("--effort", metavar="LEVEL", help="Reasoning effort: low, medium, high …"),
    click.option("--thinking", metavar="on|off|N", help="Reasoning on, off, or up to N tokens."),
    click.option("--tools", metavar="A,B", help="Use only these tools."),
    click.option("--no-tools", is_flag=True, help="Use no tools."),
    click.option(
        "--functions",
        multiple=True,
        metavar="FILE.py",
        shell_complete=completers.files,
        help="Use the functions of a Python file as tools, too.",
    ),
    click.option("--allow", multiple=True, metavar="RULE", help="Allow a tool: shell, or 'shell(git log *)'."),
    click.option(
        "--dangerously-allow-all",
        "allow_all",
        is_flag=True,
        help="Allow every tool without asking; deny rules still apply.",
    ),
    click.option(
        "--max-turns", type=click.IntRange(min=1), metavar="N", help="Turns at most for a prompt (default 100)."
    ),
    click.option("--trust", "trusting", is_flag=True, help="Trust .segue.toml and AGENTS.md for this run."),
    click.option("--no-store", is_flag=True, help="Do not store the conversation."),
    click.option("--debug", is_flag=True, help="Check every request against the provider's rules before sending."),
)


def agent_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all commands that run an agent: model, conversation, tools, permissions."""
    for add in reversed(_AGENT_OPTIONS):
        function = add(function)
    return function


def limit_option(default: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--limit", metavar="N", type=COUNT, default=default, show_default=True, help="Maximum number of results."
    )


def command(
    name: str,
    *,
    group: click.Group | None = None,
    json_help: str = "Print the result as one JSON value.",
    epilog: Callable[[], str] | None = None,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a command with `--json`, added to `group` where given. `epilog` returns the end of its help."""

    def make(function: Callable[..., Any]) -> click.Command:
        function = click.option("--json", "as_json", is_flag=True, help=json_help)(function)
        if group is not None:
            return group.command(name)(function)
        made = click.command(name, cls=_Command)(function)
        made.find_epilog = epilog
        return made

    return make


class _Command(click.Command):
    """A command with an end of its help that is made when the help is printed."""

    find_epilog: Callable[[], str] | None = None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.epilog = self.find_epilog() if self.find_epilog is not None else None
        super().format_epilog(ctx, formatter)


class Subcommands(click.Group):
    """A group of subcommands; the first one is the default."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if not args or (first.startswith("-") and first not in ("-h", "--help")):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            ctx.fail(f"no such command '{args[0]}'; commands: {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options of the default subcommand too."""
        first = next(iter(self.commands.values()))
        while isinstance(first, Subcommands):
            first = next(iter(first.commands.values()))
        rows = [row for option in first.get_params(ctx) if (row := option.get_help_record(ctx))]
        with formatter.section("Options"):
            formatter.write_dl(rows)
        self.format_commands(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class ApiName(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  older clicks take none
    """The name of an API or a provider. The registry is only imported when there is a value, not for `--help`."""

    name = "API"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from segue.errors import InputError
        from segue.wire.registry import find_wire_or_server

        try:
            find_wire_or_server(value, argument="")
        except InputError as error:
            self.fail(error.message, param, ctx)
        return value

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"expected one of {', '.join(self.known_names())}"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.known_names() if name.startswith(incomplete)]

    def known_names(self) -> list[str]:
        """Return the names that messages and completions list."""
        return api_names()


def api_names() -> list[str]:
    """Return the names of the APIs in registry order, without text tool formats."""
    import segue

    return [row.name for row in segue.formats() if row.kind != "text"]


API = ApiName()
api_option = partial(click.option, metavar="API", type=API)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of one run of an agent; what is not set comes from the configuration."""

    models: tuple[str, ...] = ()
    emulated: bool = False
    latest: bool = False
    any_folder: bool = False
    conversation: str | None = None
    fork: bool = False
    attached: tuple[str, ...] = ()
    template: str | None = None
    functions: tuple[str, ...] = ()
    system: str | None = None
    tool_format: str | None = None
    request_options: RequestOptions | None = None
    tools: tuple[str, ...] | None = None
    allow: tuple[str, ...] = ()
    max_turns: int | None = None
    trusting: bool = False
    keep: bool = True
    debug: bool = False

    @classmethod
    def from_flags(cls, ctx: click.Context, flags: Mapping[str, Any]) -> RunOptions:
        """Build the options from the flags of `agent_options`."""
        values: dict[str, Any] = dict(flags)
        names: str | None = values.pop("tools")
        no_tools: bool = values.pop("no_tools")
        allow_all, keep = values.pop("allow_all"), not values.pop("no_store")
        continues = values["latest"] or values["conversation"] is not None
        for wrong, message in (
            (values["latest"] and values["conversation"] is not None, "-c and -s can't be combined"),
            (values["any_folder"] and not values["latest"], "--all-folders is for -c"),
            (values["fork"] and not continues, "--fork needs a conversation: use -c or -s"),
            (continues and not keep, "--no-store can't be combined with -c or -s"),
            (names is not None and no_tools, "--tools and --no-tools can't be combined"),
        ):
            if wrong:
                raise click.UsageError(message, ctx)
        values["request_options"] = _parse_request_options(
            ctx, values.pop("assignments"), {name: values.pop(name) for name in ("max_tokens", "effort", "thinking")}
        )
        tools = () if no_tools else _split_names(names)
        values["allow"] = (*values["allow"], *(("*",) if allow_all else ()))
        values |= {"tools": tools, "keep": keep, "system": _read_system(values["system"])}
        return cls(**values)


def _parse_request_options(
    ctx: click.Context, assignments: tuple[str, ...], flags: Mapping[str, Any]
) -> RequestOptions | None:
    """Return the options of requests that the flags set, None if there are none."""
    from segue.cli.request_options import parse_assignment, parse_options, parse_value
    from segue.errors import InputError

    given = {name: parse_value(value) if isinstance(value, str) else value for name, value in flags.items()}
    try:
        values = dict(map(parse_assignment, assignments)) | {
            name: value for name, value in given.items() if value is not None
        }
        return parse_options(values) if values else None
    except InputError as error:
        raise click.UsageError(error.message, ctx) from None


def _split_names(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name for part in names.split(",") if (name := part.strip()))


def _read_system(text: str | None) -> str | None:
    """Return the system prompt; `@file` is read from the file."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return streams.read(text[1:], expected="a text").decode()
    except UnicodeDecodeError as error:
        raise streams.BadInputError(f"{text[1:]} is not UTF-8: {error.reason} at byte {error.start:,}") from None
