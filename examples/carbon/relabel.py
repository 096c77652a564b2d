"""Gives the label `carbon: low` to the Locations whose power is cleanest now, `high` to others.

    python relabel.py intensities.json --count 2

The file holds grams of CO2 per kWh by the name of a Location, as a service for your grid tells:
`{"oslo": 30, "warsaw": 640}`. It makes one pass; let a timer run it, every ten minutes or so. What
it changes is a label, and nothing else. A placement that selects `carbon: low`, and is annotated
with `leafcast.io/move: make-before-break`, then follows the clean power without a gap.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

LABEL = "carbon"
LOW, HIGH = "low", "high"


def cleanest(
    intensities: Mapping[str, float], present: Collection[str], count: int, margin: float
) -> set[str]:
    """The names of as many as are to be low.

    Who is low stays so unless another is cleaner by more than the `margin`, in grams: to and fro
    would cost more than it saves.
    """

    def cost(name: str) -> tuple[float, str]:
        return intensities[name] - (margin if name in present else 0.0), name

    return set(sorted(intensities, key=cost)[:count])


def relabelled(location: Mapping[str, Any], carbon: str) -> dict[str, Any]:
    """A Location to be applied: as it is, but for the one label."""
    metadata = location["metadata"]
    labels = {**metadata.get("labels", {}), LABEL: carbon}
    kept = {"name": metadata["name"], "labels": labels}
    if annotations := metadata.get("annotations"):
        kept["annotations"] = annotations
    said = {field: value for field, value in location.items() if field != "status"}
    return {**said, "metadata": kept}


def changes(
    locations: Collection[Mapping[str, Any]],
    intensities: Mapping[str, float],
    count: int,
    margin: float,
) -> list[dict[str, Any]]:
    """The Locations that are to be labelled otherwise; of others nothing is known here."""
    known = {
        it["metadata"]["name"]: it for it in locations if it["metadata"]["name"] in intensities
    }
    now = {name: it["metadata"].get("labels", {}).get(LABEL) for name, it in known.items()}
    present = [name for name, carbon in now.items() if carbon == LOW]
    low = cleanest({name: intensities[name] for name in known}, present, count, margin)
    wanted = {name: LOW if name in low else HIGH for name in known}
    return [relabelled(known[name], wanted[name]) for name in known if now[name] != wanted[name]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("intensities", type=Path, help="grams of CO2 per kWh by Location, as JSON")
    parser.add_argument("--count", type=int, default=1, help="how many Locations are to be low")
    parser.add_argument("--margin", type=float, default=20.0, help="grams that a change must save")
    parser.add_argument("--program", default="leafcast", help='or "kubectl --context centre"')
    said = parser.parse_args(arguments)
    program = shlex.split(said.program)
    listed = json.loads(_run([*program, "get", "locations", "-o", "json"]))["items"]
    intensities = json.loads(said.intensities.read_text(encoding="utf-8"))
    news = changes(listed, intensities, said.count, said.margin)
    if news:
        # All at once: so it is one move, and who loses waits for who gains.
        batch = {"apiVersion": "v1", "kind": "List", "items": news}
        sys.stdout.write(_run([*program, "apply", "-f", "-"], json.dumps(batch)))
    return 0


def _run(command: list[str], text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"{command[0]} failed")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
