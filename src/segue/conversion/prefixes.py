"""`PrefixTree`: values by the bytes that a body begins with.

Finding them compares each byte of a body once at most, however many values there are. Bytes that several prefixes begin
with are kept once.
"""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class _Node(Generic[V]):
    """The bytes after those of its parent, and the values of the prefix that ends with them."""

    __slots__ = ("children", "text", "values")

    def __init__(self, text: bytes) -> None:
        self.text = text
        # By their first byte.
        self.children: dict[int, _Node[V]] = {}
        self.values: dict[V, None] = {}

    def split(self, length: int) -> _Node[V]:
        """Return a node of the first bytes, with this one, of the bytes after them, as its child."""
        first = _Node[V](self.text[:length])
        self.text = self.text[length:]
        first.children[self.text[0]] = self
        return first


class PrefixTree(Generic[V]):
    """A radix tree of bytes."""

    def __init__(self) -> None:
        self._root = _Node[V](b"")

    def __bool__(self) -> bool:
        return bool(self._root.children or self._root.values)

    def add(self, prefix: bytes, value: V) -> None:
        node, position = self._root, 0
        while position < len(prefix):
            child = node.children.get(prefix[position])
            if child is None:
                child = node.children[prefix[position]] = _Node[V](prefix[position:])
            elif not prefix.startswith(child.text, position):
                child = child.split(_common_length(child.text, prefix[position:]))
                node.children[prefix[position]] = child
            node, position = child, position + len(child.text)
        node.values[value] = None

    def remove(self, prefix: bytes, value: V) -> None:
        """Remove a value that was added with this prefix."""
        path = [(self._root, 0)]
        position = 0
        while position < len(prefix):
            node = path[-1][0].children[prefix[position]]
            path.append((node, position))
            position += len(node.text)
        del path[-1][0].values[value]
        for (node, start), (parent, _) in zip(path[:0:-1], path[-2::-1], strict=True):
            if node.values or len(node.children) > 1:
                break
            if not node.children:
                del parent.children[prefix[start]]
                continue
            (child,) = node.children.values()
            # Nodes are joined as they grow, so that there are always few on the way to a long prefix.
            if len(node.text) <= 2 * len(child.text):
                child.text = node.text + child.text
                parent.children[prefix[start]] = child
            break

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
