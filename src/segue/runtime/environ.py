"""The environment of child processes: all variables except secrets.

A variable is a secret by its name, by the form of its value, or because its value contains that of another secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from segue.redaction import SECRET_PATTERNS

_SECRET_NAMES = (
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
_NOT_SECRET_NAMES = ("PWD", "OLDPWD", "*ASKPASS", "*BYPASS")
# `postgres://user:password@host`
_PASSWORD_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)
_API_KEY = re.compile(r"\b[sp]k[-_][A-Za-z0-9_-]{8,}")
_PRIVATE_KEY = "PRIVATE KEY-----"
_MIN_SECRET_LENGTH = 8


def secret_variables(environ: Mapping[str, str], *, keys: Iterable[str] = ()) -> frozenset[str]:
    """Return the names of variables that hold secrets. `keys` are names that always count as secret."""
    return _find_secrets(tuple(environ.items()), frozenset(keys))


# Cached, because every tool call needs the secrets of the same environment.
@lru_cache(maxsize=4)
def _find_secrets(variables: tuple[tuple[str, str], ...], always_secret: frozenset[str]) -> frozenset[str]:
    secrets = {name: value for name, value in variables if name in always_secret or _is_secret(name, value)}
    values = {value for value in secrets.values() if len(value) >= _MIN_SECRET_LENGTH}
    # Also variables that contain the key as part of a header or URL.
    containing = {name for name, value in variables if any(secret in value for secret in values)}
    return frozenset(secrets) | containing


def _is_secret(name: str, value: str) -> bool:
    upper = name.upper()
    return (
        (_matches_any(upper, _SECRET_NAMES) and not _matches_any(upper, _NOT_SECRET_NAMES))
        or _PASSWORD_IN_URL.search(value) is not None
        or _PRIVATE_KEY in value
        or _API_KEY.search(value) is not None
        or any(shape.search(value) for shape in SECRET_PATTERNS.values())
    )


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_maskable(name: str, value: str) -> bool:
    """Return whether the value should be masked in tool output. Short values, paths and AWS settings are not."""
    upper = name.upper()
    is_setting = upper.startswith("AWS_") and not _matches_any(
        upper, [pattern for pattern in _SECRET_NAMES if pattern != "AWS_*"]
    )
    return len(value) >= _MIN_SECRET_LENGTH and not value.startswith(("/", "~", "./")) and not is_setting


def child_environment(
    environ: Mapping[str, str] | None = None, *, keep: Collection[str] = (), keys: Iterable[str] = ()
) -> dict[str, str]:
    """Return the environment for a shell or an MCP server. `keep` are name patterns of secrets that it may have."""
    variables = dict(os.environ) if environ is None else environ
    secrets = secret_variables(variables, keys=keys)
    return {
        name: value
        for name, value in variables.items()
        if name not in secrets or any(fnmatchcase(name, pattern) for pattern in keep)
    }
