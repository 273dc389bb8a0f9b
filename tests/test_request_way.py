"""The way of a request: its drawing names every module that runs and no others, the state at a border every field."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import msgspec
import pytest

import segue
from segue.canonical.pairing_state import PairingState
from segue.conversion import session, sessions
from segue.conversion.convert import RenderState
from segue.conversion.segments import RenderedPrefix
from segue.conversion.session import RememberedConversation
from segue.wire.registry import WIRES
from tests.properties.client_turns import Call, Reply, Result, form_of

PACKAGE = Path(segue.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "how-it-works.md"
APIS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")


def drawn_modules() -> set[str]:
    drawing = PAGE.read_text("utf-8").partition("## The way of a request")[2].partition("```\n")[2].partition("```")[0]
    modules: set[str] = set()
    for package, names in re.findall(r"^[ │]+(segue[\w.]*) +(.+)$", drawing, re.MULTILINE):
        modules.update(f"{package}.{name}".removesuffix(".__init__") for name in names.split())
    return modules


def trace_modules(run: Callable[[], object]) -> set[str]:
    """Return the modules of the functions that run; imports do not count."""
    found: set[str] = set()

    def record(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        run()
    finally:
        sys.setprofile(before)
    return {name for name in found if name.startswith("segue.")}


def generalize(module: str) -> str:
    """Return the name that a module of an API or of a part of the wires has in the drawing."""
    module = re.sub(r"^(segue\.wire\.(?:schema|vendor_tools))\.\w+$", r"\1", module)
    module = re.sub(r"^segue\.wire\.dialects\.\w+", "segue.wire.API", module)
    return re.sub(rf"^segue\.wire\.(?:{'|'.join(APIS)})\b", "segue.wire.API", module)


def requests(source: str) -> list[bytes]:
    """Return the requests of a conversation, each with one more turn."""
    form = form_of(source)
    items, made = [form.user("Look.")], []
    for number in range(4):
        call = Call(f"call_{number:09}", "read", {"path": "a"})
        items = [
            *items,
            *form.reply(Reply("So.", None, [call])),
            *form.results([Result(call.call_id, "read", "found")]),
        ]
        made.append(json.dumps({**form.rest, form.key: items}).encode())
    return made


@pytest.mark.parametrize("target", WIRES)
def test_every_module_on_the_way_is_in_the_drawing(target: str) -> None:
    sessions.clear()
    drawn = drawn_modules()
    for source in ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"):
        given = requests(source)

        def run(given: list[bytes] = given, source: str = source) -> None:
            for data in given:
                converted = segue.convert(data, source=source, target=target)
                assert converted.data
                assert converted.report.to_dict()

        assert {generalize(module) for module in trace_modules(run)} <= drawn


def test_every_module_in_the_drawing_exists() -> None:
    for module in drawn_modules():
        folder, _, name = module.replace("segue.", "", 1).rpartition(".")
        folders = [f"wire/{api}" for api in APIS] if folder == "wire.API" else [folder.replace(".", "/")]
        if module == "segue.wire.API":
            continue
        assert any(
            (PACKAGE / each / f"{name}.py").exists() or (PACKAGE / each / name / "__init__.py").exists()
            for each in folders
        ), module


@pytest.mark.parametrize("kind", [RememberedConversation, PairingState, RenderedPrefix, RenderState])
def test_the_state_at_a_border_is_described(kind: type[msgspec.Struct]) -> None:
    described = set(re.findall(r"`(\w+)`", session.__doc__ or ""))
    assert set(kind.__struct_fields__) <= described
