"""`segue route MODEL`: changes the model of a running gateway."""

from __future__ import annotations

import hmac
import http.client
import secrets
import ssl
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import msgspec

from segue.cli import options, streams
from segue.cli.streams import BadInputError

if TYPE_CHECKING:
    from segue.gateway.gateway_record import GatewayRecord

_TIMEOUT = 10.0
_MAX_ANSWER = 2**20
_HTTP_OK = 200
_THIS_MACHINE = "localhost"


@options.command("route", json_help="Print the gateway's answer as JSON.")
@click.argument("models", nargs=-1, metavar="[MODEL…]")
@click.option("--reload", "reloads", is_flag=True, help="Load the configuration again.")
@click.option("--reset", is_flag=True, help="Use the gateway's own routes again.")
@click.option("--url", metavar="URL", help="The gateway (default: the one that was started last).")
def command(*, models: tuple[str, ...], reloads: bool, reset: bool, url: str | None, as_json: bool) -> None:
    """Change the model of a running gateway; without MODEL, show its models.

    The next request of every client goes to the first model, and to the others if it fails. Requests that are being
    answered stay where they are.

    \b
      segue route anthropic/claude-sonnet-5
      segue route --reset
    """
    if sum((bool(models), reloads, reset)) > 1:
        raise click.UsageError("MODEL, --reload and --reset can't be combined")
    run, connection = _find(url)
    with closing(connection):
        if models or reset:
            answer = _call(run, connection, "POST", "/segue/route", {"models": models})
        elif reloads:
            answer = _call(run, connection, "POST", "/segue/route", {"reload": True})
        else:
            answer = _call(run, connection, "GET", "/segue/status")
    if as_json:
        streams.write(msgspec.json.encode(answer), b"\n")
    else:
        streams.write(_format(run.url, answer))


def _format(url: str, answer: Mapping[str, Any]) -> str:
    """Return the models that serve names without a provider, in their order, then the other ones of the routes."""
    in_force: Sequence[str] = answer.get("in_force", answer.get("models", ()))
    others = [name for name in answer.get("models", ()) if name not in in_force]
    text = f"{url}: {', '.join(in_force) or 'its own routes'}\n"
    text += f"  also served: {', '.join(others)}\n" if others else ""
    text += f"  in the conversation answered last, {answer['switch']}\n" if answer.get("switch") else ""
    unused: Sequence[str] = answer.get("needs_restart", ())
    return f"{text}  changed, but used after a restart only: {', '.join(unused)}\n" if unused else text


def _find(url: str | None) -> tuple[GatewayRecord, http.client.HTTPConnection]:
    """Return the newest gateway that answers, and a connection to it; only there its token may be sent."""
    from segue.gateway.gateway_record import find_running

    running = find_running()
    if url is not None:
        wanted = _find_address(url)
        running = [run for run in running if wanted is not None and _find_address(run.url) == wanted]
    if not running:
        raise BadInputError("no gateway is running" if url is None else f"no gateway of yours is running on {url}")
    errors: list[BadInputError] = []
    for run in running:
        try:
            return run, _open(run)
        except BadInputError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise
            errors.append(error)
    raise errors[0]


def _open(run: GatewayRecord) -> http.client.HTTPConnection:
    """Return a connection to a gateway; `BadInputError` if the other side does not know its token."""
    from segue.gateway.gateway_record import NONCE_HEADER, prove_token

    connection, nonce = _connect(run), secrets.token_hex(16)
    with ExitStack() as stack:
        stack.callback(connection.close)
        _, proof = _request(run, connection, "GET", "/healthz", {NONCE_HEADER: nonce})
        if not hmac.compare_digest(proof, prove_token(run.token, nonce).encode()):
            raise BadInputError(f"the server on {run.url} is not the gateway that was started there: its token differs")
        # Another connection could lead elsewhere.
        connection.auto_open = 0
        stack.pop_all()
    return connection


def _find_address(url: str) -> tuple[str, int] | None:
    """Return the host and port of a URL, which may be without scheme or with a path; None if it has none.

    All names of this machine are one host.
    """
    from segue.bridge.addresses import is_local

    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    default = 443 if parts.scheme == "https" else 80
    return _THIS_MACHINE if is_local(text) else parts.hostname, default if port is None else port


def _call(
    run: GatewayRecord,
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    data = b"" if body is None else msgspec.json.encode(body)
    status, content = _request(run, connection, method, path, {"authorization": f"Bearer {run.token}"}, data)
    try:
        answer = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInputError(f"the gateway on {run.url} does not answer: {error}") from None
    if status != _HTTP_OK:
        error = answer.get("error")
        raise BadInputError(error if isinstance(error, str) else f"the gateway answered with {status}")
    return answer


def _request(
    run: GatewayRecord,
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> tuple[int, bytes]:
    try:
        # The address may be one that is not among the hosts of the gateway.
        connection.request(method, path, body, {"host": "localhost", **headers})
        response = connection.getresponse()
        return response.status, response.read(_MAX_ANSWER)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise BadInputError(f"the gateway on {run.url} does not answer: {error}") from error


def _connect(run: GatewayRecord) -> http.client.HTTPConnection:
    """Return a connection to a gateway. With TLS, it must have the certificate of its record; names do not count."""
    parts = urlsplit(run.url)
    try:
        if parts.scheme != "https":
            return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
        context = ssl.create_default_context(cafile=run.certificate)
    except http.client.InvalidURL as error:
        raise BadInputError(f"the gateway on {run.url} does not answer: {error}") from None
    except OSError as error:
        raise BadInputError(f"can't read {run.certificate}: {streams.format_os_error(error)}") from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT, context=context)
