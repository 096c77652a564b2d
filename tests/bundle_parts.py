"""What `make bundle` adds to dist/: wheels of all that Leafcast needs, and its container images.

Wheels are of this machine's architecture, for each Python of PYTHONS, by the hashes of the lock
file. An image is what `docker save` writes of it.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.debian_package import fetch_wheels
from tests.interpreter import own_arch

PYTHONS = ("3.11", "3.12", "3.13")
"""Of Debian 12, Ubuntu 24.04 and Debian 13."""


def add_wheels(folder: Path, pythons: Iterable[str] = PYTHONS) -> None:
    """Put the wheels into `wheels/` of a folder."""
    for python in pythons:
        fetch_wheels(own_arch(), folder / "wheels", python)


def add_image(folder: Path, image: str) -> Path:
    """Put an image that the Docker daemon has into `images/` of a folder."""
    file = folder / "images" / f"{re.sub('[^A-Za-z0-9.-]+', '_', image)}.tar.gz"
    file.parent.mkdir(exist_ok=True)
    with (
        subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saving,
        file.open("wb") as out,
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="", compresslevel=6) as packed,
    ):
        assert saving.stdout is not None
        shutil.copyfileobj(saving.stdout, packed)
    assert saving.returncode == 0, f"docker save {image} failed: its words are above"
    return file


if __name__ == "__main__":
    dist = Path(sys.argv[1])
    add_wheels(dist)
    for one in sys.argv[2:]:
        sys.stderr.write(f"{add_image(dist, one)}\n")
