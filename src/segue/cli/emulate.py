"""`segue emulate`: a strict provider on loopback, for one's own tests."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.emulator import Emulator, Recorded


class _Port(click.IntRange):
    name = "port number"


@options.command("emulate", json_help="Each line as a JSON value, requests on stdout.")
@click.argument("api", type=options.FORMAT)
@click.option("--port", type=_Port(0, 65535), default=0, metavar="N", help="The port; any free one if left out.")
@click.option("--script", type=click.Path(path_type=Path), metavar="FILE", help="What the model says, turn by turn.")
@click.option("--strict/--lenient", default=True, help="Lenient: answer whatever comes, and only say what is wrong.")
@options.profile_option
@click.option("--key", "keys", multiple=True, metavar="K", help="The only key let in (repeatable); else any is.")
@click.option("--fault", "faults", multiple=True, metavar="F", help="NAME, NAME=RATE or NAME@2,5; see above.")
@click.option("--patience", default=30.0, metavar="S", show_default=True, help="Seconds of slow-start and stall.")
@click.option("--seed", default=0, metavar="N", show_default=True, help="Ids, seals and faults follow from it.")
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
    """Be the provider of API on 127.0.0.1, until interrupted.

    It takes what the real one takes, refuses what it refuses with its own status and words, and answers as a model
    that uses the declared tools. The first line on stdout says where it listens; then a line on stderr for each
    request, with --json on stdout.

    Faults: rate-limit, server-error, overloaded, slow-start, stall, reset, reset-in-stream, cut-arguments,
    repeated-ids, missing-ids, double-finish, wrong-type. A bare name strikes every request, NAME=0.2 one in
    five, NAME@1,3 the first and the third.

    \b
      segue emulate anthropic --port 8080
      segue emulate openai-chat --profile groq --fault rate-limit@1
    """
    import segue.emulator

    over = threading.Event()
    failed: list[Exception] = []

    def told(record: Recorded) -> None:
        """On the emulator's thread: what can't be written ends the command, on its own."""
        try:
            if as_json:
                streams.write(_as_json(record), b"\n")
            else:
                streams.say(_line(record))
        except (OSError, click.ClickException) as error:
            failed.append(error)
            over.set()

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
        told=told,
    )
    with emulator:
        streams.write(_opening_json(emulator) if as_json else _opening(emulator), b"\n" if as_json else "\n")
        over.wait()
    raise failed[0]


def _opening(emulator: Emulator) -> str:
    same = emulator.base_url == emulator.url
    base = "the base URL for clients" if same else f"base URL for clients {emulator.base_url}"
    return f"{emulator.api} on {emulator.url}, {base}; Ctrl-C ends it"


def _opening_json(emulator: Emulator) -> bytes:
    import msgspec

    return msgspec.json.encode({"api": emulator.api, "url": emulator.url, "base_url": emulator.base_url})


def _line(record: Recorded) -> str:
    """One request: what was asked, what came of it, and why."""
    parts = [f"{record.number} {record.method} {record.path} {record.status or 'reset'}"]
    if record.fault:
        parts.append(f"fault: {record.fault}")
    rejected = list(dict.fromkeys(v.rule for v in record.violations if v.severity == "reject"))
    risky = list(dict.fromkeys(v.rule for v in record.violations if v.severity == "risk"))
    if rejected:
        parts.append(f"breaks {', '.join(rejected)}")
    if risky:
        parts.append(f"risks {', '.join(risky)}")
    if record.refused:
        parts.append(record.refused)
    elif record.confused:
        parts.append("the model was led astray by the ids")
    elif record.calls:
        parts.append(f"calls {', '.join(record.calls)}")
    elif record.text:
        parts.append(f"says {record.text!r}")
    return streams.one_line("; ".join(parts))


def _as_json(record: Recorded) -> bytes:
    import msgspec

    return msgspec.json.encode(record)
