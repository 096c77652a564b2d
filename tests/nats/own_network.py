"""A network of a test's own, in which members of a node are cut from each other; it needs root.

All run on its loopback, each member as a group of its own, so that a packet says whose it is.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

_NEW_NETWORK = 0x40000000
GROUPS = {"m1": 5001, "m2": 5002, "m3": 5003}
"""Of each member, by name, the group of its processes."""
TOOLS = ("ip", "iptables")


@contextmanager
def own_network() -> Iterator[None]:
    """What this thread starts and connects meanwhile is in a network of its own."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"NOT RUN: it needs root, and {', '.join(missing) or 'its tools'}")
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if libc.unshare(_NEW_NETWORK):
            pytest.skip(f"NOT RUN: no networks here: {os.strerror(ctypes.get_errno())}")
        try:
            _system("ip", "link", "set", "lo", "up")
            for group in GROUPS.values():
                # A connection is known by who dialled it.
                mark = ("-j", "CONNMARK", "--set-mark", str(group))
                owner = ("-p", "tcp", "--syn", "-m", "owner", "--gid-owner", str(group))
                _system("iptables", "-t", "mangle", "-A", "OUTPUT", *owner, *mark)
            yield
        finally:
            assert not libc.setns(before, _NEW_NETWORK)
    finally:
        os.close(before)


class Partition:
    """Cuts between members, by the ports at which each listens; within `own_network`."""

    def __init__(self, ports: Mapping[str, tuple[int, ...]]) -> None:
        """`ports` are all of each member by name; who else dials them is in no group."""
        self._ports = ports

    def cut(self, name: str, *others: str) -> None:
        """Drop all that passes between this member and these, as a network that is gone does."""
        for other in others:
            self._drop(name, self._ports[other])
            self._drop(other, self._ports[name])

    def cut_from(self, name: str, *ports: int) -> None:
        """Drop all that passes between a member and who listens at these ports."""
        self._drop(name, ports)

    def mend(self) -> None:
        """Let everything through again."""
        _system("iptables", "-F", "OUTPUT")

    def _drop(self, dialler: str, ports: tuple[int, ...]) -> None:
        mark = ("-m", "connmark", "--mark", str(GROUPS[dialler]))
        where = ("-p", "tcp", "-m", "multiport", "--ports", ",".join(map(str, ports)))
        _system("iptables", "-A", "OUTPUT", *where, *mark, "-j", "DROP")


def _system(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
