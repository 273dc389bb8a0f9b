"""The options of requests that users set: by flags, in the configuration, with `/set` in a chat.

All three have the same names and values. `effort` and `thinking` together are the reasoning of a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast, get_args

import msgspec

from segue.canonical.request import Effort, Options, Reasoning
from segue.errors import InputError

EFFORTS: tuple[str, ...] = get_args(Effort)
_PLAIN = {
    "max_tokens": "a whole number above 0",
    "temperature": "a number",
    "top_p": "a number",
    "top_k": "a whole number",
    "seed": "a whole number",
    "presence_penalty": "a number",
    "frequency_penalty": "a number",
    "parallel": "true or false",
    "stop": "text, or a list of texts",
    "user": "text",
}
# Options of OpenAI's two APIs only; other APIs ignore them.
_VENDOR = {
    "store": "true or false",
    "service_tier": "text",
    "verbosity": "text",
    "prompt_cache_key": "text",
    "prompt_cache_retention": "text",
}
_REASONING = {"effort": ", ".join(EFFORTS), "thinking": "on, off, or a number of tokens"}
NAMES: Mapping[str, str] = {**_PLAIN, **_REASONING, **_VENDOR}
"""The options, with the values that each accepts."""
_MINIMA = {"max_tokens": 1, "top_k": 0, "top_p": 0, "temperature": 0}


def parse_assignment(text: str) -> tuple[str, Any]:
    """Parse `KEY=VALUE`: a value is JSON where it is valid JSON, else text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"expected KEY=VALUE, not {text!r}")
    return name.strip(), parse_value(value)


def parse_value(text: str) -> Any:
    """Parse a value as JSON, or return it as text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def parse_options(values: Mapping[str, Any]) -> Options:
    """Validate options by name and return them; raises `InputError` with the name of a bad one."""
    fields: dict[str, Any] = {}
    vendor: dict[str, Any] = {}
    for name, value in values.items():
        if name in _REASONING:
            continue
        if name not in NAMES:
            near = get_close_matches(name, NAMES, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(NAMES)}"
            raise InputError(f"unknown option {name!r}; {hint}")
        (vendor if name in _VENDOR else fields)[name] = _validate(name, value)
    reasoning = _parse_reasoning(values.get("effort"), values.get("thinking"))
    return Options(**fields, reasoning=reasoning, vendor_options=vendor or None)


def _validate(name: str, value: Any) -> Any:
    kind = NAMES[name]
    if name == "stop":
        value = [value] if isinstance(value, str) else value
        is_valid = _is_texts(value)
    elif kind == "text":
        is_valid = isinstance(value, str)
    elif kind == "true or false":
        is_valid = isinstance(value, bool)
    else:
        accepted = int | float if kind == "a number" else int
        is_valid = isinstance(value, accepted) and not isinstance(value, bool)
        is_valid = is_valid and (name not in _MINIMA or value >= _MINIMA[name])
    if not is_valid:
        raise InputError(f"{name}: expected {kind}, not {msgspec.json.encode(value).decode()}")
    return tuple(cast("Sequence[str]", value)) if name == "stop" else value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in cast("Sequence[Any]", value))


def _parse_reasoning(effort: Any, thinking: Any) -> Reasoning | None:
    if effort is not None and effort not in EFFORTS:
        raise InputError(f"effort: expected one of {_REASONING['effort']}, not {effort!r}")
    if effort is None and thinking is None:
        return None
    if effort == "none":
        thinking = "off" if thinking is None else thinking
    match thinking:
        case None:
            return Reasoning(effort=effort)
        case True | "on":
            return Reasoning(enabled=True, effort=effort)
        case False | "off" | 0:
            return Reasoning(enabled=False)
        case int() if thinking > 0:
            return Reasoning(enabled=True, effort=effort, budget=thinking)
        case _:
            raise InputError(f"thinking: expected {_REASONING['thinking']}, not {thinking!r}")


def describe_options(options: Options) -> dict[str, str]:
    """Return the options that are set, by name, as a user would write them."""
    shown = {name: value for name in _PLAIN if (value := getattr(options, name)) is not None}
    shown |= dict(options.vendor_options or {})
    if (reasoning := options.reasoning) is not None:
        shown |= {"effort": reasoning.effort} if reasoning.effort is not None else {}
        if reasoning.budget is not None:
            shown["thinking"] = reasoning.budget
        elif reasoning.enabled is not None:
            shown["thinking"] = "on" if reasoning.enabled else "off"
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode() for name, value in shown.items()
    }
