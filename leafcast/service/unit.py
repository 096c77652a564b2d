"""The systemd unit of a node that joined: text, by what its start line says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.values.identity import NodePath

MARK = "# Written by `leafcast join --service`; `leafcast leave` takes it away."
WATCHDOG_SECONDS = 60
STOP_SECONDS, LAUNCHER_STOP_SECONDS = 60, 90
"""A launcher first gives its node 45 s, and may be installing meanwhile."""
HARDENING = """\
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
PrivateDevices=yes
PrivateTmp=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
"""
"""What none of our programs needs is taken from them. Each unit in deploy/systemd has it, too."""
CREDENTIALS = "${CREDENTIALS_DIRECTORY}"
"""Where systemd puts the files that a unit loads, for its process alone."""
JOIN = "join"
"""Under this name the unit finds whom to ask, and with which token."""


@dataclass(frozen=True, slots=True)
class NodeUnit:
    """The unit of one node."""

    path: NodePath
    # The program, absolute.
    program: str
    # The file with an address and a token; its reader is the service manager.
    invitation: str
    # Options with their values, as typed; none of files.
    options: Sequence[str] = ()
    # Files that options name, absolute, by those options.
    files: Mapping[str, str] = field(default_factory=dict)
    # The program that keeps the node up to date, absolute; "" where none does.
    launcher: str = ""

    @property
    def name(self) -> str:
        return service_name(self.path)

    @property
    def text(self) -> str:
        """What the file says."""
        loaded = {JOIN: self.invitation}
        folder = ["--data-dir", f"%S/leafcast/{self.name}/node"]
        words = [quoted(self.program)]
        if self.launcher:
            words = [quoted(self.launcher), *folder, "--"]
        words += ["join", f"{CREDENTIALS}/{JOIN}", *folder, *map(quoted, self.options)]
        for option, file in self.files.items():
            loaded[option.lstrip("-")] = file
            words += [option, f"{CREDENTIALS}/{option.lstrip('-')}"]
        credentials = "".join(
            f"LoadCredential={name}:{escaped(file)}\n" for name, file in loaded.items()
        )
        return (
            f"{MARK}\n"
            "[Unit]\n"
            f"Description=Leafcast node {self.path}\n"
            "Wants=network-online.target\n"
            "After=network-online.target\n"
            "StartLimitIntervalSec=0\n"
            "\n"
            "[Service]\n"
            "Type=notify\n"
            f"WatchdogSec={WATCHDOG_SECONDS}\n"
            "DynamicUser=yes\n"
            f"StateDirectory=leafcast/{self.name}\n"
            "StateDirectoryMode=0700\n"
            # A user that systemd makes has none where its module for names is not installed.
            f"Environment=HOME=%S/leafcast/{self.name}\n"
            f"{credentials}"
            f"ExecStart={' '.join(words)}\n"
            "Restart=always\n"
            "RestartSec=5\n"
            f"TimeoutStopSec={LAUNCHER_STOP_SECONDS if self.launcher else STOP_SECONDS}\n"
            "KillMode=mixed\n"
            f"{HARDENING}"
            "\n"
            "[Install]\n"
            "WantedBy=multi-user.target\n"
        )


def service_name(path: NodePath) -> str:
    """The unit of a node, without its ending: leafcast-emea.store-7.

    A member of the centre has a name that no node has.
    """
    return f"leafcast-{'.'.join(path.names) or '_centre'}"


def quoted(word: str) -> str:
    """One word of a command line in a unit: nothing in it means anything to systemd."""
    plain = escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{plain}"' if set(plain) & set(" \t\"'\\;") or not plain else plain


def escaped(text: str) -> str:
    return text.replace("%", "%%")
