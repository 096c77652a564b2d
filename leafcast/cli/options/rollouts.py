"""The argument that names a Rollout, by itself or by its placement."""

from __future__ import annotations

import click

from leafcast.ask.resource_names import ResourceKinds, UnknownKind
from leafcast.cli import shell_completion
from leafcast.cli.options.common import Parsed
from schemas.records.placements import KINDS
from schemas.values.groups import DENATURED_GROUP


def _rollout_name(text: str) -> str:
    """The name of a Rollout or of its placement; `rollout/shop` is `shop`, `epl/shop` stays."""
    word, slash, name = text.rpartition("/")
    if not slash:
        return name
    try:
        meant = ResourceKinds().resolve(word).group_resource
    except UnknownKind:
        meant = None
    if meant == (DENATURED_GROUP, "rollouts"):
        return name
    kind = next((kind for kind in KINDS if (kind.group, kind.resource) == meant), None)
    if kind is None:
        remedy = "write its name, rollout/NAME, or its placement as in epl/NAME"
        raise ValueError(f"{text!r} is no Rollout; {remedy}")
    return kind.said(name)


rollout_argument = click.argument(
    "name", type=Parsed("rollout", _rollout_name), shell_complete=shell_completion.rollouts
)
