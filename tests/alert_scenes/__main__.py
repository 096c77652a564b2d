"""`python -m tests.alert_scenes` records all scenes again, as root, in two minutes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.alert_scenes import in_memory, on_servers

if __name__ == "__main__":
    for name in in_memory.SCENES:
        in_memory.scraped(name).write(name)
    with tempfile.TemporaryDirectory() as folder:
        for name, series in on_servers.scraped(Path(folder)).items():
            series.write(name)
