"""The environment of child processes: all variables except secrets.

A variable is a secret by its name, by the form of its value, or because its value contains that of another secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from segue.scrubbing import SHAPES

__all__ = ["child_environment", "is_worth_hiding", "secret_names"]

_NAMES = (
    "*API_KEY*",
    "*APIKEY*",
    "*ACCESS_KEY*",
    "*PRIVATE_KEY*",
    "*SECRET_KEY*",
    "*KEY",
    "*KEYS",
    "*_SK",
    "*_PW",
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "*PASS",
    "*PWD",
    "*CREDENTIAL*",
    "*CREDS",
    "*CONNECTION_STRING*",
    "*_DSN",
    "*_PAT",
    "*BEARER*",
    "*_AUTH",
    "*COOKIE*",
    "AWS_*",
    "PGPASSWORD",
    "PGPASSFILE",
)
# Not secrets: folders, and programs that prompt for a password.
_NO_SECRETS = ("PWD", "OLDPWD", "*ASKPASS", "*BYPASS")
# `postgres://user:password@host`
_PASSWORD_IN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)
_KEY = re.compile(r"\b[sp]k[-_][A-Za-z0-9_-]{8,}")
_PRIVATE_KEY = "PRIVATE KEY-----"
_SHORTEST = 8


def secret_names(environ: Mapping[str, str], *, keys: Iterable[str] = ()) -> frozenset[str]:
    """The names of variables that hold secrets. `keys` are names that always count as secret."""
    known = set(keys)
    names = {name for name, value in environ.items() if name in known or _is_secret(name, value)}
    values = {environ[name] for name in names if len(environ[name]) >= _SHORTEST}
    # Also variables that contain the key as part of a header or URL.
    names |= {name for name, value in environ.items() if any(secret in value for secret in values)}
    return frozenset(names)


def _is_secret(name: str, value: str) -> bool:
    upper = name.upper()
    return (
        (_fits(upper, _NAMES) and not _fits(upper, _NO_SECRETS))
        or _PASSWORD_IN_ADDRESS.search(value) is not None
        or _PRIVATE_KEY in value
        or _KEY.search(value) is not None
        or any(shape.search(value) for shape in SHAPES.values())
    )


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_worth_hiding(name: str, value: str) -> bool:
    """Whether the value should be masked in tool output. Short values, paths and AWS settings are not."""
    upper = name.upper()
    is_setting = upper.startswith("AWS_") and not _fits(upper, [pattern for pattern in _NAMES if pattern != "AWS_*"])
    return len(value) >= _SHORTEST and not value.startswith(("/", "~", "./")) and not is_setting


def child_environment(
    environ: Mapping[str, str] | None = None, *, keep: Collection[str] = (), keys: Iterable[str] = ()
) -> dict[str, str]:
    """The environment for a shell or an MCP server. `keep` are name patterns of secrets that it may have."""
    given = os.environ if environ is None else environ
    secrets = secret_names(given, keys=keys)
    return {
        name: value
        for name, value in given.items()
        if name not in secrets or any(fnmatchcase(name, pattern) for pattern in keep)
    }
