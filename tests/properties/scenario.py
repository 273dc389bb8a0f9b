"""A scenario: an API-independent conversation, and its correct pairing.

Every call, result, text and thought has a marker of its own (`w0017q`), so that a reader of any body can find which
result belongs to which call, and what is missing. Only scenarios whose pairing follows from the rules are generated;
for arbitrary bodies `chaos` is used and only validity is checked.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

MARKER = re.compile(r"w\d{4}q")


class Mark:
    """A placeholder for something that JSON cannot express."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: object) -> Mark:
        return self


OWN: Final = Mark("OWN")  # a valid, unique id in the form of the body's API
ABSENT: Final = Mark("ABSENT")  # the key is not there
NO_IDS = (None, "", "null", ABSENT)


@dataclass(frozen=True)
class Picture:
    """`marker` is in the URL, or in the bytes."""

    marker: str
    by_url: bool = True

    @property
    def url(self) -> str:
        return f"https://pictures.example/{self.marker}.png"

    @property
    def data(self) -> str:
        return base64.b64encode(f"picture {self.marker}".encode()).decode()

    @property
    def token(self) -> str:
        """What must be found in a body that still holds the picture."""
        return self.marker if self.by_url else self.data


@dataclass(frozen=True)
class System:
    """System text. Leading ones are the system prompt; later ones stay in place."""

    text: str
    developer: bool = False


@dataclass(frozen=True)
class UserText:
    """User text; `joined`: in one message with the preceding results, where the API can."""

    texts: tuple[str, ...]
    picture: Picture | None = None
    joined: bool = False
    as_list: bool = False


@dataclass(frozen=True)
class Call:
    """`text` is set instead of `arguments` where the arguments are not JSON, or the call is free text."""

    marker: str
    tool: str
    id: Any = OWN
    arguments: Any = None
    text: str | None = None
    kind: str = "function"  # function, custom, legacy


@dataclass(frozen=True)
class Reply:
    """One message of the model."""

    calls: tuple[Call, ...] = ()
    text: str | None = None
    thinking: str | None = None
    text_first: bool = True


@dataclass(frozen=True)
class Result:
    """A result. `call` is the marker of the intended call, None for an orphan."""

    call: str | None
    text: str
    id: Any = OWN
    tool: str = ""
    error: bool = False
    picture: Picture | None = None
    form: str = "text"  # text, parts, omitted
    kind: str = "function"


Event = System | UserText | Reply | Result


@dataclass(frozen=True)
class Tool:
    name: str
    kind: str = "function"


@dataclass
class Scenario:
    """Events, the tools declared, and how the request is made."""

    events: list[Event]
    tools: list[Tool] = field(default_factory=list)
    thinking_on: bool = False
    style: str = "own"
    results: dict[str, Result | None] = field(default_factory=dict)  # call marker → its result, or none
    discarded_results: list[Result] = field(
        default_factory=list
    )  # different duplicates, in the report and not in the body
    orphans: list[Result] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        return [call for event in self.events if isinstance(event, Reply) for call in event.calls]

    def texts(self) -> Iterator[str]:
        """Every text outside of calls, results and thoughts."""
        for event in self.events:
            match event:
                case System(text=text):
                    yield text
                case UserText(texts=texts):
                    yield from texts
                case Reply(text=str(text)):
                    yield text
                case _:
                    pass

    def thoughts(self) -> Iterator[str]:
        for event in self.events:
            if isinstance(event, Reply) and event.thinking:
                yield event.thinking

    def pictures(self) -> Iterator[Picture]:
        lost = {id(loser) for loser in self.discarded_results}
        for event in self.events:
            if isinstance(event, UserText | Result) and event.picture and id(event) not in lost:
                yield event.picture

    def kept_markers(self) -> set[str]:
        """Markers that every policy keeps: of texts, calls, paired results and orphans."""
        found = {call.marker for call in self.calls}
        texts = [*self.texts(), *(result.text for result in [*self.results.values(), *self.orphans] if result)]
        for text in texts:
            found.update(MARKER.findall(text))
        return found

    def is_ambiguous_when_joined(self) -> bool:
        """Whether consecutive replies repeat an id and one of their calls has no result: merged into one turn, as
        for Gemini, the pairing is ambiguous."""
        for is_reply, run in groupby(self.events, key=lambda event: isinstance(event, Reply)):
            calls = [call for event in run if isinstance(event, Reply) for call in event.calls] if is_reply else []
            repeated = len({call.id for call in calls}) < len(calls)
            if repeated and not all(self.results[call.marker] for call in calls):
                return True
        return False

    def discarded_markers(self) -> set[str]:
        return {
            marker for loser in self.discarded_results for marker in MARKER.findall(loser.text)
        } - self.kept_markers()


def has_id(value: Any) -> bool:
    """Whether this is an id at all (design §3: absent, null, `""` and `"null"` mean none)."""
    return value not in NO_IDS


def find_marker(text: str) -> str | None:
    found = MARKER.search(text)
    return found[0] if found else None
