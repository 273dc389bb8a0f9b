"""Any page becomes text in linear time: hostile pages, random ones, and pages that are cut or given up."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.runtime.tool_types import Context
from segue.runtime.tools import fetch, html_text
from segue.runtime.tools.fetch import FetchedPage, fetch_url
from segue.runtime.tools.html_text import MAX_HTML, MAX_TEXT, html_to_text
from tests.budget import examples
from tests.runtime.tool_runner import run, text_of

BASE = "http://host/"


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Calls are counted without those of the first import."""
    html_to_text("")


def repeat(part: str) -> Callable[[int], str]:
    return lambda size: (part * (size // len(part) + 1))[:size]


def number(part: str) -> Callable[[int], str]:
    return lambda size: "".join(part.format(count) for count in range(size // (len(part) + 3)))


HOSTILE: dict[str, Callable[[int], str]] = {
    **{
        part: repeat(part)
        for part in """<a| <a |<|</|<!|<!--|<?|&|&#|&amp|&notit;|]]>|<![CDATA[|<div>|<p>|<b>|<a>|<a href=x>|<a href="|
        <a href=x>y</a>|<b></p>|<i><b></i>|<h1>x</h2>|<ul><li>|<ol><li>x|<table><tr><td>|<pre>|<pre>x</pre>|<code>|
        x```<br>|<svg><p>|<svg></object>|<object><svg></object>|<select><option>|<template>|<head>|<title>|<textarea>|<plaintext>|
        <base href=x>|<ol start=2>|<li><p>|</li>|<summary></summary>x|
        <img alt=x>|</a>|</ul>|<p> |<b> </b>|<br>|\r|\r\n|\t|\0|<a\0|\ud800|\x1b|<!DOCTYPE |<a/|<a =|<script></scrip"""
        .replace("\n", "").replace("        ", "").split("|")
    },
    "attributes": lambda size: f"<p {number('a{}=1 ')(size)}>x",
    "same attribute": lambda size: f"<p {repeat('a=1 ')(size)}>x",
    "long name": lambda size: "<" + "a" * size,
    "long attribute": lambda size: "<p " + "a" * size,
    "long reference": lambda size: "&" + "a" * size,
    "long number": lambda size: "&#" + "1" * size,
    "distinct formatting": lambda size: number("<b id={}>")(size // 2) + repeat("<p>x")(size // 2),
    "deep, then closed": lambda size: repeat("<div>")(size // 2) + repeat("</x>")(size // 2),
    "nested links": lambda size: repeat("<a href=x>")(size // 2) + "x" + repeat("</a>")(size // 2),
    "nested lists": lambda size: repeat("<ul>")(size // 2) + repeat("<li>x")(size // 2),
    "skipped, then closed": lambda size: repeat("<svg>")(size // 2) + repeat("</object>")(size // 2),
    "unclosed script": lambda size: "<script>" + repeat("x<")(size),
    "unclosed style": lambda size: "<style>" + repeat("</styl")(size),
    "unclosed textarea": lambda size: "<textarea>" + repeat("x</textare")(size),
    "unclosed comment": lambda size: "<!--" + repeat("--!")(size),
    "escaped script": lambda size: "<script>" + repeat("<!--<script>")(size),
}  # fmt: skip


def count_calls(html: str) -> int:
    """The number of functions that a conversion calls, in Python and C."""
    calls = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        html_to_text(html, BASE)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_with_the_page(name: str) -> None:
    once, twice = (count_calls(HOSTILE[name](size)) for size in (4_000, 8_000))
    assert twice < 2.2 * once + 500


@pytest.mark.timeout(60)  # hours, if any of them took quadratic time
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_converted(name: str) -> None:
    converted = html_to_text(HOSTILE[name](100_000), BASE)
    assert len(converted.text) < 2 * MAX_TEXT + 200_000


FRAGMENTS = r"""<a href=x> </a> <p> </p> <ul> <ol> <li> </ul> <pre> </pre> <code> </code> <svg> <svg/> </svg> <script>
</script> <script/> <head> </head> <body> <title> </title> <table> <tr> <td> <img alt='ab'> <h2> </h2> <br/> <!-- -->
&amp; &#0; &lt < > " ' = ``` x ä"""
BLANKS = ["\0", "\ud800", "\u202e", "\n", "\r", " ", "  ", "\t"]
PARTS = st.sampled_from([*FRAGMENTS.split(), *BLANKS]) | st.text(max_size=5)


@settings(examples(0.3))
@given(st.lists(PARTS, max_size=60).map("".join), st.integers(1, 40))
def test_random_pages(html: str, size: int) -> None:
    """The work is limited, and the text does not depend on how the page is split."""
    assert count_calls(html) < 100 * len(html) + 500
    whole = html_to_text(html, BASE)
    assert not whole.is_truncated
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html_text, "_CHUNK", size)
        assert html_to_text(html, BASE) == whole


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<html><head><title>T</title><body>x", "T\n\nx"),
        ("<head><title>T</title><p>x", "T\n\nx"),
        ("<head><style>p{}</style><meta charset=x></head>x", "x"),
        ("<svg width='1'/>seen", "seen"),
        ("<svg><title>no</title></svg><head><title>T</title></head>x", "T\n\nx"),
        ("<pre>  a\n  b", "```\n  a\n  b\n```"),
        ("x```<br>y", "x```\ny"),
        ("<a href=/a>one</a> <a href=/b> </a><a href=#c>three</a>", f"one ({BASE}a) three"),
        ("<p>x<script>if (a</b) {}</script>y", "xy"),
        ("<textarea>a<b></textarea>c", "a<b>c"),
        ("<ul><li><p>x</p></li><li>\n <div><p>y</p></div></ul>", "- x\n\n- y"),
        ("<ul><li><h2>x</h2><p>y</p></ul>z", "- ## x\n\ny\n\nz"),
        ("<ul><li></li><li>x<li></ul>y", "-\n- x\n-\n\ny"),
        ("<h1><div>x</div></h1>", "# x"),
        ("- <p>x", "-\n\nx"),
        ("<ol start=5><li>a<li>b<ol><li>c</ol><li>d</ol>", "5. a\n6. b\n\n 1. c\n\n7. d"),
        ("<ol><li value=9>a<li>b<li value=x>c<li value=-1>d<li>e</ol>", "9. a\n10. b\n11. c\n-1. d\n0. e"),
        ("<ol start=3 reversed><li>a<li>b</ol><ul><li value=7>c</ul>", "3. a\n2. b\n\n- c"),
        ("<ol start=99999999999999999999><li>a</ol>", "1. a"),
        ("<head><base href=/d/><base href=/e/></head><a href=x>y</a>", f"y ({BASE}d/x)"),
        ("<body><base><base href='//other/d/e'><a href=x>y</a>", "y (http://other/d/x)"),
        ("<base href='http://['><base href='data:,'><a href=x>y</a>", f"y ({BASE}x)"),
        ("<svg><base href=/d/></svg><a href=x>y</a>", f"y ({BASE}x)"),
        ("<details><summary>Sum</summary>body</details>", "Sum\nbody"),
        ("<summary>Sum</summary> <b>body</b>", "Sum\nbody"),
        ("<ul><li>a</li>b<li>c</li></ul>", "- a\nb\n- c"),
        ("<dl><dt>a</dt><dd>b</dd></dl>", "a\nb"),
        ("<figcaption>a</figcaption><br>b", "a\nb"),
    ],
)
def test_text(html: str, text: str) -> None:
    assert html_to_text(html, BASE).text == text


# ---------------------------------------------------------------------------------------------------------- cut pages


def fetch_page(body: bytes, tmp_path: Any, kind: str = "text/html; charset=utf-8", **arguments: Any) -> str:
    async def get(target: Any) -> FetchedPage:
        return FetchedPage(200, {"content-type": kind}, body)

    tool = fetch_url(get, look_up=lambda host, port: ("8.8.8.8",))
    return text_of(run(tool, tmp_path, url="http://host/", **arguments))


def test_a_long_page_is_cut(tmp_path: Any) -> None:
    comment = b"<!--" + b"x" * MAX_HTML + b"-->"
    assert fetch_page(b"begin" + comment + b"end", tmp_path) == "[the first 5 characters]\nbegin"
    assert fetch_page(comment + b"end", tmp_path) == "[the page was not read to its end]\n[nothing]"
    assert html_to_text("x" + " " * MAX_HTML).is_truncated
    assert not html_to_text("x" + " " * (MAX_HTML - 1)).is_truncated


def test_a_long_text_is_cut(tmp_path: Any) -> None:
    text = fetch_page(b"<p>word</p>" * 100_000, tmp_path)
    assert text.startswith("[the first 100,000 characters]\nword\n\nword")
    assert len(text) <= MAX_TEXT + 50


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7", "unicode_escape", "zlib", "undefined", "no-such"])
def test_encodings_that_are_not_of_the_web_are_ignored(charset: str, tmp_path: Any) -> None:
    kind = f"text/html; charset={charset}"
    assert fetch_page("<p>Grüße +AGE- \\x41".encode(), tmp_path, kind) == "Grüße +AGE- \\x41"
    assert fetch_page(f"<meta charset={charset}><p>Grüße".encode(), tmp_path, "text/html") == "Grüße"


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "shift_jis", "gb18030", "iso-2022-jp", "ascii"])
def test_wrong_encodings_are_read_anyhow(charset: str, tmp_path: Any) -> None:
    assert fetch_page(b"<p>\xff\xfe\x80\x1b$B" + bytes(range(256)), tmp_path, f"text/html; charset={charset}")


def test_deadline_keeps_the_text_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 100.0])
    monkeypatch.setattr(fetch, "time", SimpleNamespace(monotonic=lambda: next(times)))
    page = FetchedPage(200, {"content-type": "text/html"}, b"<p>begin</p>" + b" " * 70_000 + b"<p>end</p>")
    result = asyncio.run(fetch._convert_page(BASE, page, 30.0, raw=False))
    assert text_of(result) == "[the first 5 characters]\nbegin"


def test_the_loop_runs_during_a_conversion_that_is_given_up(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def convert(html: str, base_url: str, *, should_stop: Callable[[], bool]) -> Any:
        begun.set()
        while not should_stop():
            pass
        ended.set()
        return html_text.HtmlText("late")

    monkeypatch.setattr(fetch, "html_to_text", convert)
    monkeypatch.setattr(fetch, "_CONVERSION_TIMEOUT", 1_000.0)

    async def get(target: Any) -> FetchedPage:
        return FetchedPage(200, {"content-type": "text/html"}, b"x")

    async def main() -> None:
        running: Any = fetch_url(get, look_up=lambda host, port: ("8.8.8.8",)).run(
            {"url": BASE}, Context(tmp_path, time_limit=1_000.0)
        )
        task = asyncio.ensure_future(running)
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended.wait(100)
