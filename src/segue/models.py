"""Parses model names into family, line and version.

`parse_model` never fails: an unknown name has the family `""`. Whole tokens are compared, not substrings
(a `k2` inside another name does not make it a Kimi model), and a date or a context size is not a version.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import msgspec

_T = TypeVar("_T")


class Model(msgspec.Struct, frozen=True):
    """A parsed model name. `version` is `()` where the name has none; compare it with tuples: `(4, 6)`.

    A name that always means the newest model (`gemini-flash-latest`) has a version above all others.
    """

    name: str
    family: str = ""
    line: str = ""
    version: tuple[int, ...] = ()
    reasons_by_default: bool = False
    """Whether the model reasons unless reasoning is disabled."""
    tokenizer_version: int = 0
    """The tokenizer version of a Mistral model (3, 7, 11, 13, 15), which decides its API's rules; 0 if unknown."""

    def at_least(self, *version: int) -> bool:
        """Return whether the version is known and not older than this."""
        return bool(self.version) and self.version >= version


_FAMILIES = (
    *("claude", "kimi", "gemini", "gemma", "mistral", "deepseek", "qwen", "gpt"),
    *("llama", "glm", "minimax", "grok"),
)
# Lines whose names do not have that of their family.
_FAMILY_LINES = {
    "kimi": ("moonshot",),
    "mistral": ("mixtral", "mathstral", "devstral", "codestral", "pixtral", "ministral", "magistral", "voxtral"),
    "qwen": ("qwq", "qvq"),
    "gpt": ("chatgpt", "codex", "o"),
}
# The first of these tokens in a name decides the family; the second column is the line, where the token implies it.
_FAMILY_TOKENS: dict[str, tuple[str, str]] = {
    **{family: (family, "") for family in _FAMILIES},
    **{line: (family, line) for family, lines in _FAMILY_LINES.items() for line in lines},
}
# Ambiguous tokens: they decide only where none of the above is found.
_WEAK_FAMILIES = ("nova", "titan", "command", "jamba", "palmyra", "phi", "granite", "gigachat")
_WEAK_FAMILY_TOKENS = {family: (family, "") for family in _WEAK_FAMILIES}
_LINE_TOKENS = {
    "claude": frozenset({"opus", "sonnet", "haiku", "fable", "instant", "mythos"}),
    "mistral": frozenset({"tiny", "small", "medium", "large", "nemo", "saba"}),
    "nova": frozenset({"micro", "lite", "pro", "premier", "omni", "sonic", "canvas", "reel"}),
}
# Families that only their own vendor serves, and all others.
_CLOSED_FAMILIES = frozenset({"claude", "gemini", "gpt", "grok"})
OPEN_FAMILIES = (
    frozenset(family for family, _ in (*_FAMILY_TOKENS.values(), *_WEAK_FAMILY_TOKENS.values())) - _CLOSED_FAMILIES
)
_NEWEST = (99,)
_TOKEN = re.compile(r"[a-z]+|\d+")
_REASONING_SINCE = {"kimi": (2, 5), "deepseek": (4,), "qwen": (3, 5)}
_REASONING_TOKENS = frozenset({"thinking", "reasoner", "magistral", "qwq", "qvq"})

_MISTRAL_STAMP = re.compile(r"2[3-9](?:0[1-9]|1[0-2])")
# Tokenizers of Mistral models by the first month (`2512`) or the first version that has them, newest first.
_TOKENIZER_BY_MONTH = ((2603, 15), (2509, 13), (2506, 11), (2411, 7), (0, 3))
_TOKENIZER_BY_VERSION: dict[str, tuple[tuple[tuple[int, ...], int], ...]] = {
    "small": (((4,), 15), ((3, 2), 11), ((3,), 7)),
    "medium": (((3, 5), 15), ((3, 1), 11), ((3,), 7)),
    "large": (((4,), 15), ((3,), 13), ((2, 1), 7), ((2,), 3)),
    "ministral": (((3,), 13),),
    "devstral": (((2,), 13), ((1, 1), 11), ((1,), 7)),
}
_TOKENIZER_BY_LINE = {"mixtral": 3, "mathstral": 3, "nemo": 3, "tiny": 3, "pixtral": 7, "saba": 7, "magistral": 13}
# The revision at the end of a Bedrock id is not part of the model's version.
_REVISION = re.compile(r"-v?\d+:\d+$")
_UNITS = frozenset({"k", "b", "m", "x"})


def tokenize_name(name: str) -> list[str]:
    """Return the letters and numbers of the last path segment as tokens; `kimik2` becomes `kimi k 2`."""
    tail = _REVISION.sub("", name.lower().rsplit("/", 1)[-1])
    return _TOKEN.findall(tail.replace("kimik", "kimi k"))


def _parse_version(tokens: list[str], start: int) -> tuple[int, ...]:
    """Return the first run of small numbers from `start` on; dates and sizes (`20250514`, `128k`) are skipped."""
    numbers: list[int] = []
    for position in range(start, len(tokens)):
        token = tokens[position]
        unit = tokens[position + 1] if position + 1 < len(tokens) else ""
        if token.isdigit() and len(token) <= 2 and unit not in _UNITS and not token.startswith("0"):
            numbers.append(int(token))
        elif token == "0" and numbers:
            numbers.append(0)
        elif numbers and token != "p":
            break
    return tuple(numbers[:2])


def _parse_kimi_line(tokens: list[str]) -> str:
    for word, number in pairwise(tokens):
        if word == "k" and number.isdigit() and len(number) == 1:
            return f"k{number}"
    return ""


def _parse_deepseek(tokens: list[str]) -> tuple[str, tuple[int, ...]]:
    """Return line and version: the number after a `v`, not a size. `flash` and `pro` without a number are V4."""
    if ("r", "1") in pairwise(tokens):
        return "r1", (1,)
    line = next((word for word in ("reasoner", "chat", "coder", "flash", "pro") if word in tokens), "")
    starts = (at for at, pair in enumerate(pairwise(tokens)) if pair[0] == "v" and pair[1].isdigit())
    return line, _parse_version(tokens, next(starts, len(tokens))) or ((4,) if line in ("flash", "pro") else ())


def _find_tokenizer_version(tokens: list[str], line: str, version: tuple[int, ...]) -> int:
    stamp = next((int(token) for token in tokens if _MISTRAL_STAMP.fullmatch(token)), None)
    if stamp is not None:
        return next(tokenizer for month, tokenizer in _TOKENIZER_BY_MONTH if stamp >= month)
    rows = _TOKENIZER_BY_VERSION.get(line, ())
    found = next((tokenizer for first, tokenizer in rows if version and version >= first), 0)
    # `open-…` and plain `mistral-7b` are the first generations.
    return found or _TOKENIZER_BY_LINE.get(line, 3 if "open" in tokens or (not line and _has_size(tokens)) else 0)


def _has_size(tokens: list[str]) -> bool:
    """Return whether the name has a parameter count: `32b`."""
    return any(number.isdigit() and unit == "b" for number, unit in pairwise(tokens))


def _reasons_by_default(tokens: list[str], family: str, line: str, version: tuple[int, ...]) -> bool:
    words = set(tokens)
    if _REASONING_TOKENS & words or line == "r1" or (family == "mistral" and "reasoning" in words):
        return True
    is_recent = family in _REASONING_SINCE and version >= _REASONING_SINCE[family]
    match family:
        case "qwen":
            # Open models of the third generation (their names have a size) reason unless the name excludes it.
            open_weights = version[:1] == (3,) and _has_size(tokens)
            return (is_recent or open_weights) and not {"instruct", "coder", "vl", "omni"} & words
        case "kimi":
            return is_recent and line.startswith("k")
        case _:
            return is_recent


def _parse_gemini_line(tokens: list[str]) -> str:
    line = next((word for word in tokens if word in ("flash", "pro")), "")
    return "flash-lite" if line == "flash" and "lite" in tokens else line


def cache_by_model(function: Callable[[Model], _T]) -> Callable[[Model], _T]:
    """Return the function with its results kept for the models used last."""
    return lru_cache(maxsize=128)(function)


def parse_model(name: object) -> Model:
    """Parse a model name; a value that is not a string or not a known name has an empty family."""
    return _parse_model(name) if isinstance(name, str) and name else Model("")


@lru_cache(maxsize=512)
def _parse_model(name: str) -> Model:
    tokens = tokenize_name(name)
    kimi_line = _parse_kimi_line(tokens)
    for position, token in enumerate(tokens):
        if token in _FAMILY_TOKENS:
            family, line = _FAMILY_TOKENS[token]
            if token == "o" and not (position == 0 and len(tokens) > 1 and tokens[1].isdigit()):
                continue
            break
    else:
        weak = next((at for at, token in enumerate(tokens) if token in _WEAK_FAMILY_TOKENS), None)
        if kimi_line and tokens[:1] == ["k"]:
            family, line, position = "kimi", "", 0
        elif weak is not None:
            (family, line), position = _WEAK_FAMILY_TOKENS[tokens[weak]], weak
        else:
            return Model(name)
    if family == "kimi":
        line = kimi_line or line
        position = tokens.index("k") if kimi_line else position
    if family in _LINE_TOKENS and not line:
        line = next((word for word in tokens if word in _LINE_TOKENS[family]), "")
    version = _parse_version(tokens, position)
    if family == "gpt" and version == (35,):
        version = (3, 5)  # Azure's names have no dots
    if family == "deepseek":
        line, version = _parse_deepseek(tokens)
    if family == "gemini":
        line = _parse_gemini_line(tokens)
        version = version or (_NEWEST if "latest" in tokens else ())
    tokenizer = _find_tokenizer_version(tokens, line, version) if family == "mistral" else 0
    return Model(name, family, line, version, _reasons_by_default(tokens, family, line, version), tokenizer)


def _release(model: Model) -> tuple[int, ...]:
    """Return the version without a zero at its end: the same for two names of one model (`4-0` and `4`)."""
    return model.version[:1] if model.version[1:] == (0,) else model.version


def is_other_model(one: str, other: str) -> bool:
    """Return whether two names are known to be different models.

    An alias (a route, a deployment, an inference profile) may be any model: only parts that both names have count.
    """
    left, right = parse_model(one), parse_model(other)
    if not left.family or not right.family:
        return False
    parts = [(left.family, right.family), (left.line, right.line), (_release(left), _release(right))]
    return any(a and b and a != b and _NEWEST not in (a, b) for a, b in parts)


def resolve_alias(name: str | None, recorded: str | None) -> str | None:
    """Return the recorded model if `name` may be an alias of it, else `name`."""
    if not name or not recorded or not is_alias(name) or is_alias(recorded) or is_other_model(name, recorded):
        return name
    return recorded


def is_alias(name: str) -> bool:
    """Return whether this may be an alias: a name without a version.

    Its family is unknown, or one whose models always have a version.
    """
    model = parse_model(name)
    return not model.version and model.family in ("", *_CLOSED_FAMILIES)


def is_same_model(one: str | None, other: str | None) -> bool:
    """Return whether two names are the same model: equal, or with the same family, line and version."""
    if not one or not other:
        return False
    if one == other:
        return True
    left, right = parse_model(one), parse_model(other)
    if not left.family or not left.version:
        return False
    return (left.family, left.line, _release(left)) == (right.family, right.line, _release(right))
