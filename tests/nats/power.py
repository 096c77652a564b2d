"""A disk whose power can be cut: ext4 in a file, which then has what was synced, and no more."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from tests.nats.chaos_member import Member, until

DISK_BYTES = 512 * 1024 * 1024
# EXT4_IOC_SHUTDOWN of linux/ext4: 2 is that not even the journal's log is written out.
SHUTDOWN, WITHOUT_LOG = 0x8004587D, struct.pack("I", 2)


class PowerDisk:
    """A file system of its own, mounted on `folder`; skips where none may be mounted."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.image = image
        self.folder = folder
        self._cuts = 0
        if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
            pytest.skip("cutting the power of a disk needs root, and mkfs.ext4 (package e2fsprogs)")
        with image.open("wb") as whole:
            whole.truncate(DISK_BYTES)
        _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard", str(image))
        folder.mkdir(parents=True, exist_ok=True)
        self.mount()

    def mount(self) -> None:
        # Ext4 saves files that are renamed over others though nobody syncs them; not each does.
        options = "loop,noauto_da_alloc"
        command = ["mount", "-o", options, str(self.image), str(self.folder)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode:
            pytest.skip(f"no loop device may be mounted here: {said.stderr.strip()}")
        shutil.rmtree(self.folder / "lost+found", ignore_errors=True)

    def sync(self) -> None:
        """Have the disk hold all that was ever written to it."""
        _run("sync", "--file-system", str(self.folder))

    def cut(self) -> None:
        """Lose what is not on the disk; from now on everything there fails with EIO."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, WITHOUT_LOG)
        finally:
            os.close(descriptor)

    def power_on(self) -> None:
        """Mount what the disk holds.

        A copy of it: where another mount namespace still has the file system, it is mounted as it
        is there, with its power cut.
        """
        self._unmount()
        self._cuts += 1
        image = self.image.with_suffix(f".{self._cuts}")
        _run("cp", "--sparse=always", str(self.image), str(image))
        self.image.unlink()
        self.image = image
        self.mount()

    def close(self) -> None:
        self._unmount()
        self.image.unlink(missing_ok=True)

    def _unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], capture_output=True, check=False)


async def cut_power(member: Member, disk: PowerDisk) -> None:
    """Stop all of a node's processes at one moment, with its disk; they and it are gone then."""
    await until(member.server_pids)
    pids = [member.process.pid, *member.server_pids()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    disk.cut()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    await member.ended()
    disk.power_on()


def _run(*command: str) -> None:
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, f"{command}: {said.stderr}"
