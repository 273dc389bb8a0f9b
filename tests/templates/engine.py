"""Chat templates run as transformers runs them: the same switches, filters and functions.

Also supported, for llama.cpp's own copies: `from_json`, lists that may grow, and `tojson` of what
`map` gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NoReturn

from jinja2 import Template
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment

from tests.templates.unpack import FOLDER

BOS, EOS = "<BOS>", "<EOS>"


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **rest: Any) -> str:
    """Jinja's own would escape `<` and the like for HTML."""
    value = list(value) if isinstance(value, Iterator) else value
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **rest)


class _Generation(Extension):
    """The `generation` tag marks model output for training; it has no effect here."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> SandboxedEnvironment:
    made = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    made.filters["tojson"] = _tojson
    made.filters["from_json"] = json.loads
    made.globals["raise_exception"] = _refuse
    made.globals["strftime_now"] = lambda _format: "today"
    return made


@cache
def _template(name: str) -> Template:
    return _environment().from_string((FOLDER / f"{name}.jinja").read_text("utf-8"))


def prompt(name: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None, **more: Any) -> str:
    """The prompt of the model. `tools` is not passed where there are none, as in transformers."""
    given = {"tools": tools} if tools else {}
    return _template(name).render(messages=messages, bos_token=BOS, eos_token=EOS, **given, **more)
