"""A library is loaded without a module that it would load, and can do without.

What a process loads it keeps: an edge of 46 MB has no room for what nobody calls.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def load_without(library: str, unneeded: str, instead: ModuleType | None = None) -> None:
    """While `library` is loaded, `unneeded` is `instead`; None counts as not installed.

    It has no effect on what is loaded already, nor once the library is.
    """
    if library not in sys.modules and library not in {
        it.library for it in sys.meta_path if isinstance(it, _Finder)
    }:
        sys.meta_path.insert(0, _Finder(library, unneeded, instead))


class _Finder:
    """Finds one library, as ever; what it gets while it is executed is another thing."""

    def __init__(self, library: str, unneeded: str, instead: ModuleType | None) -> None:
        self.library, self._unneeded, self._instead = library, unneeded, instead

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the library is, the first time; of another one, and of none, nothing."""
        if name != self.library:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_without(module: ModuleType) -> None:
                sys.modules.setdefault(self._unneeded, self._instead)  # type: ignore[arg-type] # None: not installed
                try:
                    execute(module)
                finally:
                    if sys.modules.get(self._unneeded, self) is self._instead:
                        del sys.modules[self._unneeded]

            spec.loader.exec_module = execute_without  # type: ignore[method-assign]
        return spec
