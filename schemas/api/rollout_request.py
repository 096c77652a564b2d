"""What a person asks of a Rollout: its annotation leafcast.io/rollout-request, in JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from schemas.api.shared import ApiValue
from schemas.values.faults import Fault, Faulty

RolloutAction = Literal[
    "pause",
    "resume",
    "promote",
    "approve",
    "abort",
    "undo",
    "retry",
    "pin",
    "unpin",
    "freeze",
    "unfreeze",
]
REQUEST_MAX_CHARACTERS = 4096


class RolloutRequest(ApiValue):
    """One request; `id` tells it from others: each is handled once."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    action: RolloutAction
    # Of approve: the present one if empty.
    wave: str = ""
    # Of pin, unpin, freeze and unfreeze.
    path: str = ""
    user: str = ""
    # Of undo, the former one if 0; of pin.
    revision: Annotated[int, Field(ge=0)] = 0
    # Of promote.
    all: bool = False
    # Of abort.
    keep: bool = False
    # Of undo.
    now: bool = False

    def to_json(self) -> str:
        """As the annotation has it."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True)


def read_rollout_request(text: str) -> RolloutRequest:
    """Read the annotation; raises Faulty."""
    if len(text) > REQUEST_MAX_CHARACTERS:
        raise Faulty(
            Fault("", "it is too long", f"write at most {REQUEST_MAX_CHARACTERS} characters")
        )
    try:
        return RolloutRequest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise Faulty(Fault(path, first["msg"].lower())) from None
