"""`segue rules`: the rulebook, as a list or rule by rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams
from segue.cli.table import terminal_width

if TYPE_CHECKING:
    from segue.specs.rulebook import RulebookEntry

_LABEL_WIDTH = 11
_WIDTH = 100


def _complete_numbers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from segue.specs.rulebook import load_rulebook

    return [number for number in load_rulebook() if number.startswith(incomplete.upper())]


@options.command("rules")
@click.argument("numbers", metavar="[RULE]...", nargs=-1, shell_complete=_complete_numbers)
@options.api_option("--api", help="Only the rules of this API.")
def command(numbers: tuple[str, ...], *, api: str | None, as_json: bool) -> None:
    """Show the rulebook: what providers accept and reject.

    Without RULE, one line for each rule. With a number such as ANT-24: the rule, the provider's error text, its
    source, an example that breaks it, and what segue does about it.

    \b
      segue rules
      segue rules ANT-24
      segue rules --api gemini --json
    """
    from segue.specs.rulebook import find_rule, load_rulebook

    if numbers and api is not None:
        raise click.UsageError("give either rule numbers or --api, not both", click.get_current_context())
    entries = [find_rule(number) for number in dict.fromkeys(numbers)] or list(load_rulebook().values())
    if api is not None:
        api_numbers = _rule_numbers(api)
        entries = [entry for entry in entries if entry.id in api_numbers]
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode([rule_fields(entry) for entry in entries]), b"\n")
    elif numbers:
        streams.write(format_rules(entries))
    else:
        streams.write("".join(_list_lines(entries)))


def _rule_numbers(api: str) -> set[str]:
    from segue import conformance
    from segue.wire.registry import find_wire_or_server

    row = find_wire_or_server(api, argument="api")
    rules = conformance.rules(row.name, row.profile)
    return {rule.number for rule in rules} | set(conformance.not_checkable(row.name, row.profile))


def _list_lines(entries: Iterable[RulebookEntry]) -> Iterator[str]:
    """Yield one line for each rule, truncated to the width of a terminal, whole in a pipe."""
    width = terminal_width()
    section = ""
    for entry in entries:
        if entry.api != section:
            yield f"{chr(10) if section else ''}{entry.api}\n"
            section = entry.api
        line = f"  {entry.id:12} {entry.topic:9} {streams.one_line(entry.rule)}"
        yield f"{line[: width - 1] + '…' if width is not None and len(line) > width else line}\n"


def format_rules(entries: Iterable[RulebookEntry]) -> str:
    """Return the full text of rules, separated by empty lines."""
    return "\n".join("".join(_rule_lines(entry)) for entry in entries)


def _rule_lines(entry: RulebookEntry) -> Iterator[str]:
    head = f"{entry.id}  {entry.api}: {entry.topic}"
    yield f"{click.style(head, bold=True) if streams.supports_colour() else head}\n"
    values = rule_fields(entry)
    error = f'HTTP {entry.error_status}: "{entry.error_text}"' if entry.error_text else "no error text is recorded"
    if entry.error_text and entry.error_status is None:
        error = f'"{entry.error_text}"'
    elif entry.error_status is not None and not entry.error_text:
        error = f"HTTP {entry.error_status}, the text is not recorded"
    yield from _field("rule", entry.rule)
    yield from _field("error", error)
    yield from _field("evidence", f"{entry.evidence}. {entry.measured or ''}".rstrip())
    yield from _field("source", entry.source, wrap=False)
    if entry.violation_example is not None:
        import msgspec

        example = msgspec.json.format(msgspec.json.encode(entry.violation_example), indent=0).decode()
        yield from _field("example", example, wrap=False)
    for check in values["checks"]:
        yield from _field("checked", f"{', '.join(check['apis'])}: {check['severity']}, {check['models']}")
    if values["not_checked"]:
        yield from _field("checked", f"not by segue check: {values['not_checked']}")
    if entry.oracle:
        yield from _field("confirmed", entry.oracle)
    yield from _field("segue", entry.handling)


def _field(label: str, text: str, *, wrap: bool = True) -> Iterator[str]:
    line = f"  {label:{_LABEL_WIDTH}}{streams.one_line(text)}"
    if wrap:
        line = fill(
            line,
            min(_WIDTH, terminal_width() or _WIDTH),
            subsequent_indent=" " * (_LABEL_WIDTH + 2),
            break_long_words=False,
        )
    yield f"{line}\n"


def rule_fields(entry: RulebookEntry) -> dict[str, Any]:
    """Return a rule as JSON values: its fields, and the APIs for which `segue check` checks it, or why not."""
    import msgspec

    checks, reason = _checks(entry.id)
    return {**msgspec.to_builtins(entry), "checks": checks, "not_checked": reason}


def _checks(number: str) -> tuple[list[dict[str, Any]], str | None]:
    """Return the APIs for which this rule is checked, by severity and models; or the reason why it is not checked."""
    from segue import conformance

    apis_by_check: dict[tuple[str, str], list[str]] = {}
    reason: str | None = None
    tables = [(api, None) for api in conformance.apis()]
    tables += [(conformance.profile_api(profile), profile) for profile in conformance.profile_names()]
    for api, profile in tables:
        for rule in conformance.rules(api, profile):
            if rule.number == number:
                apis = apis_by_check.setdefault((rule.severity, rule.applies_to.description), [])
                if (name := profile or api) not in apis:
                    apis.append(name)
        reason = reason or conformance.not_checkable(api, profile).get(number)
    checks = [{"apis": apis, "severity": key[0], "models": key[1]} for key, apis in apis_by_check.items()]
    if checks:
        return checks, None
    return checks, reason or "it concerns a model's chat template, not an API's body"
