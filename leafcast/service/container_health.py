"""`HEALTHCHECK` of the image: whether what the container runs still answers for its health.

It asks where the container's first process was told to answer, by its own words. Who was not told
so, as one command or a nats-server alone, is well as long as it runs.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

ASK_SECONDS = 4.0
_PORT, _HOST = "--health-port", "--health-host"
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - it is asked here


def health_address(words: Sequence[str]) -> tuple[str, int] | None:
    """Where a process with these words answers, if anywhere."""
    parted = [part for word in words for part in _parted(word)]
    said = dict(pairwise(parted))
    host, port = said.get(_HOST, "127.0.0.1"), said.get(_PORT, "")
    return (_ANYWHERE.get(host, host), int(port)) if port.isdecimal() else None


def _parted(word: str) -> list[str]:
    return word.split("=", 1) if word.startswith("--health-") else [word]


def is_live(host: str, port: int) -> bool:
    """Whether its loop turns: it answers."""
    asked = http.client.HTTPConnection(host, port, timeout=ASK_SECONDS)
    try:
        asked.request("GET", "/livez")
        return asked.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()


def main(first: Path = Path("/proc/1/cmdline")) -> int:
    """0 if it is well, else 1."""
    where = health_address(first.read_text(encoding="utf-8", errors="replace").split("\0"))
    if where is None or is_live(*where):
        return 0
    sys.stdout.write(f"nobody answers at http://{where[0]}:{where[1]}/livez\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
