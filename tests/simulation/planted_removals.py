"""Faults planted in what holds a large removal."""

from __future__ import annotations

import dataclasses
from typing import Any

from controllers.core.inventory.make_before_break import BRAKED, is_hold
from schemas.records.records import DeltaHead, LocationRecord
from schemas.values.wire import replace
from tests.simulation.ports import Ports


class HoldUnsigned(Ports):
    """What an edit takes is signed without the label that holds it."""

    def issued(self, draft: Any) -> Any:
        record = draft.record
        if not isinstance(record, LocationRecord):
            return draft
        kept = {name: said for name, said in record.labels.items() if not name.startswith(BRAKED)}
        return dataclasses.replace(draft, record=replace(record, labels=kept))


class HoldForgotten(Ports):
    """A placement is never meant for those who hold it."""

    def issued(self, draft: Any) -> Any:
        head = draft.record
        if not isinstance(head, DeltaHead):
            return draft
        meant = tuple(each for each in head.alternatives if not is_hold(each, BRAKED))
        return dataclasses.replace(draft, record=replace(head, alternatives=meant))
