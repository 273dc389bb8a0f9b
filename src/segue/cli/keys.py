"""`segue keys`: API keys of providers, and the keys of a gateway's clients."""

from __future__ import annotations

import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from segue.cli import completers, options, streams
from segue.cli.streams import BadInputError
from segue.errors import format_count

if TYPE_CHECKING:
    from segue.gateway.client_keys import ClientKey

_DAY = 86_400


@click.command("keys", cls=options.Subcommands)
@click.version_option(package_name="segue", message="segue %(version)s")
def command() -> None:
    """Store API keys of providers, and manage the keys of a gateway's clients.

    \b
      segue keys set anthropic
      segue keys list
      segue keys client add laptop --requests 60
      segue keys client list
      segue keys client revoke laptop
    """


@options.command("list", group=command)
def list_stored(*, as_json: bool) -> None:
    """List the stored API keys by the names of their variables; the keys are not shown."""
    from segue.cli import key_store

    entries = key_store.load_entries()
    rows = {name: "keyring" if value is None else "file" for name, value in entries.items()}
    if as_json:
        streams.write(msgspec.json.encode(rows), b"\n")
        return
    if not rows:
        streams.print_message("no stored API keys; segue keys set PROVIDER stores one")
    streams.write("".join(f"{name}: {where}\n" for name, where in rows.items()))


@options.command("set", group=command)
@click.argument("name", shell_complete=completers.providers)
@click.argument("rest", nargs=-1, metavar="")
def set_key(name: str, rest: tuple[str, ...], *, as_json: bool) -> None:
    """Store the API key of a provider, read from a prompt or from stdin.

    NAME is a provider, or the environment variable that would hold the key. The key is stored in the system's keyring
    if the extra `keyring` is installed, else in a file that only you can read. A variable that is set takes precedence.
    """
    from segue.cli import key_store

    if rest:
        raise BadInputError("a key must not be on the command line: it is read from a prompt or from stdin")
    variable = _find_variable(name)
    key = _read_key(variable)
    where = key_store.add(variable, key)
    if as_json:
        streams.write(msgspec.json.encode({"variable": variable, "stored": where}), b"\n")
    else:
        streams.print_message(f"{variable} is stored in {where}")


@options.command("remove", group=command)
@click.argument("name", shell_complete=completers.providers)
def remove_key(name: str, *, as_json: bool) -> None:
    """Remove the stored API key of a provider."""
    from segue.cli import key_store

    variable = _find_variable(name)
    if not key_store.remove(variable):
        raise BadInputError(f"there is no stored key {variable}")
    if as_json:
        streams.write(msgspec.json.encode({"removed": variable}), b"\n")
    else:
        streams.print_message(f"removed {variable}")


def _find_variable(name: str) -> str:
    """Return the variable of a provider's key, given as that variable or as the provider."""
    from segue.cli import providers

    loaded = providers.load()
    if name in loaded.key_variables:
        return name
    row = loaded.find_provider(name)
    if row is None:
        raise BadInputError(f"unknown provider '{name}'; expected one of {', '.join(loaded.by_name)}")
    variables = (*row.keys, *row.bearer)
    if not variables:
        raise BadInputError(f"{row.name} needs no key")
    return variables[0]


def _read_key(variable: str) -> str:
    """Read a key without showing it: from a prompt, or from stdin if it is not a terminal."""
    if streams.is_terminal(sys.stdin):
        key = click.prompt(f"{variable}", hide_input=True, err=True)
    else:
        key = streams.read(streams.STDIO, expected="a key").decode(errors="replace")
    key = key.strip()
    if not key or not (key.isascii() and key.isprintable()) or " " in key:
        raise BadInputError("that is not an API key: expected ASCII characters without spaces")
    return key


@command.group("client", cls=options.Subcommands)
def client() -> None:
    """Keys of the clients of a gateway, each with limits of its own. Only hashes of them are stored."""


@options.command("list", group=client)
def list_keys(*, as_json: bool) -> None:
    """List the client keys and their limits."""
    from segue.cli.gateway_settings import load_client_keys

    keys = load_client_keys()
    rows = [{name: getattr(key, name) for name in key.__struct_fields__ if name != "hash"} for key in keys]
    if as_json:
        streams.write(msgspec.json.encode(rows), b"\n")
        return
    if not rows:
        streams.print_message("no client keys; segue keys client add NAME makes one")
    for key in keys:
        limits = ", ".join(_describe_limits(key))
        streams.write(f"{key.name}: {limits}\n" if limits else f"{key.name}\n")


def _describe_limits(key: ClientKey) -> Iterator[str]:
    from segue.gateway.budgets import parse_budget

    if key.requests_per_minute is not None:
        yield f"{format_count(key.requests_per_minute, 'request')} a minute"
    if key.tokens_per_minute is not None:
        yield f"{format_count(key.tokens_per_minute, 'token')} a minute"
    if key.concurrent is not None:
        yield f"{key.concurrent} at once"
    yield from (str(parse_budget(text)) for text in key.budgets)
    if key.group:
        yield f"group {key.group}"
    if key.metrics:
        yield "metrics"
    if key.expires is not None:
        word = "expired" if key.expires <= time.time() else "expires"
        yield f"{word} {datetime.fromtimestamp(key.expires, UTC):%Y-%m-%d %H:%M} UTC"
    if key.routes:
        yield f"routes {' '.join(key.routes)}"
    if key.models:
        yield f"models {' '.join(key.models)}"


_LIMIT_OPTIONS = (
    click.option("--model", "models", multiple=True, metavar="PATTERN", help="Only these models (repeatable)."),
    click.option("--route", "routes", multiple=True, metavar="PATTERN", help="Only these routes (repeatable)."),
    click.option("--requests", type=click.IntRange(1), metavar="N", help="Requests a minute."),
    click.option("--tokens", type=click.IntRange(1), metavar="N", help="Tokens a minute."),
    click.option("--concurrent", type=click.IntRange(1), metavar="N", help="Requests at once."),
    click.option("--budget", "budgets", multiple=True, metavar="N/PERIOD", help="Dollars a day, week, month or total."),
    click.option("--group", "groups", multiple=True, metavar="NAME", help="A group of [gateway.groups]."),
    click.option("--metrics", is_flag=True, help="Allow to read /metrics and all of /readyz."),
    click.option("--days", type=click.IntRange(1), metavar="N", help="Days until the key expires."),
)


def _with_limit_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_LIMIT_OPTIONS):
        function = option(function)
    return function


@options.command("add", group=client)
@click.argument("name")
@_with_limit_options
def add(name: str, *, as_json: bool, **limits: Any) -> None:
    """Make a client key and print it once; it can't be shown again.

    A budget is an amount of dollars for a period, which begins at midnight UTC: 5/day, 20/week, 50/month or 100/total.

    \b
      segue keys client add ada --group backend --budget 50/month
    """
    from segue.cli.gateway_settings import load_client_keys, save_client_keys
    from segue.gateway.client_keys import NAME_PATTERN, hash_key

    if re.fullmatch(NAME_PATTERN, name) is None:
        raise BadInputError(f"{name!r} can't be the name of a client key: use letters, digits and . _ @ -")
    keys = load_client_keys()
    if any(key.name == name for key in keys):
        raise BadInputError(f"there is a client key {name!r} already; segue keys client limit changes its limits")
    secret = f"segue-{secrets.token_urlsafe(32)}"
    save_client_keys([*keys, _build_key(name, hash_key(secret), **limits)])
    streams.write(msgspec.json.encode({"name": name, "key": secret}) if as_json else secret, b"\n" if as_json else "\n")


@options.command("limit", group=client)
@click.argument("name")
@_with_limit_options
def limit(name: str, *, as_json: bool, **limits: Any) -> None:
    """Replace all limits of a client key. The key stays, and so does what was spent of its budgets.

    \b
      segue keys client limit ada --group backend --budget 80/month
    """
    from segue.cli.gateway_settings import load_client_keys, save_client_keys

    keys = load_client_keys()
    if all(key.name != name for key in keys):
        raise BadInputError(f"there is no client key {name!r}")
    changed = [_build_key(name, key.hash, **limits) if key.name == name else key for key in keys]
    save_client_keys(changed)
    if as_json:
        streams.write(msgspec.json.encode({"changed": name}), b"\n")
    else:
        described = next(", ".join(_describe_limits(key)) for key in changed if key.name == name)
        streams.print_message(f"{name}: {described or 'no limits'}")


def _build_key(
    name: str,
    key_hash: str,
    *,
    models: tuple[str, ...],
    routes: tuple[str, ...],
    requests: int | None,
    tokens: int | None,
    concurrent: int | None,
    budgets: tuple[str, ...],
    groups: tuple[str, ...],
    metrics: bool,
    days: int | None,
) -> ClientKey:
    from segue.cli.gateway_settings import load_settings
    from segue.gateway.client_keys import ClientKey

    if len(groups) > 1:
        raise BadInputError(f"a client key is in one group, not in {' and '.join(groups)}")
    if groups and groups[0] not in load_settings()[0].groups:
        raise BadInputError(
            f"there is no group {groups[0]!r}; add a table [gateway.groups.{groups[0]}] to the configuration"
        )
    try:
        return ClientKey(
            name,
            key_hash,
            models,
            None if days is None else time.time() + days * _DAY,
            routes,
            *groups,
            requests_per_minute=requests,
            tokens_per_minute=tokens,
            concurrent=concurrent,
            budgets=budgets,
            metrics=metrics,
        )
    except ValueError as error:
        raise BadInputError(str(error)) from None


@options.command("revoke", group=client)
@click.argument("name")
def revoke(name: str, *, as_json: bool) -> None:
    """Remove a client key. A running gateway refuses it from its next request on."""
    from segue.cli.gateway_settings import load_client_keys, save_client_keys

    keys = load_client_keys()
    if all(key.name != name for key in keys):
        raise BadInputError(f"there is no client key {name!r}")
    left = [key for key in keys if key.name != name]
    save_client_keys(left)
    if as_json:
        streams.write(msgspec.json.encode({"revoked": name}), b"\n")
    else:
        effect = (
            ""
            if left
            else "; no keys are left: a running gateway admits no client until there is one, or until "
            "segue route --reload where only clients of this machine come"
        )
        streams.print_message(f"revoked {name}{effect}")
