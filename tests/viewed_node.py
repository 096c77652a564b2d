"""A node and what it shows in one, for tests that drive the node themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relay.core.collectors.ports import Evaluator
from relay.core.config import NodeConfig
from relay.core.events import Remembered
from relay.core.instant import Instant
from relay.core.node import Node
from schemas.reports.reports import Done


class ViewedNode(Node):
    """Has all that its view has, too; in the program a driver keeps the two apart."""

    def __init__(
        self,
        config: NodeConfig,
        remembered: Remembered,
        done: Iterable[Done],
        now: Instant,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.config = config
        super().__init__(config, remembered, done, now, evaluator)

    def __getattr__(self, name: str) -> Any:
        if name == "view":
            raise AttributeError(name)
        return getattr(self.view, name)
