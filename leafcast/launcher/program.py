"""`leafcast-launcher --data-dir DIR -- join ...`: the launcher as a program."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.metadata import version
from pathlib import Path

from leafcast.launcher.decisions import LaunchLimits
from leafcast.launcher.launch_folder import LaunchFolder
from leafcast.launcher.launcher import Launcher, LauncherRuns
from schemas.releases.release_folder import RELEASES

LOOK_SECONDS = 2.0


def main() -> None:
    """Run a node, and the releases that come for it, until told to end."""
    said = _arguments().parse_args()
    words = said.words[1:] if said.words[:1] == ["--"] else said.words
    if not words:
        sys.exit("error: name what to run, as in: leafcast-launcher --data-dir DIR -- join FILE")
    os.umask(0o077)
    folder = LaunchFolder(said.data_dir / RELEASES, version("leafcast"))
    limits = LaunchLimits(said.start_seconds, said.soak_seconds)
    try:
        Launcher(folder, words, limits, said.look_seconds).run()
    except (LauncherRuns, OSError) as error:
        sys.exit(f"error: {error}")


def _arguments() -> argparse.ArgumentParser:
    limits = LaunchLimits()
    parser = argparse.ArgumentParser(
        "leafcast-launcher",
        description="Run a node, install releases that the tree chooses and the pinned publisher "
        "signed, and go back by itself if one does not work.",
    )
    parser.add_argument("--data-dir", type=Path, required=True, help="the node's folder")
    parser.add_argument(
        "--start-seconds",
        type=float,
        default=limits.start_seconds,
        help="so long a release may take to be in session (default: %(default)s)",
    )
    parser.add_argument(
        "--soak-seconds",
        type=float,
        default=limits.soak_seconds,
        help="so long it is watched, then it is healthy (default: %(default)s)",
    )
    parser.add_argument(
        "--look-seconds", type=float, default=LOOK_SECONDS, help="how often to look (%(default)s)"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, help="-- and the words for leafcast")
    return parser


if __name__ == "__main__":
    main()
