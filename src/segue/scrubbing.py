"""Secrets out of a text, so that it can be shown to others: keys of every provider, tokens, passwords in addresses.

A table of shapes. Rather a word too many than a key: whatever looks like one is replaced, and the rest of the text stays
as it is. Scrubbing twice changes nothing.
"""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["SHAPES", "scrub", "scrub_values"]

_B64 = r"[A-Za-z0-9+/_\-]"

# What it is, and its shape; the group `secret` is what goes where the rest shall stay. The order matters: what holds
# another comes first.
SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(shape, re.IGNORECASE if flags else 0))
    for name, shape, flags in (
        (
            "private key",
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?!-----END)[\s\S])*(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
            False,
        ),
        ("password", r"(?<=://)[^\s/:@\"'<>]*:(?P<secret>[^\s/@\"'<>]+)(?=@)", False),
        (
            "authorisation",
            r"\b(?:proxy-)?authorization[\"'\\]*\s*[:=]\s*[\"'\\]*(?:bearer|basic|token|aws4-hmac-sha256)?\s*"
            r"(?P<secret>(?!(?:bearer|basic|token|aws4)\b)[^\s\"'\\,;}\[]{6,})",
            True,
        ),
        ("bearer token", r"\b(?:bearer|basic)\s+(?P<secret>(?=\S*\d)[A-Za-z0-9+/_.~=\-]{12,})", True),
        ("token", r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?", False),
        ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_\-]{8,}", False),
        ("OpenRouter key", r"\bsk-or-[A-Za-z0-9_\-]{8,}", False),
        # OpenAI, DeepSeek, Moonshot and DashScope alike.
        ("API key", r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_\-]{16,}", False),
        ("Google key", r"\bAIza[A-Za-z0-9_\-]{30,}", False),
        ("Google token", r"\bya29\.[A-Za-z0-9_\-]{16,}|\bAQ\.[A-Za-z0-9_\-]{20,}", False),
        ("AWS key id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", False),
        ("Bedrock key", r"\bABSK[A-Za-z0-9+/=]{20,}|\bbedrock-api-key-[A-Za-z0-9+/=_\-]{16,}", False),
        (
            "AWS secret",
            r"aws_?(?:secret_?access_?key|session_?token)[\"'\\]*\s*[:=]\s*[\"'\\]*(?P<secret>[A-Za-z0-9+/=]{20,})",
            True,
        ),
        ("Groq key", r"\bgsk_[A-Za-z0-9]{16,}", False),
        ("xAI key", r"\bxai-[A-Za-z0-9_\-]{16,}", False),
        ("Hugging Face token", r"\bhf_[A-Za-z0-9]{16,}", False),
        ("Fireworks key", r"\bfw_[A-Za-z0-9]{16,}", False),
        ("Cerebras key", r"\bcsk-[A-Za-z0-9]{16,}", False),
        ("Perplexity key", r"\bpplx-[A-Za-z0-9]{16,}", False),
        ("NVIDIA key", r"\bnvapi-[A-Za-z0-9_\-]{16,}", False),
        ("Replicate token", r"\br8_[A-Za-z0-9]{16,}", False),
        ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})", False),
        ("GitLab token", r"\bglpat-[A-Za-z0-9_\-]{16,}", False),
        ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}", False),
        ("Stripe key", r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}", False),
        ("npm token", r"\bnpm_[A-Za-z0-9]{30,}", False),
        ("PyPI token", rf"\bpypi-{_B64}{{16,}}", False),
        # Signed addresses: S3, Google Cloud Storage, Azure.
        (
            "signature",
            r"[?&](?:x-amz-(?:signature|security-token|credential)|x-goog-(?:signature|credential)|sig|key|api_key"
            r"|access_token|token)=(?P<secret>[^&\s\"'<>\\]{8,})",
            True,
        ),
        # Keys without a shape of their own (Mistral's, Azure's, Cohere's) are known by the name before them.
        (
            "secret",
            r"(?<![a-z0-9])(?:[a-z0-9]+[_\-])*(?:api[_\-]?key|secret(?:[_\-]?key)?|(?:access|auth|refresh|id)[_\-]?token|"
            r"authorization[_\-]token|client[_\-]secret|passw(?:or)?d|passphrase|account[_\-]?key|subscription[_\-]key)"
            r"[\"'\\]*\s*[:=]\s*[\"'\\]*(?P<secret>(?!\[)[^\s\"'\\,;}&<>()]{6,})",
            True,
        ),
    )
)


def scrub(text: str) -> str:
    """The text with `[name removed]` in the place of each secret."""
    for name, shape in SHAPES:
        text = shape.sub(lambda found, name=name: _without(found, name), text)
    return text


def _without(found: re.Match[str], name: str) -> str:
    instead = f"[{name} removed]"
    if "secret" not in found.re.groupindex:
        return instead
    start, end = (place - found.start() for place in found.span("secret"))
    return found[0][:start] + instead + found[0][end:]


def scrub_values(value: Any) -> Any:
    """A JSON value with every text in it scrubbed; and whole, where the name of a field says that it is a secret."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {scrub(key): _field(key, inner) for key, inner in fields.items()}
    if isinstance(value, list | tuple):
        return [scrub_values(inner) for inner in cast("list[Any]", value)]
    return value


def _field(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return scrub_values(value)
    before = f"{key}: "
    told = scrub(before + value)
    return told[len(before) :] if told.startswith(before) else scrub(value)
