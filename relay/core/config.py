"""Who a node is."""

from __future__ import annotations

from dataclasses import dataclass

from relay.core.content.destination_keys import PrivateKeys
from relay.core.destination.customized_forms import Customize, customizes_nothing
from schemas.records.roots import Roots
from schemas.records.signing import WIRE_VERSION
from schemas.reports.link import told_addresses
from schemas.values.identity import NodePath, TreeId


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """What a node is told of itself when it starts."""

    path: NodePath
    tree: TreeId
    # The root keys that the node's token pinned.
    roots: Roots
    # Random, new at each start: the run.
    incarnation: str
    # Whether a space, and so a destination, may hang here.
    attached: bool = False
    # Random, kept where the node keeps its state, tied to the machine.
    home: str = ""
    # Paths at which this very node hung before it was moved.
    former: tuple[NodePath, ...] = ()
    # Take new records under a snapshot that expired, though the node has no memory.
    accept_expired: bool = False
    # What becomes of objects that are customized where they arrive.
    customize: Customize = customizes_nothing
    # Where its members listen for children, of a node of several.
    leaf_urls: tuple[str, ...] = ()
    # What opens the boxes of its profiles.
    private_keys: PrivateKeys = tuple
    # The version of the wire that this program speaks.
    wire: int = WIRE_VERSION

    @property
    def told_addresses(self) -> tuple[str, ...]:
        """Where children are told that it listens: as much as a welcome has room for."""
        return told_addresses(self.leaf_urls)
