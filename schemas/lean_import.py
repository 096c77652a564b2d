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
    if library in sys.modules:
        return
    finders = (it for it in sys.meta_path if isinstance(it, _Finder) and it.library == library)
    finder = next(finders, None)
    if finder is None:
        finder = _Finder(library)
        sys.meta_path.insert(0, finder)
    finder.instead[unneeded] = instead


class _Finder:
    """Finds one library, as ever; what it gets while it is executed is another thing."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.instead: dict[str, ModuleType | None] = {}

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
                for unneeded, instead in self.instead.items():
                    sys.modules.setdefault(unneeded, instead)  # type: ignore[arg-type] # None: not installed
                try:
                    execute(module)
                finally:
                    for unneeded, instead in self.instead.items():
                        if sys.modules.get(unneeded, self) is instead:
                            del sys.modules[unneeded]

            spec.loader.exec_module = execute_without  # type: ignore[method-assign]
        return spec
