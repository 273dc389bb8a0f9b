"""Each sentence of a provider stands once in the emulator: two copies would part at the first correction."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from segue import emulator

FOLDER = Path(emulator.__file__).parent
WORD = re.compile(r"[A-Za-z][a-z]+")
MIN_WORDS = 4


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of at least four words, with `{}` for a value. Docstrings are no texts of a provider."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    } | {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner | docstrings:
            text = node.value
        else:
            continue
        if sum(bool(WORD.match(word)) for word in text.split()) >= MIN_WORDS:
            yield node.lineno, text


def test_each_sentence_of_a_provider_stands_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for folder in ("errors", "providers"):
        for file in sorted((FOLDER / folder).glob("*.py")):
            for line, text in sentences(ast.parse(file.read_text("utf-8"))):
                places[text.strip(" .:{}").lower()].append(f"{folder}/{file.name}:{line}")
    assert len(places) > 300
    assert not {text: found for text, found in places.items() if len(found) > 1}
