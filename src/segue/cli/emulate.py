"""`segue emulate`: strict emulated providers on loopback, for tests; recorded and replayed exchanges."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.emulator import Emulator, RecordedRequest


_ALL = "all"


class _Port(click.IntRange):
    name = "port number"


class _ApiOrAll(options.ApiName):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == _ALL else super().convert(value, param, ctx)

    def known_names(self) -> list[str]:
        return [*super().known_names(), _ALL]


@options.command("emulate", json_help="Print JSON lines; requests go to stdout.")
@click.argument("api", type=_ApiOrAll())
@click.option("--port", type=_Port(0, 65535), default=0, metavar="N", help="Port (default: any free one).")
@click.option("--script", type=click.Path(path_type=Path), metavar="FILE", help="Script with the model's replies.")
@click.option("--strict/--lenient", default=True, help="Lenient: answer every request, only report violations.")
@options.profile_option
@click.option("--key", "keys", multiple=True, metavar="K", help="Accept only this key (repeatable; default: any key).")
@click.option("--fault", "faults", multiple=True, metavar="F", help="NAME, NAME=RATE or NAME@2,5; see above.")
@click.option(
    "--stall-seconds",
    "patience",
    default=30.0,
    metavar="S",
    show_default=True,
    help="Duration of slow-start and stall in seconds.",
)
@click.option("--record", type=click.Path(path_type=Path), metavar="DIR", help="Store each exchange with --upstream.")
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    metavar="URL",
    help="The real provider: https, or http on this machine; API=URL for one of all APIs (repeatable).",
)
@click.option("--replay", type=click.Path(path_type=Path), metavar="DIR", help="Answer from the exchanges in DIR.")
@click.option("--seed", default=0, metavar="N", show_default=True, help="Seed for ids, signatures and faults.")
def command(
    api: str,
    *,
    port: int,
    script: Path | None,
    strict: bool,
    profile: str | None,
    keys: tuple[str, ...],
    faults: tuple[str, ...],
    patience: float,
    seed: int,
    record: Path | None,
    upstreams: tuple[str, ...],
    replay: Path | None,
    as_json: bool,
) -> None:
    """Emulate the provider of an API on 127.0.0.1 until interrupted.

    It accepts what the real provider accepts, rejects the rest with the provider's status and error text, and answers
    like a model that uses the declared tools. It prints its address to stdout, then one line for each request to stderr
    (with --json to stdout). With `all` instead of an API, one port serves all of them, each below its own prefix.

    --record passes each request on to --upstream and stores the exchange in DIR, without keys and other secrets.
    --replay answers the same requests from DIR, without a network.

    Faults: rate-limit, no-credit, server-error, overloaded, slow-start, stall, reset, reset-in-stream, cut-arguments,
    repeated-ids, missing-ids, empty-ids, double-finish, wrong-type, no-reply-id, same-reply-id,
    context-length. A bare name applies to every request, NAME=0.2 to one in five, NAME@1,3 to the first and the third.

    \b
      segue emulate anthropic --port 8080
      segue emulate openai-chat --profile groq --fault rate-limit@1
      segue emulate all --port 8080
      segue emulate anthropic --record runs --upstream https://api.anthropic.com
      segue emulate anthropic --replay runs
    """
    import segue.emulator

    stopped = threading.Event()
    failed: list[Exception] = []

    def print_record(record: RecordedRequest) -> None:
        """Print a request. This runs on the emulator's thread, so a write error is passed on to the main thread."""
        try:
            if as_json:
                streams.write(_encode_record(record), b"\n")
            else:
                streams.print_message(_format_record(record, with_api=api == _ALL))
        except (OSError, click.ClickException) as error:
            failed.append(error)
            stopped.set()

    emulator = segue.emulator.start(
        api,
        port=port,
        script=script,
        strict=strict,
        profile=profile,
        keys=keys,
        faults=faults,
        seed=seed,
        patience=patience,
        on_request=print_record,
        record=record,
        upstream=_parse_upstreams(upstreams),
        replay=replay,
    )
    with emulator:
        streams.write(_encode_opening(emulator) if as_json else _format_opening(emulator), b"\n" if as_json else "\n")
        stopped.wait()
    raise failed[0]


def _parse_upstreams(values: tuple[str, ...]) -> str | dict[str, str] | None:
    """Return the URL for all APIs, or the URL of each API; None without any."""
    pairs = [value.partition("=") for value in values]
    if len(values) == 1 and (":" in pairs[0][0] or not pairs[0][1]):
        return values[0]
    by_api = {api: url for api, equals, url in pairs if equals and ":" not in api}
    if len(by_api) != len(values):
        raise click.UsageError("--upstream takes one URL, or one API=URL for each API")
    return by_api or None


def _format_opening(emulator: Emulator) -> str:
    if emulator.api == _ALL:
        lines = [f"{api:18}{base_url}" for api, base_url in emulator.base_urls.items()]
        return "\n".join([f"{_ALL} on {emulator.url}, base URLs for clients below; Ctrl-C stops it", *lines])
    same = emulator.base_url == emulator.url
    base = "the base URL for clients" if same else f"base URL for clients {emulator.base_url}"
    return f"{emulator.api} on {emulator.url}, {base}; Ctrl-C stops it"


def _encode_opening(emulator: Emulator) -> bytes:
    import msgspec

    opening: dict[str, Any] = {"api": emulator.api, "url": emulator.url, "base_url": emulator.base_url}
    return msgspec.json.encode({**opening, "base_urls": emulator.base_urls} if emulator.api == _ALL else opening)


def _format_record(record: RecordedRequest, *, with_api: bool) -> str:
    """Format one request: path, status, violated rules, and the reply."""
    status = record.status or ("closed" if record.unrecorded else "reset")
    parts = [f"{record.number} {record.method} {record.path} {status}"]
    if with_api and record.api:
        parts[0] = f"{parts[0]} ({record.api})"
    if record.unrecorded:
        parts.append(f"not recorded: {record.unrecorded}")
    elif record.recording:
        parts.append(record.recording)
    if record.fault:
        parts.append(f"fault: {record.fault}")
    rejected = list(dict.fromkeys(v.rule for v in record.violations if v.severity == "reject"))
    risky = list(dict.fromkeys(v.rule for v in record.violations if v.severity == "risk"))
    if rejected:
        parts.append(f"violates {', '.join(rejected)}")
    if risky:
        parts.append(f"risks {', '.join(risky)}")
    if record.refused:
        parts.append(record.refused)
    elif record.confused:
        parts.append("the model was confused by the tool call ids")
    elif record.calls:
        parts.append(f"calls {', '.join(record.calls)}")
    elif record.text:
        parts.append(f"text {record.text!r}")
    return streams.one_line("; ".join(parts))


def _encode_record(record: RecordedRequest) -> bytes:
    import msgspec

    return msgspec.json.encode(record)
