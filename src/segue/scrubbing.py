"""Secrets out of a text, so that it can be shown to others: keys of every provider, tokens, passwords in addresses.

A table of shapes. Rather a word too many than a key: whatever looks like one is replaced, and the rest of the text
stays as it is. Scrubbing twice changes nothing.
"""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["SHAPES", "holds_secret", "names_secret", "scrub", "scrub_values"]

# Between the name of a field and its value, as JSON, headers, settings and shells write it.
_IS = r"[\"'\\]*\s*[:=]\s*[\"'\\]*"

# What it is, and its shape. Where there is a group `secret`, only that goes. What may hold another comes first.
_TABLE: dict[str, str] = {
    "private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*"
    r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
    "password": r"(?<=://)[^\s/:@\"'<>]*:(?P<secret>[^\s/@\"'<>]+)(?=@)",
    "authorisation": r"(?i:authorization"
    + _IS
    + r"(?:bearer|basic|token|aws4-hmac-sha256)?\s*(?P<secret>(?!(?:bearer|basic|token|aws4)\b)[^\s\"'\\,;}\[]{6,}))",
    "cookie": r"(?i:(?:\bset-|\b)cookie)" + _IS + r"(?P<secret>[^\s\"'\\;,=\[]{1,80}=[^\s\"'\\][^\"'\\\r\n]*)",
    "bearer token": r"(?i:\b(?:bearer|basic))\s+(?P<secret>(?=\S*\d)[A-Za-z0-9+/_.~=\-]{12,})",
    "token": r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?",
    "Anthropic key": r"\bsk-ant-[A-Za-z0-9_\-]{8,}",
    "OpenRouter key": r"\bsk-or-[A-Za-z0-9_\-]{8,}",
    # OpenAI's, DeepSeek's, Moonshot's and DashScope's alike.
    "API key": r"\bsk-[A-Za-z0-9_\-]{16,}",
    "Google key": r"\bAIza[A-Za-z0-9_\-]{30,}",
    "Google token": r"\bya29\.[A-Za-z0-9_\-]{16,}|\bAQ\.[A-Za-z0-9_\-]{20,}",
    "AWS key id": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    "Bedrock key": r"\bABSK[A-Za-z0-9+/=]{20,}|\bbedrock-api-key-[A-Za-z0-9+/=_\-]{16,}",
    "AWS secret": r"(?i:aws_?(?:secret_?access_?key|session_?token))" + _IS + r"(?P<secret>[A-Za-z0-9+/=]{20,})",
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
    # Signed addresses: S3's, Google's, Azure's.
    "signature": r"(?i:[?&][\w.\-]{0,40}(?:sig(?:nature)?|credential|key|token|secret|passw(?:or)?d|pwd|auth))"
    r"=(?P<secret>[^&\s\"'<>\\\[]{6,})",
    # What a shell gives a program: the value stands behind the option, or is the next one in a list.
    "option": r"(?i:(?<![\w\-])--?(?:[a-z0-9]+[_\-]){0,4}(?:passw(?:or)?d|pass|pwd|passphrase|token|secret|api[_\-]?key"
    r"|(?:secret|access|account)[_\-]?key|cookie))[\"'\\]*[\s,]+[\"'\\]*(?P<secret>(?![\[\-])[^\s\"'\\,;]{4,})"
    r"|(?<![\w\-])(?:-u|--user|--proxy-user)[\"'\\]*[\s,=]+[\"'\\]*[^\s\"'\\:\[]{1,80}:(?P<other>(?!\[)[^\s\"'\\]+)",
    # Keys without a shape of their own (Mistral's, Azure's, Cohere's) are known by the name before them.
    "secret": r"(?i:api[_\-]?key|secret(?:[_\-]?key)?|token|passw(?:or)?d"
    r"|pwd|passphrase|(?:account|subscription)[_\-]?key)" + _IS + r"(?P<secret>(?!\[)[^\s\"'\\,;}&<>()]{6,})",
}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAMES = re.compile(
    r"(?:^|_)(?:token|secrets?|passw(?:or)?ds?|pwd|passphrase|authori[sz]ation|cookies?|credentials?|api_?keys?"
    r"|(?:access|account|client|encryption|master|private|secret|shared|signing|subscription)_keys?)$"
)
SHAPES: dict[str, re.Pattern[str]] = {name: re.compile(shape) for name, shape in _TABLE.items()}


def scrub(text: str) -> str:
    """The text with `[name removed]` in the place of each secret."""
    for name, shape in SHAPES.items():
        text = shape.sub(lambda found, name=name: _without(found, name), text)
    return text


def _without(found: re.Match[str], name: str) -> str:
    instead = f"[{name} removed]"
    group = next((name for name in found.re.groupindex if found[name] is not None), None)
    if group is None:
        return instead
    start, end = (place - found.start() for place in found.span(group))
    return found[0][:start] + instead + found[0][end:]


def scrub_values(value: Any) -> Any:
    """A JSON value with every text in it scrubbed; and whole, where the name of a field says that it is a secret."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        named = _named(fields)
        return {scrub(key): _field(named if key == "value" and named else key, inner) for key, inner in fields.items()}
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [_item(before, inner) for before, inner in zip([None, *items], items, strict=False)]
    return value


def _named(fields: dict[str, Any]) -> str | None:
    """What an entry is the value of, as lists of headers, cookies and variables write it."""
    return next((name for key in ("name", "key") if isinstance(name := fields.get(key), str)), None)


def _item(before: Any, value: Any) -> Any:
    """An entry of a list: the value of an option may stand behind it."""
    if isinstance(before, str) and isinstance(value, str) and before.startswith("-"):
        told = scrub(f"{before} {value}")
        return told[len(before) + 1 :] if told.startswith(f"{before} ") else scrub(value)
    return scrub_values(value)


def _field(key: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [_entry(key, item) for item in items] if names_secret(key) else scrub_values(items)
    if not isinstance(value, str):
        return scrub_values(value)
    before = f"{key}: "
    told = scrub(before + value)
    told = told[len(before) :] if told.startswith(before) else scrub(value)
    return "[secret removed]" if told == value and names_secret(key) and holds_secret(value) else told


def _entry(key: str, value: Any) -> Any:
    """One of several secrets: it may have its own name, and others beside it."""
    if not isinstance(value, dict):
        return _field(key, value)
    fields = cast("dict[str, Any]", value)
    hidden = {"value": _field(key, fields["value"])} if "value" in fields else {}
    return {**scrub_values(fields), **hidden}


def names_secret(name: str) -> bool:
    """Whether a field of this name holds a secret, however the name is spelled."""
    return _NAMES.search("_".join(_WORDS.findall(name)).lower()) is not None


def holds_secret(value: object) -> bool:
    """Whether anything is there to hide. A switch is none."""
    return value not in (None, "", (), [], {}) and not isinstance(value, bool) and not _is_removed(value)


def _is_removed(value: object) -> bool:
    return isinstance(value, str) and " removed]" in value
