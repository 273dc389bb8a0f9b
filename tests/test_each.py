"""A test over a dimension tries every member and reports each failure by name."""

from __future__ import annotations

import inspect

import pytest

from tests.each import for_each


def test_all_members_are_tried_and_all_failures_reported() -> None:
    tried: list[tuple[str, int]] = []

    @for_each("number", [1, 2, 3, 4])
    def check(case: str, number: int) -> None:
        tried.append((case, number))
        assert number != 2, "two"
        if number == 4:
            pytest.fail("four")

    with pytest.raises(BaseExceptionGroup, match=r"2 of 4 fail: 2, 4$") as caught:
        check(case="a")
    assert tried == [("a", 1), ("a", 2), ("a", 3), ("a", 4)]
    assert [error.__notes__ for error in caught.value.exceptions] == [["number = 2"], ["number = 4"]]


def test_pytest_sees_only_what_is_left() -> None:
    @pytest.mark.parametrize("case", ["a"])
    @for_each("source, target", [("x", "y")], ids=" → ".join)
    def check(case: str, source: str, target: str) -> None:
        assert (case, source, target) == ("a", "x", "y")

    assert list(inspect.signature(check).parameters) == ["case"]
    check(case="a")
    with pytest.raises(BaseExceptionGroup, match=r"1 of 1 fail: x → y$"):
        check(case="b")


@pytest.mark.parametrize("members", [[], ["a", "a"]])
def test_a_dimension_is_not_empty_and_has_no_twins(members: list[str]) -> None:
    with pytest.raises(AssertionError):
        for_each("case", members)


def test_a_name_that_the_test_does_not_take_is_refused() -> None:
    with pytest.raises(AssertionError, match="takes no other"):
        for_each("other", ["a"])(lambda case: None)
