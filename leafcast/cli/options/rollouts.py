"""The argument that names a Rollout, by itself or by its placement."""

from __future__ import annotations

from typing import Any

import click

from leafcast.ask.resource_names import ResourceKinds, UnknownKind
from leafcast.cli import shell_completion
from schemas.records.placements import KINDS
from schemas.values.groups import DENATURED_GROUP


class _Name(click.ParamType[str]):
    """The name of a Rollout or of its placement; `rollout/shop` is `shop`, `epl/shop` stays."""

    name = "rollout"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word, slash, name = str(value).rpartition("/")
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
            self.fail(f"{value!r} is no Rollout; {remedy}", param, ctx)
        return kind.said(name)


rollout_argument = click.argument("name", type=_Name(), shell_complete=shell_completion.rollouts)
