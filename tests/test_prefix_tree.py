"""A prefix tree finds what a scan of all prefixes would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segue.conversion.prefixes import PrefixTree
from tests.budget import examples
from tests.work import count_work

PREFIXES = st.text("ab", max_size=8).map(str.encode)


@examples(50)
@given(steps=st.lists(st.tuples(PREFIXES, st.integers(0, 3), st.booleans()), max_size=30), data=st.lists(PREFIXES))
def test_found_are_the_values_whose_prefix_the_data_begin_with(
    steps: list[tuple[bytes, int, bool]], data: list[bytes]
) -> None:
    tree: PrefixTree[tuple[bytes, int]] = PrefixTree()
    values: list[tuple[bytes, int]] = []
    for prefix, number, adds in steps:
        value = prefix, number
        if adds and value not in values:
            values.append(value)
            tree.add(prefix, value)
        elif not adds and value in values:
            values.remove(value)
            tree.remove(value)
        assert bool(tree) == bool(values)
        for text in (*data, prefix, prefix + b"ab"):
            expected = sorted((v for v in values[::-1] if text.startswith(v[0])), key=lambda v: -len(v[0]))
            assert tree.find(text) == expected


def test_work_does_not_grow_with_other_conversations() -> None:
    def find(count: int) -> int:
        tree: PrefixTree[int] = PrefixTree()
        for number in range(count):
            tree.add(b"tools " * 1000 + b"go %d" % number, number)
        return count_work(lambda: tree.find(b"tools " * 1000 + b"go 7 and more"))

    assert find(1000) <= find(10) + 20


def test_work_does_not_grow_with_the_turns_of_a_conversation() -> None:
    def find(turns: int) -> int:
        tree: PrefixTree[int] = PrefixTree()
        for turn in range(turns):
            tree.add(b"turn " * (turn + 10), turn)
            if turn:
                tree.remove(turn - 1)
        return count_work(lambda: tree.find(b"turn " * 1000))

    assert find(500) <= find(10) + 40
