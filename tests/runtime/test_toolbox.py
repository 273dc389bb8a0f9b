"""The toolbox: declarations, argument checks, permissions, and the tools without files."""

import asyncio
import dataclasses
import json
import threading
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Required, TypedDict

import msgspec
import pytest

import segue
from segue.canonical.blocks import Media, Text
from segue.errors import InputError
from segue.runtime.function_tools import installed_tools, tool
from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import ApprovalRequest, Context, Result, Tool, ToolError
from segue.runtime.toolbox import Toolbox
from segue.runtime.tools import standard_tools
from segue.runtime.tools.task import SubagentTask, task
from segue.runtime.tools.todo import todo
from tests.runtime.tool_runner import RecordingApprover, run, run_for_text, run_with_approval

TARGETS = [row.name for row in segue.formats() if row.kind != "text"]
ALL = standard_tools(spawn=lambda order, context: asyncio.sleep(0, Result("")))


class Box(TypedDict, total=False):
    size: Required[int]
    label: str


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Choice(msgspec.Struct):
    of: Literal["a", "b"]
    why: Optional[str] = None  # noqa: UP045


@tool
def everything(
    count: Annotated[int, "How many."],
    mode: Literal["fast", "slow"] = "fast",
    where: Point | None = None,
    boxes: list[Box] = [],  # noqa: B006
    choice: Choice | None = None,
    share: Annotated[float, msgspec.Meta(ge=0, le=1, description="A part.")] = 0.5,
    *,
    sizes: dict[str, int] | None = None,
    file: Path | None = None,
    context: Context | None = None,
) -> str:
    """Does everything.

    With a second paragraph.

    Args:
        mode: How fast
            it goes.
        count: not this one
        sizes (dict): By name: each one.

    Returns:
        A line.
    """
    return f"{count} {mode} {where} {boxes} {choice} {share} {sizes} {file}"


# ------------------------------------------------------------------------------------------------------ telling


@pytest.mark.parametrize("target", TARGETS)
def test_every_tool_is_valid_for_every_api(target):
    """Declared to each API under its own name, in a request that the checker accepts."""
    box = Toolbox([*ALL, everything], Path())
    model = next(row.default_model for row in segue.formats() if row.name == target)
    chat = segue.Conversation(tools=box.declarations, max_tokens=1000)
    chat.add_user("hello")
    rendered = chat.render(target, model)
    verdict = segue.check(rendered.data, target, model=model)
    assert verdict, list(verdict)
    assert all(name in rendered.data.decode() for name in box.names)


def test_declarations_come_in_the_order_of_their_names():
    names = [declared.name for declared in Toolbox(reversed(ALL), Path()).declarations]
    assert names == sorted(names) == sorted(tool.name for tool in ALL)
    assert Toolbox(ALL, Path()).declarations == Toolbox(reversed(ALL), Path()).declarations


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_tools_have_descriptions(each):
    assert each.description
    assert each.parameters["additionalProperties"] is False
    for name, schema in each.parameters["properties"].items():
        assert "description" in schema, name
    assert set(each.parameters.get("required", ())) <= set(each.parameters["properties"])
    assert isinstance(each.summarize({}), str)


def test_two_of_one_name_are_refused():
    with pytest.raises(InputError, match="duplicate tool name todo"):
        Toolbox([todo(), todo()], Path())
    with pytest.raises(InputError, match="duplicate tool name todo"):
        Toolbox([todo()], Path()).with_tools(todo())


def test_invalid_schema_is_rejected():
    with pytest.raises(InputError, match="parameters of the tool 'bad' are not a valid JSON Schema"):
        Toolbox([Tool("bad", "", {"type": "nonsense"}, lambda arguments, context: "")], Path())


def test_more_and_fewer():
    box = Toolbox(ALL, Path())
    fewer = box.only(["todo", "grep"])
    assert fewer.names == ("grep", "todo")
    assert fewer.find("shell") is None
    assert fewer.with_tools(everything).names == ("everything", "grep", "todo")
    assert "task" not in box.without("task").names
    assert fewer.permissions is box.permissions
    with pytest.raises(InputError, match="unknown tool nonsense; known tools: edit_file,"):
        box.only(["grep", "nonsense"])


def test_sources_come_and_go():
    extra: list[Tool] = []
    box = Toolbox([todo()], Path(), sources=[lambda: extra])
    assert box.names == ("todo",)
    extra.append(everything)
    assert box.names == ("everything", "todo")
    assert box.find("everything") is not None
    assert box.only(["todo"]).names == ("todo",)
    extra[:] = [dataclasses.replace(everything, name="todo")]
    assert [declared.description for declared in box.declarations] == [todo().description]


# ----------------------------------------------------------------------------------------------------- checking


@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("read_file", {}, ['arguments: "path" is a required property']),
        ("read_file", {"path": 3}, ["path: 3 is not of type"]),
        ("read_file", {"path": "a", "start_line": 0, "nonsense": 1}, ["start_line: 0 is less", "'nonsense'"]),
        (
            "todo",
            {"items": [{"text": "a", "state": "open"}, {"text": "b", "state": "x"}]},
            ['items[1].state: "x" is not'],
        ),
        ("task", {"description": "", "prompt": "x"}, ["description:"]),
    ],
)
def test_arguments_that_do_not_fit(name, arguments, output):
    box = Toolbox(ALL, Path())
    found = box.find(name)
    assert found is not None
    text = box.validate_arguments(found, arguments) or ""
    assert text.startswith(f"invalid arguments for {name}, which did not run: ")
    assert "\n" not in text
    assert not text.endswith(": ")
    for part in output:
        assert part in text


def test_problems_are_few_and_short():
    box = Toolbox(ALL, Path())
    found = box.find("todo")
    assert found is not None
    text = box.validate_arguments(found, {"items": [{"text": 1, "state": "x" * 5000}] * 50}) or ""
    assert text.endswith("and more")
    assert len(text) < 4000


@pytest.mark.parametrize(
    ("name", "arguments"), [("todo", {"items": []}), ("list_dir", {}), ("read_file", {"path": ""})]
)
def test_arguments_that_fit(name, arguments):
    box = Toolbox(ALL, Path())
    found = box.find(name)
    assert found is not None
    assert box.validate_arguments(found, arguments) is None


def test_tool_without_question_runs_unless_denied(tmp_path):
    assert run_with_approval(todo(), tmp_path, {"items": []}) == "the list is empty"
    assert run_with_approval(todo(), tmp_path, {"items": []}, deny=["todo"]).startswith("denied")
    assert run_with_approval(todo(), tmp_path, {"items": []}, ask=["todo"]).startswith("denied")
    assert (
        run_with_approval(todo(), tmp_path, {"items": []}, ask=["todo"], approver=RecordingApprover())
        == "the list is empty"
    )


def test_approvals_are_requested_in_call_order(tmp_path):
    second_is_ready = threading.Event()

    def question(arguments, folder):
        if arguments["n"] == 1:
            second_is_ready.wait()
        if arguments["n"] == 2:
            second_is_ready.set()
        return ApprovalRequest("act", str(arguments["n"]), "", needed=arguments["n"] != 3)

    async def go():
        act = Tool("act", "", {"type": "object"}, lambda arguments, context: "", approval_request=question)
        box = Toolbox([act], tmp_path)
        somebody = RecordingApprover()
        calls = [asyncio.ensure_future(box.check_permission(act, {"n": n}, somebody)) for n in range(1, 6)]
        # A call that needs no approval does not wait.
        assert await calls[2] is None
        assert await asyncio.gather(*calls) == [None] * 5
        assert [asked.subject for asked in somebody.questions] == ["1", "2", "4", "5"]

    asyncio.run(go())


def test_abandoned_approval_does_not_block_others(tmp_path):
    async def go():
        act = Tool(
            "act",
            "",
            {"type": "object"},
            lambda arguments, context: "",
            approval_request=lambda a, f: ApprovalRequest("act", "", ""),
        )
        box = Toolbox([act], tmp_path)
        asked = asyncio.Event()

        async def never(question) -> Any:
            asked.set()
            await asyncio.Event().wait()

        first = asyncio.ensure_future(box.check_permission(act, {}, never))
        second = asyncio.ensure_future(box.check_permission(act, {}, RecordingApprover("no")))
        await asked.wait()
        first.cancel()
        assert "rejected" in (await second or "")

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------------- todo, task


def test_the_result_repeats_the_list(tmp_path):
    items = [
        {"text": "one\nthing", "state": "done"},
        {"text": "[ ] two", "state": "doing"},
        {"text": "3", "state": "open"},
    ]
    output = run_for_text(todo(), tmp_path, items=items)
    assert output == "[x] one thing\n[>] [ ] two\n[ ] 3\n1 of 3 done"
    assert todo().summarize({"items": items}) == "[ ] two"


def test_a_task_is_handed_on(tmp_path):
    orders: list[SubagentTask] = []

    async def spawn(order, context):
        orders.append(order)
        return Result("done")

    assert run(task(spawn), tmp_path, description="find it", prompt="find x") == Result("done")
    run(task(spawn), tmp_path, description="d", prompt="p", model="kimi/k2", tools=["grep"])
    assert orders == [SubagentTask("find it", "find x"), SubagentTask("d", "p", "kimi/k2", ("grep",))]


def test_a_cancelled_task_cancels_its_agent(tmp_path):
    seen: list[str] = []

    async def spawn(order, context):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return Result("never")

    async def go():
        running: Any = task(spawn).run({"description": "d", "prompt": "p"}, Context(tmp_path))
        pending = asyncio.ensure_future(running)
        await asyncio.sleep(0)
        pending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pending

    asyncio.run(go())
    assert seen == ["cancelled"]


# ------------------------------------------------------------------------------------------------------ functions


def test_a_signature_becomes_a_schema():
    assert everything.description == "Does everything.\n\nWith a second paragraph."
    schema = json.loads(json.dumps(everything.parameters))
    properties = schema["properties"]
    assert schema["required"] == ["count"]
    assert schema["additionalProperties"] is False
    assert properties["count"] == {"type": "integer", "description": "How many."}
    assert properties["mode"] == {
        "type": "string",
        "enum": ["fast", "slow"],
        "default": "fast",
        "description": "How fast it goes.",
    }
    assert properties["sizes"]["description"] == "By name: each one."
    assert properties["share"] == {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "A part.",
        "default": 0.5,
    }
    assert properties["boxes"] == {"type": "array", "items": {"$ref": "#/$defs/Box"}}
    assert schema["$defs"]["Box"]["required"] == ["size"]
    assert set(schema["$defs"]) == {"Box", "Point", "Choice"}
    assert "context" not in properties


def test_arguments_are_converted_to_their_types(tmp_path):
    output = run_for_text(
        everything,
        tmp_path,
        count=1,
        where={"x": 2},
        boxes=[{"size": 3}],
        choice={"of": "a"},
        sizes={"s": 4},
        file="x/y",
    )
    assert output == "1 fast Point(x=2, y=0) [{'size': 3}] Choice(of='a', why=None) 0.5 {'s': 4} x/y"
    assert everything(1, "slow") == "1 slow None [] None 0.5 None None"
    with pytest.raises(ToolError, match="invalid arguments for everything"):
        run(everything, tmp_path, count="x")


def test_plain_functions_run_in_threads_and_coroutines_on_the_loop(tmp_path):
    @tool(needs_approval=False)
    def where() -> str:
        return threading.current_thread().name

    @tool(needs_approval=False, name="there", timeout=3)
    async def away(context: Context) -> str:
        return str(context.folder)

    assert where.blocking
    assert not away.blocking
    assert (away.name, away.timeout) == ("there", 3)
    assert run_with_approval(away, tmp_path, {}) == str(tmp_path)


def test_functions_need_approval_unless_read_only(tmp_path):
    @tool
    def act(what: str) -> str:
        return what

    assert "allow = [" in run_with_approval(act, tmp_path, {"what": "x"})
    assert run_with_approval(act, tmp_path, {"what": "x"}, allow=["act"]) == "x"
    assert run_with_approval(tool(needs_approval=False)(act.function), tmp_path, {"what": "x"}) == "x"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (None, "done"),
        (3, "3"),
        (True, "true"),
        ({"a": 1}, {"a": 1}),
        ([1, 2], [1, 2]),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Text("x"), (Text("x"),)),
        ((Text("x"), Media("image", url="u")), (Text("x"), Media("image", url="u"))),
        (Result("x", error=True), "x"),
    ],
)
def test_function_return_values(value, content, tmp_path):
    @tool
    def give() -> Any:
        return value

    assert run(give, tmp_path).content == content


def test_invalid_tool_functions():
    def untyped(x):
        return x

    def many(*x: int) -> int:
        return len(x)

    def odd(x: threading.Lock) -> None:
        return None

    for function, output in [
        (untyped, "'x' of the tool 'untyped' needs a type"),
        (many, "can't have"),
        (odd, "JSON can't represent"),
    ]:
        with pytest.raises(InputError, match=output):
            tool(function)


def test_docstrings_of_the_other_style():
    @tool
    def other(a: int, b: int) -> int:
        """Adds.

        :param a: the first
            one
        :param int b: the second
        :returns: the sum
        """
        return a + b

    assert other.description == "Adds."
    assert [schema["description"] for schema in other.parameters["properties"].values()] == [
        "the first one",
        "the second",
    ]


def test_installed_tools_and_those_that_do_not_load(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tools_of_somebody", _Module())
    entries = [
        EntryPoint("one", "tools_of_somebody:one", "segue.tools"),
        EntryPoint("more", "tools_of_somebody:more", "segue.tools"),
        EntryPoint("none", "tools_of_somebody:none", "segue.tools"),
        EntryPoint("gone", "tools_of_nobody:x", "segue.tools"),
    ]
    tools, problems = installed_tools(entries)
    assert [each.name for each in tools] == ["everything", "todo"]
    assert len(problems) == 2
    assert "none (tools_of_somebody:none) is not a tool" in problems[0]
    assert "entry point gone of segue.tools: can't import tools_of_nobody:x: ModuleNotFoundError" in problems[1]


class _Module:
    one = everything
    more = (todo(),)
    none = "nothing"


def test_rules_and_toolbox_share_the_folder(tmp_path):
    box = Toolbox(ALL, tmp_path)
    assert isinstance(box.permissions, Permissions)
    assert box.folder == tmp_path


def test_the_names_of_all_standard_tools_are_known():
    rules = Permissions(allow=[made.name for made in ALL])
    Toolbox([everything], Path(), rules).validate_rules()


@pytest.mark.parametrize(
    ("rule", "output"),
    [
        ("write_fil(docs/*)", "did you mean write_file"),
        ("Shell(ls *)", "did you mean shell"),
        ("everythin", "did you mean everything"),
        ("qqq", "known tools: edit_file, everything, "),
        ("qqq*", "known tools: edit_file, everything, "),
    ],
)
@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_rule_for_an_unknown_tool_is_rejected(rule, output, verdict):
    rules: dict[str, Any] = {verdict: ["read_file", rule]}
    box = Toolbox([*ALL, everything], Path(), Permissions(**rules))
    with pytest.raises(InputError, match=output) as caught:
        box.validate_rules()
    assert caught.value.path == f"{verdict}[1]"


@pytest.mark.parametrize("rule", ["github__*", "github__list(a)", "write_*", "*", "everything", "shell(ls)"])
def test_rule_for_an_excluded_or_future_tool_is_accepted(rule):
    box = Toolbox([*ALL, everything], Path(), Permissions(allow=[rule]))
    box.validate_rules()
    box.only(["read_file"]).validate_rules()
