"""nats-py without its transport over WebSockets, which no link here uses.

It loads `aiohttp` wherever that is installed: 11 MB and 0.1 s for each process and each command.
"""

from __future__ import annotations

import sys

_LIBRARY = "aiohttp"


def leave_out() -> None:
    """Have `aiohttp` count as not installed, unless it is loaded already."""
    sys.modules.setdefault(_LIBRARY, None)  # type: ignore[arg-type] # so says the import system


def allow() -> None:
    """Let it be imported again, by those who do speak HTTP."""
    if sys.modules.get(_LIBRARY, sys) is None:
        del sys.modules[_LIBRARY]
