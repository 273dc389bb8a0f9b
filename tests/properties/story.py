"""A story: what happened in a conversation, told without any API, and the truth about it.

Every call, result, text and thought holds a word of its own (`w0017q`), so that a reader of any body can say which
result stands at which call, and what is missing. Only stories whose truth follows from the pairing rules are told;
where a body is arbitrary, `chaos` is used and only validity is asked for.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

WORD = re.compile(r"w\d{4}q")


class Mark:
    """A value that stands for something no JSON value can say."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: object) -> Mark:
        return self


OWN: Final = Mark("OWN")  # a lawful, unique id in the form of the API that the story is spelled in
ABSENT: Final = Mark("ABSENT")  # the key is not there
NO_IDS = (None, "", "null", ABSENT)


@dataclass(frozen=True)
class Picture:
    """`word` stands in the URL, or in the bytes."""

    word: str
    by_url: bool = True

    @property
    def url(self) -> str:
        return f"https://pictures.example/{self.word}.png"

    @property
    def data(self) -> str:
        return base64.b64encode(f"picture {self.word}".encode()).decode()

    @property
    def token(self) -> str:
        """What must be found in a body that still holds the picture."""
        return self.word if self.by_url else self.data


@dataclass(frozen=True)
class System:
    """System text. Leading ones are the system prompt; later ones are spelled in place."""

    text: str
    developer: bool = False


@dataclass(frozen=True)
class Say:
    """The user's words; `joined`: in one message with results directly before, where the API can."""

    texts: tuple[str, ...]
    picture: Picture | None = None
    joined: bool = False
    as_list: bool = False


@dataclass(frozen=True)
class Call:
    """`text` is set instead of `arguments` where the arguments are not JSON, or the call is free text."""

    word: str
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
    """A result. `call` is the word of the call that the author meant, None for an orphan."""

    call: str | None
    text: str
    id: Any = OWN
    tool: str = ""
    error: bool = False
    picture: Picture | None = None
    form: str = "text"  # text, parts, omitted
    kind: str = "function"


Event = System | Say | Reply | Result


@dataclass(frozen=True)
class Tool:
    name: str
    kind: str = "function"


@dataclass
class Story:
    """Events, the tools declared, and how the request is made."""

    events: list[Event]
    tools: list[Tool] = field(default_factory=list)
    thinking_on: bool = False
    style: str = "own"
    answers: dict[str, Result | None] = field(default_factory=dict)  # call word → the result that counts, or none
    losers: list[Result] = field(default_factory=list)  # different duplicates, in the report and not in the body
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
                case Say(texts=texts):
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
        lost = {id(loser) for loser in self.losers}
        for event in self.events:
            if isinstance(event, Say | Result) and event.picture and id(event) not in lost:
                yield event.picture

    def kept_words(self) -> set[str]:
        """Words that every policy keeps: of texts, calls, and results that count or are orphans."""
        found = {call.word for call in self.calls}
        told = [*self.texts(), *(result.text for result in [*self.answers.values(), *self.orphans] if result)]
        for text in told:
            found.update(WORD.findall(text))
        return found

    def blurs_when_joined(self) -> bool:
        """Whether replies in a row bear one id twice and a call of them is unanswered: said as one turn, as Gemini has
        it, nobody can tell which."""
        for is_reply, run in groupby(self.events, key=lambda event: isinstance(event, Reply)):
            calls = [call for event in run if isinstance(event, Reply) for call in event.calls] if is_reply else []
            repeated = len({call.id for call in calls}) < len(calls)
            if repeated and not all(self.answers[call.word] for call in calls):
                return True
        return False

    def lost_words(self) -> set[str]:
        return {word for loser in self.losers for word in WORD.findall(loser.text)} - self.kept_words()


def has_id(value: Any) -> bool:
    """Whether this is an id at all (design §3: absent, null, `""` and `"null"` mean none)."""
    return value not in NO_IDS


def word_of(text: str) -> str | None:
    found = WORD.search(text)
    return found[0] if found else None
