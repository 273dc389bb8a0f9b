"""The emulated providers by API: the classes of the modules here, and `ChatProvider` for any other chat API."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from segue.emulator.providers.chat import ChatProvider
from segue.emulator.providers.provider import Provider
from segue.wire.base import Wire
from segue.wire.registry import WIRES


def _load_classes() -> Iterator[type[Provider]]:
    for module in pkgutil.iter_modules(__path__):
        for value in vars(import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Provider) and "api" in vars(value):
                yield value


def _make_class(wire: Wire) -> type[Provider]:
    if wire.base_api != "openai-chat":
        raise ImportError(f"no emulated provider in segue/emulator/providers has the API {wire.name}", name=__name__)
    return type(f"{wire.provider.title()}Chat", (ChatProvider,), {"api": wire.name})


_CLASSES = {provider.api: provider for provider in _load_classes()}
PROVIDERS: dict[str, type[Provider]] = {
    name: _CLASSES[name] if name in _CLASSES else _make_class(wire) for name, wire in WIRES.items()
}
