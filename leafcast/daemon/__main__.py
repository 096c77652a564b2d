"""`python -m leafcast.daemon FOLDER REGIONS SITES DEPTH [KUBE]` keeps that tree running."""

from __future__ import annotations

import sys
from pathlib import Path

from leafcast.daemon.daemon import run_daemon
from leafcast.data_dir import DataDir
from leafcast.local.views import TreeShape

if __name__ == "__main__":
    folder, regions, sites, depth, *kube = sys.argv[1:]
    shape = TreeShape(int(regions), int(sites), int(depth))
    sys.exit(run_daemon(DataDir(Path(folder)), shape, next(iter(kube), None)))
