"""`choose_models`: the models of a command, and whether they are emulated: one rule for all commands.

Emulated models answer with `--emulated`, or if nothing at all is configured: no model, alias or rule, no provider,
no route of the gateway, and no API key. Where something is configured that can't be used, the reason is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from segue.bridge import provider_errors
from segue.bridge.providers import Endpoint
from segue.cli.providers import Providers
from segue.cli.streams import BadInputError
from segue.errors import InputError

EMULATED_NOTE = "no API key is set and nothing is configured: the models are emulated, and their replies are invented"


class ModelChoice(Struct, frozen=True):
    """Models in order of preference, and the reason. Without names, something is configured, but no model."""

    names: tuple[str, ...]
    why: str
    is_emulated: bool = False


def choose_models(
    known: Providers, given: Sequence[str] = (), *, emulated: bool = False, required: bool = True
) -> ModelChoice:
    """Return the models of the command line, else of the configuration, else of a provider that can be used.

    If something is configured, but no model: raise `InputError`, or where none is `required` return no names. A
    configured model of no known provider is an `InputError` that names its file or variable.
    """
    settings = known.config.settings
    rules = settings.rules if settings.strategy == "rules" else ()
    names = tuple(given) or settings.model_names or tuple(name for rule in rules for name in rule.model_names)
    if names and not emulated:
        source = "" if given else known.config.model_source() if settings.model_names else "by rules"
        for name in () if given else settings.model_names:
            _check_name(known, name, source)
        return ModelChoice(names, source)
    if not emulated:
        if (first := known.first_with_key()) is not None:
            return ModelChoice((first.name,), f"{known.key_variable_of(known.by_name[first.provider])} is set")
        own = filter(None, map(known.find_provider, settings.providers))
        if (row := next((row for row in own if row.default and not row.variables), None)) is not None:
            return ModelChoice((f"{row.name}/{row.default}",), f"providers.{row.name} is configured")
        if (problem := _find_problem(known)) is not None:
            if required:
                raise InputError(problem)
            return ModelChoice((), problem)
    default = next(row for row in known.by_name.values() if row.default)
    why = "emulated" if emulated else "emulated: no API key is set, see segue models"
    return ModelChoice(names or (f"{default.name}/{default.default}",), why, is_emulated=True)


def require_key(endpoints: Sequence[Endpoint]) -> None:
    """Raise `InputError` if the key of every model is missing."""
    if endpoints and all(endpoint.lacks_key for endpoint in endpoints):
        raise InputError(provider_errors.missing_key_error(endpoints[0]).message)


def _check_name(known: Providers, name: str, source: str) -> None:
    """Raise for a configured name of no model, with the file or the variable that it is in."""
    try:
        if known.lacks_default(name) is None:
            known.endpoint(name)
    except InputError as error:
        raise BadInputError(f"{source}: {error}") from None


def _find_problem(known: Providers) -> str | None:
    """Return why no model can be used though something is configured; None if nothing is."""
    settings = known.config.settings
    with_key = [name for name, row in known.by_name.items() if known.key_variable_of(row) is not None]
    for name in (*settings.providers, *with_key):
        row = known.find_provider(name)
        if row is None:
            return f"providers.{name} can't be used: its file is not trusted; segue trust shows and trusts it"
        if not row.default:
            return f'providers.{name} has no models: set model = "{name}/MODEL", or pass -m {name}/MODEL'
        try:
            require_key([known.endpoint(name)])
        except InputError as error:
            return str(error)
    has_routes = settings.gateway.get("routes") or settings.gateway.get("passthrough")
    is_configured = settings.providers or with_key or has_routes or settings.aliases or settings.rules
    return "no model is configured: set model, or pass -m PROVIDER/MODEL" if is_configured else None
