"""`python -m leafcast.daemon FOLDER REGIONS SITES DEPTH [KUBE] [OPTIONS]` runs that tree.

The options are `--take-over`, `--members` and `--health=HOST:PORT`. With no figures it runs the
member of a node whose FOLDER it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from leafcast.daemon.local_daemon import run_daemon, run_member
from leafcast.daemon.process import HEALTH, OF_MEMBERS, TAKE_OVER
from leafcast.data_dir import DataDir
from leafcast.local.views import TreeShape
from leafcast.node.health_endpoint import HealthAddress


def main(folder: str, *wanted: str) -> int:
    """Run what the arguments say; the exit code."""
    place = DataDir(Path(folder))
    if not {*wanted} - {TAKE_OVER}:
        return run_member(place, take_over=TAKE_OVER in wanted)
    regions, sites, depth, *more = wanted
    shape = TreeShape(int(regions), int(sites), int(depth))
    kube = next((word for word in more if not word.startswith("--")), None)
    take_over, trios = TAKE_OVER in more, OF_MEMBERS in more
    asked = next((word.removeprefix(HEALTH) for word in more if word.startswith(HEALTH)), None)
    health = HealthAddress.parse(asked) if asked is not None else None
    return run_daemon(place, shape, kube, take_over=take_over, trios=trios, health=health)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
