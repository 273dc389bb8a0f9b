"""`segue COMMAND`: runs a command and maps its outcome to an exit code.

0 ok, 1 violations found or failed, 2 bad input or usage, 75 temporary failure, 130 interrupted, 141 closed pipe,
143 terminated (129 where the terminal was closed), after resources are released.
An error is one line on stderr; a traceback, and what libraries log and warn, is printed only with `SEGUE_DEBUG`.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import click

from segue.cli.streams import (
    FOLDER_GONE,
    discard_stdout,
    format_os_error,
    has_working_folder,
    is_terminal,
    one_line,
    print_message,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_INTEGER_ERROR = re.compile("is not a valid integer(?: range)?$")
_TERMINATING_SIGNALS = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
_RESEND_SECONDS = 0.05
# Causes of a `StoreError` for a file that is not a store of this version: bad input.
_UNUSABLE_STORE = ("corrupt", "foreign", "newer")
OK, FAILED, BAD_INPUT, RETRY, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 75, 130, 141


class CommandRow(NamedTuple):
    """The module in this package that defines it as `command`, and its line in `segue --help`."""

    module: str
    summary: str


GROUPS: Mapping[str, Mapping[str, CommandRow]] = {
    "Agent": {
        "chat": CommandRow("chat", "Chat with a model that uses tools"),
        "run": CommandRow("run", "Send a prompt and print the answer"),
        "undo": CommandRow("undo", "Restore files that tools changed"),
    },
    "Coding clients": {
        "with": CommandRow("with_", "Run Claude Code, Codex and others on any model"),
        "route": CommandRow("route", "Change the model of a running gateway"),
        "move": CommandRow("move", "Move a session to another coding client"),
    },
    "Gateway": {
        "serve": CommandRow("serve", "Serve every client API, with any model behind it"),
        "usage": CommandRow("usage", "Print tokens and costs by route and model"),
        "emulate": CommandRow("emulate", "Emulate a provider, strictly, on this machine"),
    },
    "Request bodies": {
        "convert": CommandRow("convert", "Convert a request body to another API"),
        "check": CommandRow("check", "Check a body against the rules of its API"),
        "repair": CommandRow("repair", "Repair a body for its own API"),
        "assemble": CommandRow("assemble", "Assemble a recorded stream into one reply"),
        "extract": CommandRow("extract", "Extract tool calls from a model's text"),
        "apis": CommandRow("apis", "List APIs, or what is known of a model"),
        "formats": CommandRow("formats", "List tool formats"),
        "rules": CommandRow("rules", "Show what providers accept and reject"),
    },
    "Conversations": {
        "log": CommandRow("log", "List, show, search and delete them"),
        "export": CommandRow("export", "Export one, for people or for an API"),
        "import": CommandRow("import_", "Store one from a file"),
        "brief": CommandRow("brief", "Print a hand-over for a fresh start"),
        "compress": CommandRow("compress", "Compress one to a token budget"),
        "corpus": CommandRow("corpus", "Convert and check many as training rows"),
        "diag": CommandRow("diag", "Show a request, and the cause of each finding"),
    },
    "Setup": {
        "models": CommandRow("models", "List models, providers and keys"),
        "keys": CommandRow("keys", "Store keys of providers and of gateway clients"),
        "doctor": CommandRow("doctor", "Check configuration, keys, store and terminal"),
        "trust": CommandRow("trust", "Trust the configuration of a project"),
        "completion": CommandRow("completion", "Print the completion script of a shell"),
        "demo": CommandRow("demo", "See one task pass through every API"),
    },
}
_NAME_WIDTH = 10
COMMANDS: Mapping[str, CommandRow] = {name: row for rows in GROUPS.values() for name, row in rows.items()}

_ROOT_OPTIONS = ("-h", "--help", "--version")
# What options of the same meaning are called elsewhere: in the library, and in other commands.
_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "--target": ("--to", "--api"),
    "--source": ("--from", "--api"),
    "--api": ("--from", "--to"),
    "--from": ("--api",),
    "--to": ("--api",),
}


@contextmanager
def _exit_on_closed_pipe() -> Generator[None]:
    """Exit with 141 on a closed pipe; click itself would exit with 1."""
    try:
        yield
    except BrokenPipeError:
        discard_stdout()
        raise click.exceptions.Exit(CLOSED_PIPE) from None


def _installed_commands() -> Mapping[str, EntryPoint]:
    from segue.entry_points import find

    return find("segue.commands")


class Commands(click.Group):
    """The group of all commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys((*COMMANDS, *_installed_commands())))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            entry = _installed_commands().get(cmd_name)
            if entry is None:
                return None
            from segue.entry_points import load

            return load(entry, click.Command)
        command: click.Command = import_module(f"segue.cli.{COMMANDS[cmd_name].module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, without importing them."""
        for title, rows in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{_NAME_WIDTH}}", row.summary) for name, row in rows.items()])
        entries = _installed_commands()
        if added := [(f"{name:<{_NAME_WIDTH}}", entries[name].value) for name in entries if name not in COMMANDS]:
            with formatter.section("Installed packages"):
                formatter.write_dl(added)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            names = self.list_commands(ctx)
            if args[0] in names:
                return super().resolve_command(ctx, args)
            if len(args[0].split()) > 1:
                # Several words in one argument are a prompt.
                return super().resolve_command(ctx, ["run", *args])
            from difflib import get_close_matches

            near = get_close_matches(args[0].lower(), names, 1)
            listed = f"commands: {', '.join(names)}; segue run PROMPT sends a prompt"
            hint = f"did you mean {near[0]}?" if near else listed
            ctx.fail(f"no such command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _exit_on_closed_pipe():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _exit_on_closed_pipe():
            return super().invoke(ctx)


@click.command(
    "segue", cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="segue", message="segue %(version)s")
def root() -> None:
    """Carry a tool-using conversation from any LLM API to any other.

    Commands read a file or stdin and write results to stdout, messages to stderr. Exit codes: 0 ok, 1 violations found
    or failed, 2 bad input or usage, 75 temporary failure (try again), 130 interrupted, 141 closed pipe, 143 terminated.
    """


def main() -> NoReturn:
    # Characters the terminal can't encode must not abort a command. stdout is None if it was closed before the start.
    if stdout := cast("io.TextIOWrapper | None", sys.stdout):
        stdout.reconfigure(errors="backslashreplace")
    for number in _TERMINATING_SIGNALS:
        # Signals that are ignored (`nohup`) stay ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise_terminated)
    _configure_diagnostics()
    try:
        sys.exit(run(sys.argv[1:]))
    except _Terminated as ended:
        sys.exit(128 + ended.number)


def _configure_diagnostics() -> None:
    """Discard what libraries log, Python's warnings and errors in finalizers; `SEGUE_DEBUG` prints them."""
    import logging
    import warnings

    sys.unraisablehook = _report_unraisable
    if os.environ.get("SEGUE_DEBUG"):
        logging.basicConfig()
        warnings.simplefilter("default")
        return
    # Without any handler, logging prints warnings to stderr.
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.simplefilter("ignore")


class _Terminated(BaseException):
    """A terminating signal as an exception, so that resources are released on the way out."""

    def __init__(self, number: int) -> None:
        self.number = number


def _raise_terminated(number: int, _: object) -> NoReturn:
    raise _Terminated(number)


def _report_unraisable(error: sys.UnraisableHookArgs) -> None:
    """Python drops an exception in a finalizer. If it is that of a signal, the signal is sent again a moment later."""
    number = getattr(error.exc_value, "number", signal.SIGINT)
    if isinstance(error.exc_value, _Terminated | KeyboardInterrupt):
        from threading import Timer

        timer = Timer(_RESEND_SECONDS, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()
    elif os.environ.get("SEGUE_DEBUG"):
        sys.__unraisablehook__(error)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; raises nothing. Without a command it is `chat` or `run`."""
    if not arguments and is_terminal(sys.stdin) and is_terminal(sys.stdout):
        arguments = ["chat"]
    elif arguments and arguments[0].startswith("-") and arguments[0] not in _ROOT_OPTIONS:
        # Options of an agent: with a prompt of several words for one exchange, else for a chat.
        has_prompt = any(len(argument.split()) > 1 for argument in arguments)
        arguments = ["run" if has_prompt else "chat", *arguments]
    try:
        code = root.main(list(arguments), prog_name="segue", standalone_mode=False)
        return code if isinstance(code, int) else OK
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else error.format_message(), err=True)
        return BAD_INPUT
    except click.UsageError as error:
        from segue.errors import shorten_quoted

        if isinstance(error, click.NoSuchOption) and error.ctx is not None:
            known = {name for option in error.ctx.command.params for name in option.opts}
            meant = [name for name in _SYNONYMS.get(error.option_name, ()) if name in known]
            if meant:
                text = f"{error.message.rstrip('.')}. Did you mean '{' or '.join(meant)}'?"
                error = click.UsageError(text, error.ctx)
        command = error.ctx.command_path if error.ctx else "segue"
        print_message(f"{shorten_quoted(_format_usage_error(error.format_message()))} (see {command} --help)")
        return BAD_INPUT
    except click.ClickException as error:
        print_message(error.format_message())
        return error.exit_code
    except Exception as error:  # noqa: BLE001  a user never sees a traceback
        # Python wraps a signal that arrives while a class is created (in `__set_name__`) in a RuntimeError.
        if isinstance(error.__cause__, _Terminated):
            raise error.__cause__ from None
        return INTERRUPTED if isinstance(error.__cause__, KeyboardInterrupt) else _report_error(error)


def _report_error(error: Exception) -> int:
    """Print the error and return the exit code."""
    from segue.errors import InputError, ProviderError, RemoteProtocolError, StoreError, UndetectedApiError

    if os.environ.get("SEGUE_DEBUG"):
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    match error:
        case UndetectedApiError():
            # The library's argument `source` is the option --from here.
            print_message(str(InputError(f"{error.reason}; pass --from", path=error.path)))
            return BAD_INPUT
        case InputError():
            print_message(str(error))
            return BAD_INPUT
        case RemoteProtocolError():
            print_message(str(error))
        case StoreError() if error.cause in _UNUSABLE_STORE:
            print_message(str(error))
            return BAD_INPUT
        case StoreError() | ProviderError():
            print_message(str(error))
            return RETRY if error.retryable else FAILED
        case MemoryError():
            print_message("not enough memory for this input")
        case OSError() if error.filename is not None:
            print_message(f"can't use {error.filename}: {format_os_error(error)}")
        case OSError() if not has_working_folder():
            print_message(FOLDER_GONE)
            return BAD_INPUT
        case OSError():
            # Only stdout is left: errors of files and stdin are caught where they are read and written.
            discard_stdout()
            print_message(f"can't write to stdout: {format_os_error(error)}")
        case _:
            description = one_line(f"{type(error).__name__}: {error}")
            hint = "SEGUE_DEBUG=1 prints the traceback"
            print_message(f"this is a bug in segue, please report it ({hint}): {description}")
    return FAILED


def _format_usage_error(message: str) -> str:
    """Return click's message in this program's style: no capital, no full stop, no type name."""
    message = _INTEGER_ERROR.sub("is not a whole number", one_line(message).rstrip("."))
    message = message.replace(". expected one of", "; expected one of")
    # The name of an argument, such as MODEL, stays as it is.
    return message if message[:2].isupper() else message[:1].lower() + message[1:]
