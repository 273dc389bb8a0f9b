"""`--schema FILE`: an answer that is one JSON value and matches a JSON Schema, from any model.

The schema is part of the prompt, and of the request where the API has an option for it and no tools are declared. The
answer is validated; an invalid one is returned to the model with the reason.
"""

from __future__ import annotations

import re
from typing import Any, cast

import jsonschema_rs
import msgspec

from segue.canonical.blocks import Block, Text
from segue.canonical.json import parse_json
from segue.canonical.request import ResponseFormat
from segue.cli import streams
from segue.errors import InputError

MAX_CORRECTIONS = 2
"""How many times an invalid answer is returned to the model."""
_FENCED = re.compile(r"\s*```[\w-]*\n(.*)\n```\s*", re.DOTALL)
_MAX_REASON = 400
_INSTRUCTION = "When you are done, reply with one JSON value that matches this JSON Schema, and no other text:"


class AnswerSchema:
    """A JSON Schema for the answer, read from a file."""

    def __init__(self, file: str) -> None:
        data = streams.read(file, expected="a JSON Schema")
        try:
            schema = parse_json(data)[0]
        except InputError as error:
            raise streams.BadInputError(f"{file}: {error}") from None
        if not isinstance(schema, dict):
            raise streams.BadInputError(f"{file}: a JSON Schema must be an object")
        self.schema = cast("dict[str, Any]", schema)
        try:
            self._validator = jsonschema_rs.validator_for(self.schema)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise streams.BadInputError(f"{file} is not a valid JSON Schema: {_first_line(error)}") from None

    @property
    def response_format(self) -> ResponseFormat:
        return ResponseFormat("schema", schema=self.schema, name="answer")

    def add_to(self, content: str | tuple[Block, ...]) -> tuple[Block, ...]:
        """Append the schema, and the instruction to answer with a matching value, to the content of a message."""
        blocks = (Text(content),) if isinstance(content, str) else content
        schema = msgspec.json.encode(self.schema).decode()
        return (*blocks, Text(f"{_INSTRUCTION} {schema}"))

    def parse(self, answer: str) -> str:
        """Return the JSON value of an answer; `InputError` with the reason if it is not valid."""
        fenced = _FENCED.fullmatch(answer)
        try:
            value = parse_json(fenced[1] if fenced else answer.strip())[0]
        except InputError as error:
            raise InputError(f"the answer is {error.message}") from None
        problem = next(self._validator.iter_errors(value), None)
        if problem is not None:
            place = "/".join(map(str, problem.instance_path)) or "the top level"
            raise InputError(f"the answer does not match the schema at {place}: {_first_line(problem)}")
        return msgspec.json.encode(value).decode()

    def correction(self, problem: InputError) -> str:
        """Return the user message that reports an invalid answer to the model."""
        return f"{problem.message}. Reply again with only the JSON value."


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:_MAX_REASON]
