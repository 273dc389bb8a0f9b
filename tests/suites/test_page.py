"""The page of the suites: counts, causes, and what has none. The suites themselves are run by `make suites` only."""

from __future__ import annotations

from pathlib import Path

from tests.clients.rows import UPSTREAMS
from tests.suites.page import find_unexplained, read_causes, write_page
from tests.suites.rows import SUITES
from tests.suites.run import Failure, Result, read_report

REPORT = """<testsuites><testsuite name="suite">
<testcase classname="suites.langchain_suite.TestGoogle" name="test_invoke"/>
<testcase classname="suites.langchain_suite.TestGoogle" name="test_agent_loop"><failure message="two calls"/></testcase>
<testcase classname="suites.langchain_suite.TestGoogle" name="test_pdf_inputs"><skipped message="no PDF"/></testcase>
<testcase classname="test" name="mistral: parse"><failure>\x1b[31m&#27;undefined</failure></testcase>
</testsuite></testsuites>"""


def test_report_has_what_ran() -> None:
    assert read_report(REPORT) == {
        "TestGoogle: test_invoke": None,
        "TestGoogle: test_agent_loop": "two calls",
        "mistral: parse": "[31mundefined",
    }


def test_red_test_has_a_cause_or_is_listed(tmp_path: Path) -> None:
    known, unknown = (
        Failure("TestGoogle: test_agent_loop", "two calls"),
        Failure("TestGoogle: test_invoke", "404\nmore"),
    )
    results = [Result("langchain", "kimi", 3, [known, unknown], [], 1.0)]
    write_page(tmp_path / "suites.md", results, tmp_path)
    text = (tmp_path / "suites.md").read_text()
    assert "| `kimi`, kimi-k2-thinking | 3 of 5 | not run | not run | not run |" in text
    assert "| test_agent_loop (TestGoogle) | `kimi` | emulated model: it takes" in text
    assert "| test_invoke (TestGoogle) | `kimi` | **not known**: 404 |" in text
    assert find_unexplained(results) == ["langchain.kimi: TestGoogle: test_invoke: 404"]


def test_causes_name_suites_and_upstreams() -> None:
    causes = read_causes()
    assert {cause.suite for cause in causes} <= set(SUITES)
    assert {cause.upstream for cause in causes} <= {"*", *UPSTREAMS}
