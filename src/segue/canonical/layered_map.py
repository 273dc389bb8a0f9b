"""`LayeredMap`: a map that only grows and can be forked at any length without being copied.

A fork shares the entries of the original in layers that are never changed; new entries go into a dict of its own. A
layer is merged into the one below it once it is half as large, so a map of n entries has about log n layers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LayeredMap(Generic[K, V]):
    """A map without deletion. Forking a map that is not written to any more is safe in several threads."""

    __slots__ = ("_state", "get")

    get: Callable[[K], V | None]
    """Returns the value of a key; None if there is none."""

    def __init__(self, layers: tuple[dict[K, V], ...] = ()) -> None:
        # The layers, the newest first, and the entries of this map alone: replaced at once, as other threads may read.
        self._state: tuple[tuple[dict[K, V], ...], dict[K, V]] = layers, (new := {})
        self.get = partial(_get_value, layers, new) if layers else new.get

    def fork(self) -> LayeredMap[K, V]:
        """Return a map with the same entries. Writing to one of the two does not change the other."""
        layers, new = self._state
        if new:
            layers = _push_layer(layers, new)
            self._set_layers(layers)
        return LayeredMap(layers)

    def _set_layers(self, layers: tuple[dict[K, V], ...]) -> None:
        new: dict[K, V] = {}
        self._state = layers, new
        self.get = partial(_get_value, layers, new) if layers else new.get

    def __contains__(self, key: object) -> bool:
        layers, new = self._state
        return key in new or (bool(layers) and any(key in layer for layer in layers))

    def __setitem__(self, key: K, value: V) -> None:
        self._state[1][key] = value

    def __len__(self) -> int:
        """Return the number of entries; one that was replaced in a fork may count twice."""
        layers, new = self._state
        return len(new) + sum(map(len, layers))


def _get_value(layers: tuple[dict[K, V], ...], new: dict[K, V], key: K) -> V | None:
    if key in new:
        return new[key]
    for layer in layers:
        if key in layer:
            return layer[key]
    return None


def _push_layer(layers: tuple[dict[K, V], ...], new: dict[K, V]) -> tuple[dict[K, V], ...]:
    """Return the layers with a new one, the newest first."""
    while layers and len(layers[0]) <= 2 * len(new):
        new = {**layers[0], **new}
        layers = layers[1:]
    return (new, *layers)
