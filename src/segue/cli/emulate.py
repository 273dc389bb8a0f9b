"""`segue emulate`: a strict emulated provider on loopback, for tests."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.emulator import Emulator, RecordedRequest


class _Port(click.IntRange):
    name = "port number"


@options.command("emulate", json_help="Print JSON lines; requests go to stdout.")
@click.argument("api", type=options.API)
@click.option("--port", type=_Port(0, 65535), default=0, metavar="N", help="Port (default: any free one).")
@click.option("--script", type=click.Path(path_type=Path), metavar="FILE", help="Script with the model's replies.")
@click.option("--strict/--lenient", default=True, help="Lenient: answer every request, only report violations.")
@options.profile_option
@click.option("--key", "keys", multiple=True, metavar="K", help="Accept only this key (repeatable; default: any key).")
@click.option("--fault", "faults", multiple=True, metavar="F", help="NAME, NAME=RATE or NAME@2,5; see above.")
@click.option(
    "--patience", default=30.0, metavar="S", show_default=True, help="Duration of slow-start and stall in seconds."
)
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
    as_json: bool,
) -> None:
    """Emulate the provider of an API on 127.0.0.1 until interrupted.

    It accepts what the real provider accepts, rejects the rest with the provider's status and error text, and answers
    like a model that uses the declared tools. It prints its address to stdout, then one line for each request to stderr
    (with --json to stdout).

    Faults: rate-limit, server-error, overloaded, slow-start, stall, reset, reset-in-stream, cut-arguments,
    repeated-ids, missing-ids, double-finish, wrong-type, no-reply-id, same-reply-id, context-length. A bare name
    applies to every request, NAME=0.2 to one in five, NAME@1,3 to the first and the third.

    \b
      segue emulate anthropic --port 8080
      segue emulate openai-chat --profile groq --fault rate-limit@1
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
                streams.print_message(_format_record(record))
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
    )
    with emulator:
        streams.write(_encode_opening(emulator) if as_json else _format_opening(emulator), b"\n" if as_json else "\n")
        stopped.wait()
    raise failed[0]


def _format_opening(emulator: Emulator) -> str:
    same = emulator.base_url == emulator.url
    base = "the base URL for clients" if same else f"base URL for clients {emulator.base_url}"
    return f"{emulator.api} on {emulator.url}, {base}; Ctrl-C stops it"


def _encode_opening(emulator: Emulator) -> bytes:
    import msgspec

    return msgspec.json.encode({"api": emulator.api, "url": emulator.url, "base_url": emulator.base_url})


def _format_record(record: RecordedRequest) -> str:
    """Format one request: path, status, violated rules, and the reply."""
    parts = [f"{record.number} {record.method} {record.path} {record.status or 'reset'}"]
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
