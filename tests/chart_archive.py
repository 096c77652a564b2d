"""The chart as one file, named as Helm names it: `make dist` writes it, the same bytes anywhere.

Who publishes it says by LEAFCAST_IMAGE in which registry its image lies.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path

import yaml

CHART = Path(__file__).resolve().parents[1] / "deploy" / "helm" / "leafcast"
_AT = 315_532_800
"""1980: of no file does the time count."""


def naming(values: bytes, image: str) -> bytes:
    """The values with an image of a registry as the one that is taken where nobody names one."""
    before, after = b"\n  repository: leafcast\n", f"\n  repository: {image}\n".encode()
    assert values.count(before) == 1, "values.yaml names the image once"
    return values.replace(before, after)


def write_chart(folder: Path) -> Path:
    """Put the chart into a folder."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    image = os.environ.get("LEAFCAST_IMAGE", "")
    file = folder / f"{about['name']}-{about['version']}.tgz"
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=_AT, filename="") as pressed,
        tarfile.open(fileobj=pressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for at in sorted(at for at in CHART.rglob("*") if at.is_file()):
            data = at.read_bytes()
            if image and at.name == "values.yaml":
                data = naming(data, image)
            entry = tarfile.TarInfo(f"{about['name']}/{at.relative_to(CHART).as_posix()}")
            entry.size, entry.mtime = len(data), _AT
            tar.addfile(entry, io.BytesIO(data))
    file.write_bytes(packed.getvalue())
    return file


if __name__ == "__main__":
    sys.stderr.write(f"{write_chart(Path(sys.argv[1]))}\n")
