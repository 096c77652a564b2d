"""What a node proves itself with: apart from what issues it, as nodes keep theirs without that."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.values.identity import NodePath


@dataclass(frozen=True, slots=True)
class NodeCredentials:
    """What a new node proves itself with; the seed is secret, and kept by no one else."""

    path: NodePath
    seed: str
    nkey: str
