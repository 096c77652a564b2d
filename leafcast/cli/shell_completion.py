"""What a shell offers for arguments, as options name it: found where a shell asks, and not before.

Each command has completions, and none needs them to run.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import click

Words: TypeAlias = Callable[["click.Context", "click.Parameter", str], list[Any]]


def _later(name: str) -> Words:
    def words(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        found: Words = getattr(import_module("leafcast.cli.completion_words"), name)
        return found(context, parameter, incomplete)

    return words


files = _later("files")
kinds_and_names = _later("kinds_and_names")
namespaces = _later("namespaces")
paths = _later("paths")
placements = _later("placements")
rollouts = _later("rollouts")
