"""The chart as one file, named as Helm names it: `make dist` writes it, the same bytes anywhere."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from pathlib import Path

import yaml

CHART = Path(__file__).resolve().parents[1] / "deploy" / "helm" / "leafcast"
_AT = 315_532_800
"""1980: of no file does the time count."""


def write_chart(folder: Path) -> Path:
    """Put the chart into a folder."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    file = folder / f"{about['name']}-{about['version']}.tgz"
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=_AT, filename="") as pressed,
        tarfile.open(fileobj=pressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for at in sorted(at for at in CHART.rglob("*") if at.is_file()):
            data = at.read_bytes()
            entry = tarfile.TarInfo(f"{about['name']}/{at.relative_to(CHART).as_posix()}")
            entry.size, entry.mtime = len(data), _AT
            tar.addfile(entry, io.BytesIO(data))
    file.write_bytes(packed.getvalue())
    return file


if __name__ == "__main__":
    sys.stderr.write(f"{write_chart(Path(sys.argv[1]))}\n")
