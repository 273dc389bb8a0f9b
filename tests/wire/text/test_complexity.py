"""The work is linear in the length of a text, whatever it contains. Counted in lines run, not in seconds.

What a line costs (a search, a copy) is not seen here; `benchmarks/text.py` measures that.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from segue.wire.text.scan import CallScanner
from segue.wire.text.text_format import TextFormat
from tests.wire.text.formats import CALL, DECLARED, EACH
from tests.work import count_work

BODIES = (
    "<",
    '"',
    "'",
    "{",
    "[",
    "}",
    "{'a':",
    '{"a":[',
    '\n{"name":',
    '\\"',
    '"\\',
    "`",
    "```\n",
    " ",
    "\n",
    "(",
    "</",
)


def scan(text: str, form: TextFormat, size: int) -> None:
    scanner = CallScanner(form, DECLARED)
    for place in range(0, len(text), size):
        scanner.feed(text[place : place + size])
    scanner.close()


def slow_texts(form: TextFormat) -> Iterator[tuple[str, str]]:
    """A beginning, and the text repeated after it."""
    call = form.render_calls([CALL])
    for stop in sorted({1, *range(5, len(call), max(1, len(call) // 5)), len(call) - 1, len(call)}):
        yield "", f"{call[:stop]}\n"
        yield "", call[:stop]
        for body in BODIES:
            yield call[:stop], body
    for body in (*form.markers, *BODIES):
        yield "", body


def growth(head: str, body: str, form: TextFormat, size: int, length: int) -> float:
    """The ratio of work for four times the text."""
    short, long = (head + body * (times * length // len(body) + 1) for times in (1, 4))
    return count_work(lambda: scan(long, form, size)) / count_work(lambda: scan(short, form, size))


@pytest.mark.parametrize("form", EACH.values(), ids=EACH)
@pytest.mark.parametrize("size", [10**6, 10], ids=["at once", "in tens"])
def test_work_grows_with_the_length(form: TextFormat, size: int):
    """Short texts may need less work, because parsers give up at fixed lengths, at most 4096: the worst are measured
    again.
    """
    worst = sorted(slow_texts(form), key=lambda text: growth(*text, form, size, 200), reverse=True)[:4]
    for head, body in worst:
        assert growth(head, body, form, size, 5000) < 5, (head, body)
