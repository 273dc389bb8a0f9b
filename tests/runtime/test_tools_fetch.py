"""Pages of the network, from a server of our own."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from segue.canonical.blocks import Media
from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import Context, ToolError
from segue.runtime.toolbox import Toolbox
from segue.runtime.tools import fetch
from segue.runtime.tools.fetch import FetchedPage, fetch_url, normalize_url
from segue.runtime.tools.html_text import html_to_text
from tests.runtime.mcp_server import PIXEL
from tests.runtime.tool_runner import RecordingApprover, run, run_for_text, run_with_approval, text_of

HTML = """<!doctype html><html><head><title>The  title</title><style>p{}</style><script>alert(1)</script></head>
<body><nav>menu</nav><h1>Heading</h1><p>First <b>words</b> &amp; more.<br>Next line</p>
<ul><li>one<li>two <a href="/far?x=1">a link</a></ul><ol><li>first</li><li>second</li></ol>
<pre>  kept
   as it is</pre><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<p>Use <code>f(x)</code>.</p><img alt="a dog" src="x"><a href="javascript:evil()">no</a></body></html>"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hold = threading.Event()
    asked = threading.Event()

    def do_GET(self) -> None:
        pages: dict[str, tuple[int, dict[str, str], bytes]] = {
            "/html": (200, {"Content-Type": "text/html; charset=utf-8"}, HTML.encode()),
            "/json": (200, {"Content-Type": "application/json"}, b'{"a": 1}'),
            "/latin": (200, {"Content-Type": "text/plain; charset=iso-8859-1"}, "Grüße".encode("latin-1")),
            "/picture": (200, {"Content-Type": "image/png"}, PIXEL),
            "/binary": (200, {"Content-Type": "application/octet-stream"}, b"\0\1\2"),
            "/large": (200, {"Content-Type": "text/plain"}, b"x" * 6_000_000),
            "/empty": (200, {}, b""),
            "/missing": (404, {"Content-Type": "text/plain"}, b"not here"),
            "/moved": (302, {"Location": "/json"}, b""),
            "/away": (302, {"Location": "http://other.example/x"}, b""),
            "/round": (302, {"Location": "/round"}, b""),
            "/file": (302, {"Location": "file:///etc/passwd"}, b""),
            "/bracket": (302, {"Location": "http://[::1/"}, b""),
        }
        if self.path == "/slow":
            self.asked.set()
            self.hold.wait()
        status, headers, body = pages.get(self.path, (200, {}, self.path.encode()))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.path == "/json":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            return
        if self.path.startswith("/cut-off"):
            self.close_connection = True
            is_chunked = self.path == "/cut-off-chunk"
            self.send_header(*(("Transfer-Encoding", "chunked") if is_chunked else ("Content-Length", "100")))
            self.end_headers()
            self.wfile.write(
                (b"64\r\n" if is_chunked else b"") + (PIXEL if self.path == "/cut-off-picture" else b"begin")
            )
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            return

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(scope="module")
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    Handler.hold.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_html_becomes_text(site, tmp_path):
    output = run_for_text(fetch_url(), tmp_path, url=f"{site}/html")
    for part in (
        "The title\n",
        "# Heading\n",
        "First words & more.\nNext line",
        "- one\n- two a link (" + site + "/far?x=1)",
        "1. first\n2. second",
        "```\n  kept\n   as it is\n```",
        "| a | b\n| 1 | 2",
        "Use `f(x)`.",
        "[picture: a dog]",
    ):
        assert part in output
    assert "alert" not in output
    assert "evil" not in output
    assert run_for_text(fetch_url(), tmp_path, url=f"{site}/html", raw=True) == HTML


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("/json", '{"a": 1}'),
        ("/latin", "Grüße"),
        ("/moved", '{"a": 1}'),
        ("/empty", "[nothing]"),
        ("/a%20b?c=d", "/a%20b?c=d"),
    ],
)
def test_other_text_is_unchanged(path, output, site, tmp_path):
    assert run_for_text(fetch_url(), tmp_path, url=site + path) == output


def test_a_page_that_is_not_there_is_an_error(site, tmp_path):
    result = run(fetch_url(), tmp_path, url=f"{site}/missing")
    assert result.error
    assert text_of(result) == f"{site}/missing: 404 Not Found\nnot here"


def test_images_and_binary_content(site, tmp_path):
    _, picture = run(fetch_url(), tmp_path, url=f"{site}/picture").content
    assert isinstance(picture, Media)
    with pytest.raises(ToolError, match="is not a text: application/octet-stream, 3 bytes"):
        run(fetch_url(), tmp_path, url=f"{site}/binary")


def test_large_pages_are_cut(site, tmp_path):
    output = run_for_text(fetch_url(), tmp_path, url=f"{site}/large")
    assert output.startswith("[the first 100,000 characters]\nxxx")
    assert len(output) < 101_000


def test_cross_host_redirect_is_reported_not_followed(site, tmp_path):
    output = run_for_text(fetch_url(), tmp_path, url=f"{site}/away")
    assert output.startswith("the page redirects to another address: http://other.example/x\n")
    with pytest.raises(ToolError, match="more than 5 times"):
        run(fetch_url(), tmp_path, url=f"{site}/round")
    with pytest.raises(ToolError, match="begin with http"):
        run(fetch_url(), tmp_path, url=f"{site}/file")
    with pytest.raises(ToolError, match=r"/bracket redirects to http://\[::1/, which is not a valid URL"):
        run(fetch_url(), tmp_path, url=f"{site}/bracket")


@pytest.mark.parametrize("path", ["/cut-off", "/cut-off-chunk"])
def test_a_body_that_ends_early_is_reported_as_incomplete(path, site, tmp_path):
    output = run_for_text(fetch_url(), tmp_path, url=site + path)
    assert output == "[incomplete: the connection ended before the end of the page]\nbegin"


def test_a_picture_that_ends_early_is_an_error(site, tmp_path):
    with pytest.raises(ToolError, match=r"is a picture .* but the connection ended"):
        run(fetch_url(), tmp_path, url=f"{site}/cut-off-picture")


@pytest.mark.parametrize(
    ("url", "output"),
    [
        ("file:///etc/passwd", "begin with http"),
        ("ftp://x", "begin with http"),
        ("x", "begin with http"),
        ("http://", "begin with http"),
        ("http://me:secret@host/", "a user name or password"),
        ("http://host/a b", "blanks or control"),
        ("http://host/a\r\nX: y", "blanks or control"),
        ("http://host\\@other/", "a user name or password"),
        ("http://host\\other/", "blanks or control"),
        ("http://host:99999/", "is not a valid URL"),
        ("http://[::1/", "is not a valid URL"),
    ],
)
def test_invalid_url(url, output):
    with pytest.raises(ToolError, match=output):
        normalize_url(url)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/a?b#c", "https://example.com/a?b"),
        ("https://example.com.:8443/", "https://example.com:8443/"),
        ("https://münchen.example/straße", "https://xn--mnchen-3ya.example/stra%C3%9Fe"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("https://a.example/b/../c", "https://a.example/c"),
        ("https://a.example/b/./c/..", "https://a.example/b/"),
        ("https://a.example/../../c", "https://a.example/c"),
        ("https://a.example/b/%2e%2E/c", "https://a.example/c"),
        ("https://a.example/b/.%2e/c?x=../y", "https://a.example/c?x=../y"),
        ("https://a.example/%73%65cret%2fx", "https://a.example/secret%2Fx"),
        ("https://a.example/b//c/", "https://a.example/b//c/"),
        ("https://a.example?x", "https://a.example/?x"),
    ],
)
def test_addresses_as_rules_see_them(url, seen):
    assert normalize_url(url) == seen


def test_private_addresses_need_approval_by_name(site, tmp_path):
    url = f"{site}/json"
    for rules in (["fetch_url"], ["*"], ["fetch_url(http://127.0.0.1*)"]):
        assert "denied" in run_with_approval(fetch_url(), tmp_path, {"url": url}, allow=rules)
    assert run_with_approval(fetch_url(), tmp_path, {"url": url}, allow=[f"fetch_url({url})"]) == '{"a": 1}'
    somebody = RecordingApprover()
    run_with_approval(fetch_url(), tmp_path, {"url": url}, approver=somebody)
    assert "this machine or a private network" in somebody.questions[0].title


def test_a_name_that_turns_private_after_the_answer_is_not_fetched(tmp_path):
    """The host has a public address while it is asked about, and the machine's own when it is used."""
    answers = [("93.184.216.34",), ("127.0.0.1",)]
    fetched: list[str] = []

    async def get(target):
        fetched.append(target.url)
        return FetchedPage(200, {}, b"secret")

    tool = fetch_url(get, look_up=lambda host, port: answers.pop(0))
    output = run_with_approval(tool, tmp_path, {"url": "http://sly.example/"}, allow=["fetch_url"])
    assert output.startswith("error: http://sly.example/ now resolves to other IP addresses")
    assert fetched == []


def test_a_redirect_that_turns_private_is_not_followed(tmp_path):
    answers = [("93.184.216.34",), ("93.184.216.34",), ("10.0.0.1",)]
    fetched: list[str] = []

    async def get(target):
        fetched.append(target.url)
        return FetchedPage(302, {"location": "/inside"}, b"")

    tool = fetch_url(get, look_up=lambda host, port: answers.pop(0))
    output = run_with_approval(tool, tmp_path, {"url": "http://sly.example/"}, allow=["fetch_url"])
    assert output.startswith("the page redirects to another address: http://sly.example/inside")
    assert fetched == ["http://sly.example/"]


def test_connection_uses_the_resolved_address(site, tmp_path):
    port = int(site.rpartition(":")[2])
    tool = fetch_url(look_up=lambda host, port: ("127.0.0.1",))
    assert run_for_text(tool, tmp_path, url=f"http://no-such-host.invalid:{port}/json") == '{"a": 1}'


def test_errors_are_reported(tmp_path):
    with pytest.raises(ToolError, match="could not be fetched"):
        run(fetch_url(), tmp_path, url="http://127.0.0.1:9/")
    with pytest.raises(ToolError, match=r"there is no host no-such-host\.invalid"):
        run(fetch_url(), tmp_path, url="http://no-such-host.invalid/")


def test_one_time_limit_for_all_redirects(tmp_path, monkeypatch):
    now = 0.0
    limits: list[float] = []
    timeouts: list[float] = []
    asyncio_timeout = asyncio.timeout

    def record_timeout(seconds: float) -> Any:
        timeouts.append(seconds)
        return asyncio_timeout(1_000)

    async def get(target):
        nonlocal now
        limits.append(target.timeout)
        now += 1.5
        return FetchedPage(302, {"location": f"/{len(limits)}"}, b"")

    monkeypatch.setattr(fetch, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(asyncio, "timeout", record_timeout)
    tool = fetch_url(get, look_up=lambda host, port: ("93.184.216.34",))
    running: Any = tool.run({"url": "http://slow.example/"}, Context(tmp_path, time_limit=2))
    with pytest.raises(ToolError, match=r"^http://slow\.example/ did not answer within 2 seconds"):
        asyncio.run(running)
    assert (limits, timeouts) == ([2, 0.5], [2])


def test_giving_up_closes_the_connection(site, tmp_path):
    async def go():
        running: Any = fetch_url().run({"url": f"{site}/slow"}, Context(tmp_path))
        task = asyncio.ensure_future(running)
        await asyncio.to_thread(Handler.asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    # The loop waits for its threads before it ends: a reader that went on would hold it up.
    asyncio.run(go())


def test_the_question_is_about_the_address(tmp_path):
    tool = fetch_url(look_up=lambda host, port: ("93.184.216.34",))
    box = Toolbox([tool], tmp_path, Permissions())
    question = tool.approval_request({"url": "https://Example.com/a"}, tmp_path)
    assert question is not None
    assert (question.subject, question.title) == ("https://example.com/a", "fetch https://example.com/a")
    assert "allow = [" in (asyncio.run(box.check_permission(tool, {"url": "https://Example.com/a"}, None)) or "")


@pytest.mark.parametrize(
    "html", ["", "<", "<a", "<p>x", "</p></ul></a>", "<a href='http://[x'>y</a>", "<svg><p>no</svg>yes", "&#xD800;"]
)
def test_broken_pages_are_read_anyhow(html):
    html_to_text(html, "http://host/")
