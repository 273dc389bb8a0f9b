"""`PrefixTree`: values by the bytes that a body begins with.

Finding them compares each byte of a body once at most, however many values there are. Bytes that several prefixes begin
with are kept once.
"""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class _Node(Generic[V]):
    """The bytes after those of its parent, and the values of the prefix that ends with them."""

    __slots__ = ("children", "parent", "text", "values")

    def __init__(self, text: bytes, parent: _Node[V] | None) -> None:
        self.text = text
        self.parent = parent
        # By their first byte.
        self.children: dict[int, _Node[V]] = {}
        self.values: dict[V, None] = {}

    def split(self, length: int) -> _Node[V]:
        """Return a node of the first bytes, with this one, of the bytes after them, as its child."""
        first = _Node(self.text[:length], self.parent)
        self.text, self.parent = self.text[length:], first
        first.children[self.text[0]] = self
        return first


class PrefixTree(Generic[V]):
    """A radix tree of bytes."""

    def __init__(self) -> None:
        self._root: _Node[V] = _Node(b"", None)
        self._nodes: dict[V, _Node[V]] = {}

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, prefix: bytes, value: V) -> None:
        node, position = self._root, 0
        while position < len(prefix):
            child = node.children.get(prefix[position])
            if child is None:
                child = node.children[prefix[position]] = _Node(prefix[position:], node)
            elif not prefix.startswith(child.text, position):
                child = child.split(_common_length(child.text, prefix[position:]))
                node.children[prefix[position]] = child
            node, position = child, position + len(child.text)
        node.values[value] = None
        self._nodes[value] = node

    def remove(self, value: V) -> None:
        node = self._nodes.pop(value)
        del node.values[value]
        while (parent := node.parent) is not None and not node.values and not node.children:
            del parent.children[node.text[0]]
            node = parent
        while parent is not None and not node.values and len(node.children) == 1:
            (child,) = node.children.values()
            # Nodes are joined as they grow, so that there are always few on the way to a long prefix.
            if len(node.text) > 2 * len(child.text):
                break
            child.text, child.parent = node.text + child.text, parent
            parent.children[child.text[0]] = child
            node, parent = parent, parent.parent

    def find(self, data: bytes) -> list[V]:
        """Return the values whose prefix the data begin with: the longest prefix first, then the newest value."""
        node, position = self._root, 0
        found: list[V] = [*node.values]
        while position < len(data):
            child = node.children.get(data[position])
            if child is None or not data.startswith(child.text, position):
                break
            node, position = child, position + len(child.text)
            found += node.values
        return found[::-1]


def _common_length(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low
