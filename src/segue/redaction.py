"""Redacts secrets in text that is shown to others: provider keys, tokens, passwords in URLs.

The patterns are tuned to redact too much rather than too little. Redacting twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast

_Parts: TypeAlias = "dict[str, _Parts]"

# The separator between a field name and its value in JSON, headers, config files and shells.
_SEPARATOR = r"[\"'\\]*\s*[:=]\s*[\"'\\]*"

# Name and pattern. With a group `secret`, only that is replaced. Patterns that may contain others come first.
_PATTERNS: dict[str, str] = {
    "private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*"
    r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
    "password": r"://[^\s/:@\"'<>]*:(?P<secret>[^\s/@\"'<>]+)(?=@)",
    "authorisation": r"(?i:authorization"
    + _SEPARATOR
    + r"(?:bearer|basic|token|aws4-hmac-sha256)?\s*(?P<secret>(?!(?:bearer|basic|token|aws4)\b)[^\s\"'\\,;}\[]{8,}))",
    "cookie": r"(?i:\bcookie)" + _SEPARATOR + r"(?P<secret>[^\s\"'\\;,=\[]{1,80}=[^\s\"'\\][^\"'\\\r\n]*)",
    "bearer token": r"(?i:\b(?:bearer|basic))\s+(?P<secret>(?=\S*\d)[A-Za-z0-9+/_.~=\-]{12,})",
    "token": r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?",
    "Anthropic key": r"\bsk-ant-[A-Za-z0-9_\-]{8,}",
    "OpenRouter key": r"\bsk-or-[A-Za-z0-9_\-]{8,}",
    # OpenAI, DeepSeek, Moonshot and DashScope.
    "API key": r"\bsk-[A-Za-z0-9_\-]{16,}",
    "Google key": r"\bAIza[A-Za-z0-9_\-]{30,}",
    "Google token": r"\bya29\.[A-Za-z0-9_\-]{16,}|\bAQ\.[A-Za-z0-9_\-]{20,}",
    "AWS key id": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    "Bedrock key": r"\bABSK[A-Za-z0-9+/=]{20,}|\bbedrock-api-key-[A-Za-z0-9+/=_\-]{16,}",
    "AWS secret": r"(?i:aws_?(?:secret_?access_?key|session_?token))" + _SEPARATOR + r"(?P<secret>[A-Za-z0-9+/=]{20,})",
    "Groq key": r"\bgsk_[A-Za-z0-9]{16,}",
    "xAI key": r"\bxai-[A-Za-z0-9_\-]{16,}",
    "Hugging Face token": r"\bhf_[A-Za-z0-9]{16,}",
    "Fireworks key": r"\bfw_[A-Za-z0-9]{16,}",
    "Cerebras key": r"\bcsk-[A-Za-z0-9]{16,}",
    "Perplexity key": r"\bpplx-[A-Za-z0-9]{16,}",
    "NVIDIA key": r"\bnvapi-[A-Za-z0-9_\-]{16,}",
    "Replicate token": r"\br8_[A-Za-z0-9]{16,}",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
    "GitLab token": r"\bglpat-[A-Za-z0-9_\-]{16,}",
    "Slack token": r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}",
    "Stripe key": r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}",
    "npm token": r"\bnpm_[A-Za-z0-9]{30,}",
    "PyPI token": r"\bpypi-[A-Za-z0-9_\-]{16,}",
    # Signed URLs of S3, Google and Azure.
    "signature": r"(?i:[?&][\w.\-]{0,40}(?:sig(?:nature)?|credential|key|token|secret|passw(?:or)?d|pwd|auth))"
    r"=(?P<secret>[^&\s\"'<>\\\[]{8,})",
    # Command-line options: the value follows the option, or is the next item of a list.
    "option": r"-(?<![\w\-]-)(?:(?i:-?(?:[a-z0-9]+[_\-]){0,4}(?:passw(?:or)?d|pass|pwd|passphrase"
    r"|token|secret|api[_\-]?key|(?:secret|access|account)[_\-]?key|cookie))[\"'\\]*[\s,]+[\"'\\]*(?P<secret>(?![\[\-])[^\s\"'\\,;]{8,})"
    r"|(?:u|-user|-proxy-user)[\"'\\]*[\s,=]+[\"'\\]*[^\s\"'\\:\[]{1,80}:(?P<other>(?!\[)[^\s\"'\\]+))",
    # Keys without a distinctive pattern (Mistral, Azure, Cohere) are found by the name before them.
    "secret": r"(?i:token|passw(?:or)?d|pwd|passphrase|secret"
    r"|(?:(?<=api)|(?<=api[_\-])|(?<=secret)|(?<=secret[_\-])|(?<=account)|(?<=account[_\-])|(?<=subscription)"
    r"|(?<=subscription[_\-]))key)" + _SEPARATOR + r"(?P<secret>(?!\[)[^\s\"'\\,;}&<>()]{8,})",
}
_NAME_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:token|secrets?|passw(?:or)?ds?|pwd|passphrase|authori[sz]ation|cookies?|credentials?|api_?keys?"
    r"|(?:access|account|client|encryption|master|private|secret|shared|signing|subscription)_keys?)$"
)
SECRET_PATTERNS: dict[str, re.Pattern[str]] = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}


def redact(text: str) -> str:
    """Replace each secret in the text by `[name removed]`."""
    folded = text.casefold()
    found = frozenset(_find_parts(folded, _PARTS))
    if not found:
        return text
    for name, parts in _BEGINNINGS.items():
        if not found.isdisjoint(parts):
            redacted = _redact_one(text, folded, name, parts)
            if redacted != text:
                text, folded = redacted, redacted.casefold()
    return text


def _find_parts(folded: str, parts: _Parts) -> Iterator[str]:
    for part, longer in parts.items():
        if part in folded:
            yield part
            yield from _find_parts(folded, longer)


def _redact_one(text: str, folded: str, name: str, parts: Sequence[str]) -> str:
    """Replace the secrets of one name: those that begin where one of the parts is."""
    pattern, replace = SECRET_PATTERNS[name], partial(_replace_secret, name)
    if name in _SEARCHED or len(folded) != len(text):
        return pattern.sub(replace, text)
    pieces: list[str] = []
    end = 0
    for start in sorted([match.start() for part in parts for match in re.finditer(re.escape(part), folded)]):
        if start >= end and (match := pattern.match(text, start)):
            pieces += [text[end:start], replace(match)]
            end = match.end()
    return "".join((*pieces, text[end:]))


_redact_name = lru_cache(maxsize=1024)(redact)
"""For the names of fields, which repeat in every message and event."""


def find_secrets(text: str) -> list[tuple[int, int, str]]:
    """Return the start, the end and the name of each secret in the text, in order and without overlaps."""
    found: list[tuple[int, int, str]] = []
    for name, pattern in SECRET_PATTERNS.items():
        for match in pattern.finditer(text):
            group = next((key for key in match.re.groupindex if match[key] is not None), 0)
            found.append((*match.span(group), name))
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(found, key=lambda span: span[:2]):
        if merged and start < merged[-1][1]:
            first, last, kept = merged[-1]
            merged[-1] = first, max(last, end), kept
        else:
            merged.append((start, end, name))
    return merged


def _replace_secret(name: str, match: re.Match[str]) -> str:
    placeholder = f"[{name} removed]"
    group = next((key for key in match.re.groupindex if match[key] is not None), None)
    if group is None:
        return placeholder
    start, end = (position - match.start() for position in match.span(group))
    return match[0][:start] + placeholder + match[0][end:]


# What a match begins with, in lower case: most texts have none of these, which is found out faster.
_BEGINNINGS: dict[str, tuple[str, ...]] = {
    "private key": ("-----begin",),
    "password": ("://",),
    "authorisation": ("authorization",),
    "cookie": ("cookie",),
    "bearer token": ("bearer", "basic"),
    "token": ("eyj",),
    "Anthropic key": ("sk-ant-",),
    "OpenRouter key": ("sk-or-",),
    "API key": ("sk-",),
    "Google key": ("aiza",),
    "Google token": ("ya29.", "aq."),
    "AWS key id": ("akia", "asia", "abia", "acca"),
    "Bedrock key": ("absk", "bedrock-api-key-"),
    "AWS secret": ("aws",),
    "Groq key": ("gsk_",),
    "xAI key": ("xai-",),
    "Hugging Face token": ("hf_",),
    "Fireworks key": ("fw_",),
    "Cerebras key": ("csk-",),
    "Perplexity key": ("pplx-",),
    "NVIDIA key": ("nvapi-",),
    "Replicate token": ("r8_",),
    "GitHub token": (*(f"gh{kind}_" for kind in "pousr"), "github_pat_"),
    "GitLab token": ("glpat-",),
    "Slack token": ("xox",),
    "Stripe key": tuple(f"{kind}k_{place}_" for kind in "rsp" for place in ("live", "test")),
    "npm token": ("npm_",),
    "PyPI token": ("pypi-",),
    "signature": ("sig", "credential", "key", "token", "secret", "passw", "pwd", "auth"),
    "option": ("pass", "pwd", "token", "secret", "key", "cookie", "-u", "--user", "--proxy-user"),
    "secret": ("key", "secret", "token", "passw", "pwd", "passphrase"),
}
_SEARCHED = frozenset({"signature", "option"})
"""Their matches hold one of these texts, but do not begin with it."""


def _nest_parts(parts: Iterable[str]) -> _Parts:
    """Nest each part below one that it contains: it is searched for only where that was found."""
    nested: _Parts = {}
    for part in sorted(parts, key=len):
        inner = nested
        while shorter := next((other for other in inner if other in part), None):
            inner = inner[shorter]
        inner[part] = {}
    return nested


_PARTS = _nest_parts({"_", "-", ".", ":", *(part for parts in _BEGINNINGS.values() for part in parts)})


def redact_values(value: Any) -> Any:
    """Redact every string in a JSON value, and the whole value of a field whose name marks a secret."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        entry_name = _entry_name(fields)
        return {
            _redact_name(key): _redact_field(entry_name if key == "value" and entry_name else key, inner)
            for key, inner in fields.items()
        }
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [_redact_item(before, inner) for before, inner in zip([None, *items], items, strict=False)]
    return value


def _entry_name(fields: dict[str, Any]) -> str | None:
    """Return the name of a name/value entry, as in lists of headers, cookies and variables."""
    return next((name for key in ("name", "key") if isinstance(name := fields.get(key), str)), None)


def _redact_item(before: Any, value: Any) -> Any:
    """Redact an item of a list, which may be the value of the command-line option before it."""
    if isinstance(before, str) and isinstance(value, str) and before.startswith("-"):
        redacted = redact(f"{before} {value}")
        return redacted[len(before) + 1 :] if redacted.startswith(f"{before} ") else redact(value)
    return redact_values(value)


def _redact_field(key: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [_redact_entry(key, item) for item in items] if is_secret_name(key) else redact_values(items)
    if not isinstance(value, str):
        return redact_values(value)
    before = f"{key}: "
    redacted = redact(before + value)
    redacted = redacted[len(before) :] if redacted.startswith(before) else redact(value)
    return "[secret removed]" if redacted == value and is_secret_name(key) and is_redactable(value) else redacted


def _redact_entry(key: str, value: Any) -> Any:
    """Redact one of several secrets, which may be a name/value entry with other fields."""
    if not isinstance(value, dict):
        return _redact_field(key, value)
    fields = cast("dict[str, Any]", value)
    hidden = {"value": _redact_field(key, fields["value"])} if "value" in fields else {}
    return {**redact_values(fields), **hidden}


def is_secret_name(name: str) -> bool:
    """Return whether a field of this name holds a secret, in any naming style."""
    return _SECRET_NAME.search("_".join(_NAME_TOKEN.findall(name)).lower()) is not None


def is_redactable(value: object) -> bool:
    """Return whether there is a value to redact: not empty, not a boolean, not redacted already."""
    return value not in (None, "", (), [], {}) and not isinstance(value, bool) and not _is_removed(value)


def _is_removed(value: object) -> bool:
    return isinstance(value, str) and " removed]" in value
