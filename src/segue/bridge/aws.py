"""AWS authentication: Signature Version 4, and credentials from the environment and the AWS configuration files.

`sign` is a pure function. Profiles with static keys are read here; credentials that have to be fetched (single sign-on,
roles, credential processes) are loaded by botocore, if it is installed.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from configparser import ConfigParser, Error
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from msgspec import Struct

from segue.bridge.secret import Secret
from segue.errors import InputError

_DEFAULT_PROFILE = "default"
# A profile with one of these keys gets its credentials by single sign-on, a role or a program.
_EXTERNAL_SOURCE_KEYS = ("sso_session", "sso_start_url", "role_arn", "credential_process", "login_session")


class Credentials(Struct, frozen=True):
    """An AWS access key. Temporary credentials have a session token."""

    key_id: Secret
    secret: Secret
    token: Secret | None = None

    def get(self) -> Credentials:
        return self


def _make_credentials(key_id: str, secret: str, token: str | None) -> Credentials:
    return Credentials(Secret(key_id), Secret(secret), Secret(token) if token else None)


class CredentialSource(Protocol):
    """A source of credentials. `get` may block: expired credentials are fetched again."""

    def get(self) -> Credentials: ...


class BotocoreCredentials:
    """Credentials that botocore loads and refreshes."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def get(self) -> Credentials:
        try:
            frozen = self._credentials.get_frozen_credentials()
        except Exception as error:  # noqa: BLE001  any message of botocore names the remedy (`aws sso login`)
            raise InputError(f"AWS credentials could not be fetched: {' '.join(str(error).split())}") from None
        return _make_credentials(frozen.access_key, frozen.secret_key, frozen.token)


def sign(
    credentials: Credentials,
    *,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: Sequence[bytes],
    region: str,
    service: str,
    now: datetime,
) -> dict[str, str]:
    """Return the headers to add to a request; `headers` are included in the signature. `now` is UTC."""
    parts = urlsplit(url)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    day = stamp[:8]
    added = {"x-amz-date": stamp}
    if credentials.token is not None:
        added["x-amz-security-token"] = credentials.token.reveal()
    signed = {name.lower(): " ".join(value.split()) for name, value in {**headers, **added}.items()}
    signed["host"] = parts.netloc
    names = ";".join(sorted(signed))
    digest = sha256()
    for fragment in body:
        digest.update(fragment)
    canonical = "\n".join(
        (
            method,
            # SigV4 escapes the already escaped path once more.
            quote(parts.path or "/", safe="/-_.~"),
            "&".join(sorted(part for part in parts.query.split("&") if part)),
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            digest.hexdigest(),
        )
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    to_sign = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret.reveal()}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    fields = f"Credential={credentials.key_id.reveal()}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**added, "authorization": f"AWS4-HMAC-SHA256 {fields}"}


# --------------------------------------------------------------------------------------------------- credential sources


def find_credentials(environ: Mapping[str, str]) -> CredentialSource | None:
    """Return the credentials from environment variables, else from the profile in the AWS configuration files."""
    key_id, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if key_id and secret:
        return _make_credentials(key_id, secret, environ.get("AWS_SESSION_TOKEN"))
    profile = _read_profile(environ)
    key_id, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
    if key_id and secret:
        return _make_credentials(key_id, secret, profile.get("aws_session_token"))
    if any(profile.get(name) for name in _EXTERNAL_SOURCE_KEYS):
        return _load_with_botocore(environ)
    return None


def find_region(environ: Mapping[str, str]) -> str | None:
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return region or _read_profile(environ).get("region") or None


def _load_with_botocore(environ: Mapping[str, str]) -> CredentialSource | None:
    name = environ.get("AWS_PROFILE", _DEFAULT_PROFILE)
    try:
        from botocore.session import Session  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise InputError(
            f"the AWS profile {name!r} gets its credentials by single sign-on, a role or a program; "
            "install segue[bedrock] for that, or set AWS_BEARER_TOKEN_BEDROCK"
        ) from None
    session: Any = Session(profile=None if name == _DEFAULT_PROFILE else name)
    credentials: Any = session.get_credentials()
    return None if credentials is None else BotocoreCredentials(credentials)


def _read_profile(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the selected profile merged from both files; the credentials file takes precedence."""
    name = environ.get("AWS_PROFILE") or _DEFAULT_PROFILE
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    settings = _read_ini(environ.get("AWS_CONFIG_FILE") or home / ".aws" / "config")
    keys = _read_ini(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials")
    return {**settings.get(name if name == _DEFAULT_PROFILE else f"profile {name}", {}), **keys.get(name, {})}


def _read_ini(file: str | Path) -> dict[str, dict[str, str]]:
    # In AWS files `default` is an ordinary section, and `%` an ordinary character.
    parser = ConfigParser(default_section="", interpolation=None, strict=False)
    try:
        parser.read_string(Path(file).expanduser().read_text("utf-8"))
    except (OSError, UnicodeDecodeError, Error):
        return {}
    return {section: dict(parser[section]) for section in parser.sections()}
