"""`python -m leafcast.daemon FOLDER REGIONS SITES DEPTH [KUBE] [--take-over]` runs that tree."""

from __future__ import annotations

import sys
from pathlib import Path

from leafcast.daemon.local_daemon import run_daemon
from leafcast.daemon.process import TAKE_OVER
from leafcast.data_dir import DataDir
from leafcast.local.views import TreeShape

if __name__ == "__main__":
    folder, regions, sites, depth, *more = sys.argv[1:]
    shape = TreeShape(int(regions), int(sites), int(depth))
    kube = next((word for word in more if word != TAKE_OVER), None)
    sys.exit(run_daemon(DataDir(Path(folder)), shape, kube, take_over=TAKE_OVER in more))
