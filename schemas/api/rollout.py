"""Rollout: lets what changes in a placement out by waves."""

from __future__ import annotations

from typing import Literal

from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import RolloutStatus
from schemas.api.shared import NamedObject


class Rollout(NamedObject):
    """Lets what changes in a placement out by waves, as far as it proves good."""

    api_version: Literal["leafcast.io/v1alpha1"]
    kind: Literal["Rollout"]
    spec: RolloutSpec
    """How the changes of one placement go out."""
    status: RolloutStatus | None = None
    """How far it is. Leafcast writes it, and goes on from it after a restart."""
