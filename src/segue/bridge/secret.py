"""`Secret`: a text that can't be printed, logged or serialized by accident."""

from __future__ import annotations

from typing import Any, NoReturn

_MIN_MASKED = 8
"""Shorter values are parts of ordinary words, and are not masked."""


class Secret:
    """A text that does not appear in `str`, `repr`, formatting or pickles. `reveal` returns it, for use in a header."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def mask_in(self, text: str) -> str:
        """Replace this secret in a text, unless it is shorter than eight characters."""
        return text.replace(self._value, "[key removed]") if len(self._value) >= _MIN_MASKED else text

    def __repr__(self) -> str:
        return "Secret('…')"

    def __str__(self) -> str:
        return "…"

    def __format__(self, form: str, /) -> str:
        return "…"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret can't be pickled")
