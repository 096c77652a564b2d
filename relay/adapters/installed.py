"""What is installed: the version of a package, and its files.

`importlib.metadata` says it, and takes 1.3 MB of each process: it reads archives and mail, too.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

METADATA = "importlib.metadata"
_FIELD = "Version: "


@cache
def installed_version(package: str) -> str:
    """What its installer wrote; raises as `importlib.metadata.version`, which is asked last."""
    _, lines = _written(package, "METADATA")
    said = next((line for line in lines if line.startswith(_FIELD)), "")
    return said.removeprefix(_FIELD) or str(import_module(METADATA).version(package))


def installed_files(package: str) -> list[Path]:
    """What its installer laid down; nothing where it is not installed."""
    place, lines = _written(package, "RECORD")
    return [place / line.partition(",")[0] for line in lines]


class Versions(ModuleType):
    """Stands in for `importlib.metadata`: says versions; for all else that is loaded."""

    version = staticmethod(installed_version)

    def __init__(self) -> None:
        super().__init__(METADATA)

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":
            # The import system looks whether it is a package.
            raise AttributeError(name)
        if sys.modules.get(METADATA) is self:
            del sys.modules[METADATA]
        return getattr(import_module(METADATA), name)


def _written(package: str, name: str) -> tuple[Path, list[str]]:
    """Where a package lies, and the lines of what its installer wrote about it; else none."""
    for place in map(Path, sys.path):
        for file in place.glob(f"{package.replace('-', '_')}-*.dist-info/{name}"):
            return place, file.read_text(encoding="utf-8").splitlines()
    return Path(), []
