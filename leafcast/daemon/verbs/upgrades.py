"""The verb `upgrades`: who runs which release of Leafcast, and whom waves would admit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.ask.api import verb
from leafcast.centre.centre import Centre, running
from schemas.reports.running import Running
from schemas.values.faults import InvalidObject
from schemas.values.identity import NodePath
from schemas.values.wire import asdict


@dataclass(frozen=True, slots=True)
class UpgradeVerbs:
    """Answers from what the centre's own node was told, and from signed records."""

    _centre: Centre

    @verb("upgrades")
    async def upgrades(
        self,
        waves: Sequence[dict[str, Any]] = (),
        path: str = "/",
        version: str = "",
        manifest: str = "",
    ) -> dict[str, Any]:
        """`{counts, faults, centre, children, waves}`: see `running_form`; children by names.

        Of each wave it says how many `relays` and `edges` it would admit; of a version, or of the
        release with that manifest, `order`: when the centre takes it. Raises ValueError.
        """
        node = running(self._centre.nodes[NodePath()].node)
        children = {name: running_form(node.running_at(name)) for name in node.children()}
        centre = running_form(node.running_here())
        found = {**running_form(node.running()), "centre": centre, "children": children}
        if version:
            steering = running(self._centre.controllers).releases
            found["order"] = steering.planned(version, manifest, path)
        return {**found, "waves": self._admitted(waves, path) if waves else []}

    def _admitted(self, waves: Sequence[dict[str, Any]], path: str) -> list[dict[str, Any]]:
        # Here, as models of kinds take a while to build.
        from controllers.core.rollout.release_steps import (  # noqa: PLC0415
            release_members,
            release_waves,
        )
        from schemas.api.leafcast_release import LeafcastRelease  # noqa: PLC0415
        from schemas.api.parsing import parse_wish  # noqa: PLC0415

        form = {"version": "0.0.0", "manifest": "{}", "waves": list(waves), "path": path}
        about = {"apiVersion": "leafcast.io/v1alpha1", "kind": "LeafcastRelease"}
        try:
            wish = parse_wish({**about, "metadata": {"name": "planned"}, "spec": form})
        except InvalidObject as invalid:
            raise ValueError("; ".join(map(str, invalid.faults))) from invalid
        assert isinstance(wish, LeafcastRelease)
        spec = wish.spec
        records = self._centre.issuer().records.values()
        members = release_members(release_waves(spec), records)
        return [
            {"name": wave.name, "relays": sum(whom.relays.values()), "edges": whom.edges}
            for wave, whom in zip(spec.waves, members, strict=True)
        ]


def running_form(said: Running) -> dict[str, Any]:
    """`{counts: [{version, wanted, wave, state, count}], faults: [{path, wanted, state, why}]}`."""
    return {
        "counts": [asdict(each) for each in said.counts],
        "faults": [asdict(each) for each in said.faults],
    }
