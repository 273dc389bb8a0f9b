"""Model names → family, line and version, read word by word.

`identify` never fails: a name it does not know has the family `""`. Words count, not substrings
(`qwen3-coder-plus` is no Kimi because of a `k2` somewhere), and a date or a context size is not a version.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

import msgspec

__all__ = ["Model", "identify", "same_model"]


class Model(msgspec.Struct, frozen=True):
    """What a name says. `version` is `()` where the name has none; compare it with tuples: `(4, 6)`."""

    name: str
    family: str = ""
    line: str = ""
    version: tuple[int, ...] = ()
    thinking: bool = False

    def at_least(self, *version: int) -> bool:
        """Whether the version is known and not older than this."""
        return bool(self.version) and self.version >= version


# The first of these words in a name decides the family; the second column is the line, where the word tells it.
_WORDS: dict[str, tuple[str, str]] = {
    "claude": ("claude", ""),
    "kimi": ("kimi", ""),
    "moonshot": ("kimi", "moonshot"),
    "gemini": ("gemini", ""),
    "gemma": ("gemma", ""),
    "mistral": ("mistral", ""),
    "mixtral": ("mistral", "mixtral"),
    "devstral": ("mistral", "devstral"),
    "codestral": ("mistral", "codestral"),
    "pixtral": ("mistral", "pixtral"),
    "ministral": ("mistral", "ministral"),
    "magistral": ("mistral", "magistral"),
    "voxtral": ("mistral", "voxtral"),
    "deepseek": ("deepseek", ""),
    "qwen": ("qwen", ""),
    "qwq": ("qwen", "qwq"),
    "gpt": ("gpt", ""),
    "chatgpt": ("gpt", "chatgpt"),
    "codex": ("gpt", "codex"),
    "o": ("gpt", "o"),
    "llama": ("llama", ""),
    "glm": ("glm", ""),
    "grok": ("grok", ""),
}
_CLAUDE_LINES = frozenset({"opus", "sonnet", "haiku", "fable", "instant", "mythos"})
_TOKEN = re.compile(r"[a-z]+|\d+")
_ALWAYS_THINKS_FROM = {"kimi": (2, 5)}
# The revision at the end of a Bedrock id says nothing of the model.
_REVISION = re.compile(r"-v\d+:\d+$")


_UNITS = frozenset({"k", "b", "m", "x"})


def _tokens(name: str) -> list[str]:
    """Words and numbers of the last path segment, `kimik2` taken apart as `kimi k 2`."""
    tail = _REVISION.sub("", name.lower().rsplit("/", 1)[-1])
    return _TOKEN.findall(tail.replace("kimik", "kimi k"))


def _version(tokens: list[str], start: int) -> tuple[int, ...]:
    """The first run of small numbers at or after `start`; dates and sizes (`20250514`, `0711`, `128k`) are none."""
    found: list[int] = []
    for position in range(start, len(tokens)):
        token = tokens[position]
        unit = tokens[position + 1] if position + 1 < len(tokens) else ""
        if token.isdigit() and len(token) <= 2 and unit not in _UNITS and not token.startswith("0"):
            found.append(int(token))
        elif token == "0" and found:
            found.append(0)
        elif found and token != "p":
            break
        elif token.isdigit():
            continue
    return tuple(found[:2])


def _kimi_line(tokens: list[str]) -> str:
    for word, number in pairwise(tokens):
        if word == "k" and number.isdigit() and len(number) == 1:
            return f"k{number}"
    return ""


def identify(name: object) -> Model:
    """Family, line and version of a model name; what is no name, or not a known one, has neither."""
    return _identify(name) if isinstance(name, str) and name else Model("")


@lru_cache(maxsize=512)
def _identify(name: str) -> Model:
    tokens = _tokens(name)
    kimi_line = _kimi_line(tokens)
    for position, token in enumerate(tokens):
        if token in _WORDS:
            family, line = _WORDS[token]
            if token == "o" and not (position == 0 and len(tokens) > 1 and tokens[1].isdigit()):
                continue
            break
    else:
        if not (kimi_line and tokens[:1] == ["k"]):
            return Model(name)
        family, line, position = "kimi", "", 0
    if family == "claude":
        line = next((word for word in tokens if word in _CLAUDE_LINES), "")
    if family == "kimi":
        line = kimi_line or line
        position = tokens.index("k") if kimi_line else position
    version = _version(tokens, position)
    if family == "gpt" and version == (35,):
        version = (3, 5)  # Azure's names have no dots
    thinking = "thinking" in tokens or "reasoner" in tokens
    if family in _ALWAYS_THINKS_FROM and line.startswith("k"):
        thinking = thinking or version >= _ALWAYS_THINKS_FROM[family]
    return Model(name, family, line, version, thinking)


def same_model(one: str | None, other: str | None) -> bool:
    """Whether two names mean the same model: equal, or alike in all but a date or a prefix. Unknown equals nothing."""
    if not one or not other:
        return False
    if one == other:
        return True
    left, right = identify(one), identify(other)
    if not left.family or not left.version:
        return False
    return (left.family, left.line, left.version) == (right.family, right.line, right.version)
