"""What tokens are asked for at the centre: for one path each, or for all that fit a pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.core.access.issued_tokens import USES_MAX
from leafcast.ask.api import ApiError
from leafcast.daemon.nodes.enrolment import NodeSpec
from schemas.values.identity import NodePath

_PATTERN = re.compile(r"[a-z0-9*]([-a-z0-9*]{0,61}[a-z0-9*])?\Z")
STAND_IN = "0"
"""What stands for a star where the place of a pattern is judged."""


@dataclass(frozen=True, slots=True)
class TokenWish:
    """A token to be."""

    # Its path, or with more than one use a pattern of paths.
    path_pattern: str
    # The node that it is for; of a pattern any one.
    node: NodeSpec
    uses: int
    approved: bool

    @property
    def path(self) -> NodePath | None:
        """The one path that it is for."""
        return None if "*" in self.path_pattern else self.node.path


def read_wishes(
    nodes: Sequence[Mapping[str, Any]], *, relay: bool, replace: bool, sure: bool, uses: int
) -> list[TokenWish]:
    """The tokens that a command asks for; raises ApiError, or BadIdentity."""
    return [
        _wish(str(it["path"]), it["labels"], relay=relay, replace=replace, sure=sure, uses=uses)
        for it in nodes
    ]


def _wish(
    where: str,
    labels: Mapping[str, str],
    *,
    relay: bool,
    replace: bool,
    sure: bool,
    uses: int,
) -> TokenWish:
    above, _, last = where.rpartition("/")
    pattern = "*" in where
    if not 1 <= uses <= USES_MAX:
        raise ApiError("Invalid", f"{uses} uses of a token", f"say 1 to {USES_MAX}")
    if pattern and ("*" in above or not _PATTERN.match(last)):
        remedy = "write /region-1/* or /region-1/store-*"
        raise ApiError("Invalid", f"{where}: only the last name may have a star in it", remedy)
    if pattern and (sure or replace):
        remedy = "leave out --approved and --replace, or name one path"
        raise ApiError("Invalid", f"{where}: a token for several nodes always asks", remedy)
    if uses > 1 and not pattern:
        raise ApiError("Invalid", f"{where} is one node", "a pattern such as /region-1/* has uses")
    path = NodePath.parse(where.replace("*", STAND_IN) if pattern else where)
    node = NodeSpec(path, labels, relay=relay, replaces=replace or pattern)
    return TokenWish(where, node, uses, sure)
