"""What is found on this machine, for `check-host`."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from leafcast.service.host_checks import Dialled, HostFacts
from relay.adapters.server.parent_probe import NoParent, Parent, parent_at
from relay.adapters.server.process import server_binary
from relay.adapters.server.upgrade_probe import end_of, endpoint
from relay.ports import Clock

DIAL_SECONDS = 5.0
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")
_ADJTIMEX_BYTES, _STATUS_AT, _UNSYNCHRONIZED = 256, 40, 0x40
"""Of struct timex on a machine of 64 bits: room for it, and where its status is."""


async def host_facts(
    folder: Path, listens: Sequence[int], urls: Sequence[str], proxy: str, clock: Clock
) -> HostFacts:
    """Look at this machine; what does not tell is left open."""
    ways = [await _dial(url, proxy, clock) for url in urls]
    return _found(folder, listens, ways, clock.now().wall_ms / 1000)


def _found(
    folder: Path, listens: Sequence[int], ways: Sequence[Dialled], now_seconds: float
) -> HostFacts:
    # What may not be looked into is found by what is above it.
    there = next(at for at in (folder, *folder.parents) if os.path.exists(at))  # noqa: PTH110
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HostFacts(
        python=sys.version_info[:3],
        server=_server_version(),
        now_seconds=now_seconds,
        made_seconds=Path(__file__).stat().st_mtime,
        is_clock_kept=_is_clock_kept(),
        is_entropy_ready=_is_entropy_ready(),
        folder=str(folder),
        folder_trouble=_trouble_of(there),
        free_bytes=shutil.disk_usage(there).free,
        file_system=_file_system(there),
        # A server raises its own limit as far as it may.
        files_max=max(soft, hard),
        ports=[(f"port {port}", _trouble_at(port)) for port in listens],
        dialled=ways,
        proxies=[name for name in _PROXIES if os.environ.get(name)],
    )


def _server_version() -> str:
    try:
        words = [str(server_binary()), "--version"]
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20).stdout  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(said)
    # One built by hand says what it likes, such as "nats-server: vdev".
    return found[1] if found else said.rpartition(": ")[2].strip()


def _is_clock_kept() -> bool | None:
    """Whether a time service keeps the kernel's clock, by the kernel's word."""
    if platform.system() != "Linux" or sys.maxsize <= 2**32:
        return None
    room = ctypes.create_string_buffer(_ADJTIMEX_BYTES)
    if ctypes.CDLL(None, use_errno=True).adjtimex(room) < 0:
        return None
    status = int.from_bytes(room.raw[_STATUS_AT : _STATUS_AT + 4], sys.byteorder)
    return not status & _UNSYNCHRONIZED


def _is_entropy_ready() -> bool:
    try:
        os.getrandom(1, os.GRND_NONBLOCK)
    except BlockingIOError:
        return False
    except (AttributeError, OSError):
        return True
    return True


def _file_system(folder: Path) -> str:
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return kind_of(folder.resolve(), (line.split() for line in lines))


def kind_of(folder: Path, mounts: Iterable[Sequence[str]]) -> str:
    """The kind of the file system that a folder lies on; the last of those mounted there counts."""
    found, depth = "", 0
    for _, at, kind, *_ in mounts:
        place = Path(at.encode().decode("unicode_escape"))
        if folder.is_relative_to(place) and len(place.parts) >= depth:
            found, depth = kind, len(place.parts)
    return found


def _trouble_of(folder: Path) -> str:
    """Why nothing can be kept in a folder, "" if it can."""
    if not folder.is_dir():
        return f"{folder} is no folder"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder} cannot be written"


def _trouble_at(port: int) -> str:
    """Why nobody can listen at a port, "" if one can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
            tried.listen(1)
        except OSError as error:
            return error.strerror or str(error)
    return ""


async def _dial(url: str, proxy: str, clock: Clock) -> Dialled:
    """Look for the parent at an address, or through a proxy there."""

    def here() -> float:
        return clock.now().wall_ms / 1000

    shown, began, trouble = endpoint(*end_of(proxy)) if proxy else "", clock.now().seconds, ""
    is_nameless, other, parent = False, "", Parent()
    try:
        parent = await parent_at(url, proxy, here, DIAL_SECONDS)
    except NoParent as error:
        trouble, other = error.why, error.remedy
    except TimeoutError:
        trouble = f"nothing came back within {DIAL_SECONDS:g} s"
    except ssl.SSLError as error:
        trouble = f"the proxy shows no good certificate: {error.reason or error}"
    except OSError as error:
        is_nameless = isinstance(error, socket.gaierror)
        # In its own words asyncio says less; what a name server says has no number.
        known = error.errno is not None and error.errno > 0
        trouble = os.strerror(error.errno or 0) if known else error.strerror or str(error)
    took = clock.now().seconds - began
    at = endpoint(*end_of(url))
    return Dialled(at, took, trouble, shown, is_nameless, other, parent.good, parent.told)
