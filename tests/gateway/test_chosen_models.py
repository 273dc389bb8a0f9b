"""A model that the client names itself, by provider or alias, beside `segue route` and the default model."""

from __future__ import annotations

import pytest

from segue.bridge.api_paths import find_api_path
from segue.bridge.providers import Endpoint, resolve
from segue.bridge.routes import RouteQuery
from segue.errors import InputError
from segue.gateway.routes import RouteSettings, RouteTable

_KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MOONSHOT_API_KEY"), "sk-test")
_DEFAULT, _ROUTED, _CHOSEN = "anthropic/claude-sonnet-5", "openai/gpt-4.1", "moonshot/kimi-k2.6"


def make_table(*, prefers_default: bool, routed: bool) -> RouteTable:
    def find(name: str) -> Endpoint:
        return resolve(name, _KEYS)

    table = RouteTable(find)
    table.configure((), default=(_DEFAULT,), prefers_default=prefers_default, aliases={"fast": _CHOSEN})
    table.override((_ROUTED,) if routed else ())
    return table


def find_target(table: RouteTable, name: str) -> str:
    api_path = find_api_path("POST", "/v1/chat/completions", {})
    assert api_path is not None
    return table.find(RouteQuery(api_path, name, {})).targets[0].name


@pytest.mark.parametrize("prefers_default", [False, True])
@pytest.mark.parametrize("routed", [False, True])
def test_a_chosen_model_is_used_or_refused(prefers_default: bool, routed: bool) -> None:
    table = make_table(prefers_default=prefers_default, routed=routed)
    assert find_target(table, _CHOSEN) == _CHOSEN
    assert find_target(table, "fast") == _CHOSEN
    with pytest.raises(InputError, match=r"'monshot' is not a known provider; did you mean moonshot"):
        find_target(table, "monshot/kimi-k2.6")
    others = _ROUTED if routed else _DEFAULT
    assert find_target(table, "") == others
    assert find_target(table, "segue") == others


def test_a_route_of_the_configuration_can_serve_a_name_with_a_slash() -> None:
    table = make_table(prefers_default=False, routed=False)
    table.configure((RouteSettings((_ROUTED,), model="meta-llama/*"),), default=(_DEFAULT,))
    for models in ((), (_CHOSEN,)):
        table.override(models)
        assert find_target(table, "meta-llama/any") == _ROUTED
