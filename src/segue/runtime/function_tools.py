"""Python functions as tools: by the decorator `tool`, or from installed packages by the entry points `segue.tools`.

The signature becomes the schema, the docstring the description. A plain function runs in a thread, a coroutine on the
loop. Each call needs approval, unless `needs_approval=False` declares that the function has no side effects.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, overload

import msgspec

from segue.canonical.blocks import Code, Media, Text
from segue.entry_points import load
from segue.errors import InputError
from segue.runtime.tool_types import ApprovalRequest, ApprovalScope, Arguments, Context, Result, Tool, ToolError

_ENTRY_POINT_GROUP = "segue.tools"
_SECTION = re.compile(r"^(args|arguments|parameters|params)\s*:\s*$", re.IGNORECASE)
_OTHER_SECTION = re.compile(r"^(returns?|raises|yields?|examples?|notes?|see also|warns?)\s*:\s*$", re.IGNORECASE)
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_FIELD = re.compile(r"^:param\s+(?:[^:]+\s)?(\w+)\s*:\s*(.*)$")


@dataclass(frozen=True)
class FunctionTool(Tool):
    """A tool made from a function; it can still be called as a function."""

    function: Callable[..., Any] = lambda: None

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self.function(*values, **named)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = True,
    timeout: float | None = None,
    writes: Callable[[Arguments, Path], Sequence[Path]] | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = True,
    timeout: float | None = None,
    writes: Callable[[Arguments, Path], Sequence[Path]] | None = None,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool from a function. A parameter of type `Context` receives the context of the call.

    Parameter descriptions come from `Annotated[int, "how many"]`, from `msgspec.Meta`, or from the docstring.
    `needs_approval=False` declares that the function has no side effects. `timeout` is in seconds. `writes` returns the
    files that a call changes: calls that change the same file run in call order.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        return _make_tool(
            function, name=name, description=description, needs_approval=needs_approval, timeout=timeout, writes=writes
        )

    return decorate if function is None else decorate(function)


def _make_tool(
    function: Callable[..., Any],
    *,
    name: str | None,
    description: str | None,
    needs_approval: bool,
    timeout: float | None,
    writes: Callable[[Arguments, Path], Sequence[Path]] | None,
) -> FunctionTool:
    tool_name = name or function.__name__
    summary, descriptions = _parse_docstring(inspect.getdoc(function) or "")
    contexts, fields = _read_parameters(function, tool_name, descriptions)
    struct = msgspec.defstruct(tool_name, fields, kw_only=True, forbid_unknown_fields=True)
    blocking = not inspect.iscoroutinefunction(function)

    def bind(arguments: Arguments, context: Context) -> dict[str, Any]:
        try:
            values = msgspec.convert(dict(arguments), struct, dec_hook=_decode_path)
        except msgspec.ValidationError as error:
            raise ToolError(f"invalid arguments for {tool_name}: {error}") from None
        return {field[0]: getattr(values, field[0]) for field in fields} | dict.fromkeys(contexts, context)

    def run(arguments: Arguments, context: Context) -> Result:
        return _to_result(function(**bind(arguments, context)))

    async def run_async(arguments: Arguments, context: Context) -> Result:
        return _to_result(await cast("Awaitable[Any]", function(**bind(arguments, context))))

    def approval_request(arguments: Arguments, folder: Path) -> ApprovalRequest:
        subject = msgspec.json.encode(arguments, order="sorted").decode()
        return ApprovalRequest(
            tool_name,
            subject,
            f"run {tool_name}",
            _format_arguments(arguments),
            needed=needs_approval,
            scopes=(ApprovalScope(f"all calls of {tool_name}", (tool_name,)),),
        )

    more: dict[str, Any] = {} if writes is None else {"writes": writes}
    return FunctionTool(
        tool_name,
        description or summary or tool_name,
        _build_schema(struct, tool_name),
        run if blocking else run_async,
        blocking=blocking,
        timeout=timeout,
        approval_request=approval_request,
        summarize=lambda arguments: ", ".join(str(value) for value in arguments.values())[:120],
        function=function,
        **more,
    )


def _format_arguments(arguments: Arguments) -> str:
    return "\n".join(f"{name}: {value}" for name, value in arguments.items())


# --------------------------------------------------------------------------------------------------------------- schema


def _read_parameters(
    function: Callable[..., Any], tool_name: str, descriptions: Mapping[str, str]
) -> tuple[list[str], list[Any]]:
    """Return the names of the `Context` parameters, and the others as fields of `msgspec.defstruct`."""
    try:
        types = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InputError(f"the type hints of the tool {tool_name!r} can't be resolved: {error}") from None
    contexts: list[str] = []
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"the tool {tool_name!r} can't have the parameter {parameter}: only named parameters are supported"
            )
        if name not in types:
            raise InputError(f"the parameter {name!r} of the tool {tool_name!r} needs a type hint")
        if types[name] is Context or Context in get_args(types[name]):
            contexts.append(name)
            continue
        kind = _add_description(types[name], descriptions.get(name))
        if parameter.default is parameter.empty:
            fields.append((name, kind))
        elif isinstance(parameter.default, (list, dict, set)):
            default = cast("list[Any]", parameter.default)
            fields.append((name, kind, msgspec.field(default_factory=default.copy)))
        else:
            fields.append((name, kind, parameter.default))
    return contexts, fields


def _add_description(kind: Any, description: str | None) -> Any:
    """Return the type annotated with its description for the schema."""
    if get_origin(kind) is Annotated:
        base, *annotations = get_args(kind)
        text = next((annotation for annotation in annotations if isinstance(annotation, str)), description)
        metas = [annotation for annotation in annotations if isinstance(annotation, msgspec.Meta)]
        if any(meta.description for meta in metas):
            text = None
        for meta in [*metas, *([msgspec.Meta(description=text)] if text else [])]:
            base = Annotated[base, meta]
        return base
    return Annotated[kind, msgspec.Meta(description=description)] if description else kind


def _build_schema(struct: type[msgspec.Struct], tool_name: str) -> dict[str, Any]:
    try:
        (reference,), parts = msgspec.json.schema_components(
            [struct], schema_hook=_path_schema, ref_template="#/$defs/{name}"
        )
    except (TypeError, NotImplementedError) as error:
        why = str(error).rstrip().rpartition("\n")[2]
        raise InputError(f"the tool {tool_name!r} has a parameter type that JSON can't represent: {why}") from None
    own = reference["$ref"].rpartition("/")[2]
    schema = {key: value for key, value in parts.pop(own).items() if key not in ("title", "description")}
    return _add_enum_types({**schema, "$defs": parts} if parts else schema)


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError


def _path_schema(kind: type) -> dict[str, Any]:
    if kind is Path:
        return {"type": "string"}
    raise NotImplementedError(f"{kind.__name__} is not supported")


def _add_enum_types(schema: Any) -> Any:
    """Add `type: string` to enums of strings, which some APIs require."""
    match schema:
        case dict():
            typed = {key: _add_enum_types(value) for key, value in cast("dict[str, Any]", schema).items()}
            choices = typed.get("enum")
            if isinstance(choices, list) and all(isinstance(choice, str) for choice in cast("list[Any]", choices)):
                typed.setdefault("type", "string")
            return typed
        case list():
            return [_add_enum_types(part) for part in cast("list[Any]", schema)]
        case _:
            return schema


def _parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description of the function and those of its parameters."""
    summary: list[str] = []
    parameters: dict[str, str] = {}
    current, section = "", "summary"
    for line in text.splitlines():
        bare = line.strip()
        if field := _FIELD.match(bare):
            current, section = field[1], "fields"
            parameters[current] = field[2]
        elif bare.startswith((":return", ":raise", ":rtype", ":type")) or _OTHER_SECTION.match(bare):
            section = "other"
        elif _SECTION.match(bare):
            current, section = "", "args"
        elif section == "args" and (entry := _ENTRY.match(bare)) and not line.startswith(" " * 8):
            current = entry[1]
            parameters[current] = entry[2]
        elif section in ("args", "fields") and bare and current:
            parameters[current] = f"{parameters[current]} {bare}".strip()
        elif section == "summary":
            summary.append(line)
    return "\n".join(summary).strip(), {name: text.strip() for name, text in parameters.items()}


def _to_result(value: Any) -> Result:
    match value:
        case Result():
            return value
        case None:
            return Result("done")
        case str():
            return Result(value)
        case Text() | Media() | Code():
            return Result((value,))
        case tuple() if value and all(isinstance(part, (Text, Media, Code)) for part in cast("tuple[Any, ...]", value)):
            return Result(cast("tuple[Text | Media | Code, ...]", value))
        case _:
            plain: Any = msgspec.to_builtins(value)
            if isinstance(plain, (dict, list)):
                return Result(cast("dict[str, Any] | list[Any]", plain))
            return Result(msgspec.json.encode(plain).decode())


# --------------------------------------------------------------------------------------------------------- entry points


def load_functions(file: Path) -> list[Tool]:
    """Import a Python file and return its tools: those made with `tool`, else all its public functions.

    `InputError` if it can't be imported or has no functions.
    """
    if not file.is_file():
        raise InputError(f"there is no file {file}", path="functions")
    spec = spec_from_file_location(f"segue_functions_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} is not a Python file", path="functions")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001  any error of the user's file
        raise InputError(f"{file} can't be imported: {type(error).__name__}: {error}", path="functions") from None
    values = [value for name, value in vars(module).items() if not name.startswith("_")]
    found: list[Tool] = [value for value in values if isinstance(value, Tool)]
    if not found:
        functions = [value for value in values if inspect.isfunction(value) and value.__module__ == module.__name__]
        try:
            found = [tool(function) for function in functions]
        except InputError as error:
            raise InputError(f"{file}: {error}", path="functions") from None
    if not found:
        raise InputError(f"{file} has no functions", path="functions")
    return found


def installed_tools(entries: Iterable[EntryPoint] | None = None) -> tuple[list[Tool], list[str]]:
    """Return the tools of installed packages, and one line for each entry point that could not be loaded.

    An entry point refers to a tool or a list of tools.
    """
    tools: list[Tool] = []
    problems: list[str] = []
    for entry in entry_points(group=_ENTRY_POINT_GROUP) if entries is None else entries:
        try:
            loaded = load(entry, object)
        except InputError as error:
            problems.append(str(error))
            continue
        values: Any = [loaded] if isinstance(loaded, Tool) else loaded
        if isinstance(values, (list, tuple)) and all(isinstance(each, Tool) for each in cast("list[Any]", values)):
            tools += cast("list[Tool]", values)
        else:
            problems.append(f"{entry.name} ({entry.value}) is not a tool; decorate the function with segue's @tool")
    return tools, problems
