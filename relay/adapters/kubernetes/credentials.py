"""What is shown to an API server to be let in: headers, and certificates in files of a moment."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay.adapters.kubernetes.exec_credentials import ExecCredentials
from relay.adapters.kubernetes.kubeconfig import ClusterAccess, InvalidKubeconfig, decoded


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM: what the server is to be signed by, and what the client shows."""

    authority: str | None
    certificate: str | None
    key: str | None


def certificates(access: ClusterAccess, by_program: ExecCredentials, folder: Path) -> Certificates:
    """The files, those in the folder that a kubeconfig or a program holds as text."""
    authority = _file(access, access.cluster, "certificate-authority", folder)
    if by_program.certificate:
        certificate = _written(folder / "cert", by_program.certificate.encode())
        key = _written(folder / "key", by_program.key.encode())
        return Certificates(authority, certificate, key)
    return Certificates(
        authority,
        _file(access, access.user, "client-certificate", folder),
        _file(access, access.user, "client-key", folder),
    )


def headers(access: ClusterAccess, by_program: ExecCredentials) -> Iterator[tuple[str, str]]:
    """Who asks, and for whom; raises InvalidKubeconfig."""
    user = access.user
    token = by_program.token or _token(access)
    if not token.isascii() or not token.isprintable():
        said = f"{access.origin}: its token holds characters that no token has: renew it"
        raise InvalidKubeconfig(said)
    if token:
        yield "Authorization", f"Bearer {token}"
    elif user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}"
        yield "Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"
    if user.get("auth-provider"):
        said = f"{access.origin}: auth-provider is not supported: use exec, as with kubelogin"
        raise InvalidKubeconfig(said)
    if user.get("as"):
        yield "Impersonate-User", str(user["as"])
        for group in user.get("as-groups") or ():
            yield "Impersonate-Group", str(group)
        if user.get("as-uid"):
            yield "Impersonate-Uid", str(user["as-uid"])


def _token(access: ClusterAccess) -> str:
    path = access.user.get("tokenFile")
    if not path:
        return str(access.user.get("token") or "").strip()
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = f"{access.origin}: tokenFile {path} cannot be read: correct its mode"
        raise InvalidKubeconfig(said) from error
    if not token:
        raise InvalidKubeconfig(f"{access.origin}: tokenFile {path} is empty: write a token to it")
    return token


def _file(access: ClusterAccess, section: Mapping[str, Any], name: str, folder: Path) -> str | None:
    if section.get(f"{name}-data"):
        return _written(folder / name, decoded(access, section, name))
    return section.get(name) or None


def _written(path: Path, value: bytes) -> str:
    path.touch(mode=0o600)
    path.write_bytes(value)
    return str(path)
