"""What a proxy says to who asks it for a WebSocket: a nats-server tells only that it was no yes."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from relay.adapters.server.link_trouble import NO_WEBSOCKET

PROBE_SECONDS = 5.0
LINE_BYTES_MAX = 1024
_UPGRADED, _CONNECTED = "101", "200"
_PORTS = {"ws": 80, "wss": 443, "http": 80, "https": 443}
_NATS_PORT = 7422
_KEY = "bGVhZmNhc3QgaXMgaGVyZQ=="
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ProxyRefused(OSError):
    """A proxy does not lead there; `status` is what it says, as in `403 Forbidden`, or ""."""

    def __init__(self, status: str) -> None:
        super().__init__(f"the proxy says {status or 'nothing'}")
        self.status = status


async def cause_at(urls: Sequence[str], cause: str, remedy: str, proxy: str = "") -> str:
    """How a cause is said of these addresses, a proxy's own words with it; "" without a cause.

    `proxy` is the way out to them, if there is one.
    """
    if not cause:
        return ""
    status = await refusal_of(urls[0], proxy) if cause == NO_WEBSOCKET else ""
    quoted = f" ({status})" if status else ""
    return f" at {', '.join(urls)}: {cause}{quoted}; {remedy}"


async def refusal_of(url: str, proxy: str = "") -> str:
    """The status with which a ws or wss URL refuses to upgrade, as in `404 Not Found`.

    "" if it does upgrade, or if nothing can be learnt: who believes in certificates is the server.
    """
    host, port = end_of(url)
    context = any_certificate() if urlsplit(url).scheme == "wss" else None
    with suppress(OSError, TimeoutError, ValueError, EOFError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await connected(host, port, proxy)
            try:
                if context is not None:
                    await writer.start_tls(context, server_hostname=host)
                writer.write(upgrade_request(url))
                said = (await reader.readline())[:LINE_BYTES_MAX].decode(errors="replace")
            finally:
                writer.transport.abort()
        status = said.partition(" ")[2].strip()
        return "" if status.startswith(_UPGRADED) else status
    return ""


def any_certificate() -> ssl.SSLContext:
    """For who tells nothing there but that someone asks."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def upgrade_request(url: str, *, upgrades: bool = True) -> bytes:
    """What a nats-server asks to have a WebSocket; the same of a page, where nothing upgrades."""
    parts = urlsplit(url)
    lines = [
        f"GET {parts.path.rstrip('/')}/leafnode HTTP/1.1",
        f"Host: {parts.netloc.rpartition('@')[2]}",
    ]
    if upgrades:
        lines += [
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {_KEY}",
        ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def connected(host: str, port: int, proxy: str = "") -> Streams:
    """A connection, through the HTTP proxy if one is named, as a nats-server makes it.

    Raises ProxyRefused, or any other OSError.
    """
    if not proxy:
        return await asyncio.open_connection(host, port)
    way = urlsplit(proxy)
    secured = way.scheme == "https"
    at = way.port or (443 if secured else 80)
    reader, writer = await asyncio.open_connection(way.hostname, at, ssl=secured or None)
    there = endpoint(host, port)
    lines = [f"CONNECT {there} HTTP/1.1", f"Host: {there}"]
    if way.username:
        known = f"{unquote(way.username)}:{unquote(way.password or '')}".encode()
        lines.append(f"Proxy-Authorization: Basic {b64encode(known).decode()}")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    said = await _head(reader)
    if said.split(" ", 1)[0] != _CONNECTED:
        writer.transport.abort()
        raise ProxyRefused(said)
    return reader, writer


async def _head(reader: asyncio.StreamReader) -> str:
    """The status of an answer whose head ends here; "" if it is none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (EOFError, asyncio.LimitOverrunError):
        return ""
    line = head.partition(b"\r\n")[0][:LINE_BYTES_MAX].decode(errors="replace")
    return line.partition(" ")[2].strip()


def end_of(url: str) -> tuple[str, int]:
    """Host and port of an address."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, _NATS_PORT)


def endpoint(host: str, port: int) -> str:
    """Both as one writes them: `[::1]:443`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
