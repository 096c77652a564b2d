"""Whether a parent listens at an address: asked as a child's server asks it, but with no key.

A nats-server says INFO first, at a port for links inside TLS, else inside the WebSocket that it
lets through. That ends the question.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from relay.adapters.server.nats_config import TLS_SCHEMES
from relay.adapters.server.upgrade_probe import (
    LINE_BYTES_MAX,
    Streams,
    any_certificate,
    connected,
    end_of,
    upgrade_request,
)
from relay.adapters.tls.authority import good_between

ANSWER_SECONDS = 3.0
"""So long whoever took a connection may be silent."""
_SHOWN_MAX = 60
_WEBSOCKETS = ("ws", "wss")
_INFO, _HTTP, _UPGRADED = b"INFO {", b"HTTP/", "101"
_OF_CLIENTS = b'"client_ip":'
_SEE = "see whether address and port are the ones that the centre tells"
_PASSED_ON = (
    "have the proxy there pass on Upgrade and Connection, to the port that takes WebSockets, or "
    "see whether the path is right"
)


class NoParent(OSError):
    """Someone else answers there, or nobody: `why`, and the `remedy`."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


@dataclass(frozen=True, slots=True)
class Parent:
    """What a parent showed; times are seconds since 1970."""

    # From when until when its certificate is good; None in clear.
    good: tuple[float, float] | None = None
    # What time it is there, and was here then; None where it does not say.
    told: tuple[float, float] | None = None


async def parent_at(url: str, proxy: str, now: Callable[[], float], seconds: float) -> Parent:
    """Find a parent there, connecting within some seconds.

    Whoever signed its certificate: that is judged by the node that joins. Raises NoParent;
    TimeoutError or any other OSError if there is no connection.
    """
    parts = urlsplit(url)
    async with asyncio.timeout(seconds):
        reader, writer = await connected(*end_of(url), proxy)
    try:
        if parts.scheme in TLS_SCHEMES:
            await _secure(writer, parts, proxy)
        good = _good(writer) if parts.scheme in TLS_SCHEMES else None
        if parts.scheme in _WEBSOCKETS:
            told = await _upgrade((reader, writer), url, now)
        else:
            await _greeting((reader, writer), url)
            told = None
    finally:
        writer.transport.abort()
    if told is None and parts.scheme in _WEBSOCKETS:
        told = await _time_at(url, proxy, now)
    return Parent(good, told)


async def _secure(writer: asyncio.StreamWriter, parts: SplitResult, proxy: str) -> None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await writer.start_tls(any_certificate(), server_hostname=parts.hostname)
    except TimeoutError:
        silent = f"it takes the connection, and no TLS within {ANSWER_SECONDS:g} s"
        raise NoParent(silent, _SEE) from None
    except OSError as error:
        # What is it, that speaks no TLS? It is asked anew, in clear.
        line = b""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                streams = await connected(*end_of(parts.geturl()), proxy)
            try:
                line = await _first_line(streams, parts.geturl())
            finally:
                streams[1].transport.abort()
        speaks = f"{_who(line)} answers in clear" if line else "it speaks no TLS"
        if isinstance(error, ssl.SSLError) and error.reason and not line:
            speaks += f" that fits ({error.reason})"
        raise NoParent(f"{speaks}; a parent at {parts.scheme}:// speaks TLS", _SEE) from error


async def _upgrade(
    streams: Streams, url: str, now: Callable[[], float]
) -> tuple[float, float] | None:
    """Have it let a WebSocket through, in which it is a parent; what time it says, if it does."""
    reader, writer = streams
    writer.write(upgrade_request(url))
    line = await _line(reader)
    wanted = "a parent there lets a WebSocket through"
    if line.startswith(_INFO):
        remedy = "write tls://HOST:PORT for this port, or name the one for WebSockets"
        raise NoParent(f"{_who(line)} answers, no WebSocket; {wanted}", remedy)
    if not line.startswith(_HTTP):
        raise NoParent(f"{_who(line)} answers; {wanted}", _SEE)
    told = _date(await _headers(reader), now())
    if (status := _status(line)).partition(" ")[0] != _UPGRADED:
        raise NoParent(f"a web server answers `{status}`; {wanted}", _PASSED_ON)
    line = await _line(reader)
    # A frame's few bytes come before it.
    if (at := line.find(_INFO)) < 0:
        inside = "a parent says INFO in it"
        raise NoParent(f"it lets a WebSocket through, and is no nats-server; {inside}", _SEE)
    _check_port(line[at:])
    return told


async def _greeting(streams: Streams, url: str) -> None:
    line = await _first_line(streams, url)
    if line.startswith(_INFO):
        _check_port(line)
        return
    scheme, wanted = urlsplit(url).scheme, "a parent there says INFO by itself"
    if line.startswith(_HTTP):
        status = _status(line)
        web = "wss" if scheme in TLS_SCHEMES else "ws"
        remedy = f"write {web}:// if it is to be reached by WebSockets; else {_SEE}"
        is_upgraded = status.partition(" ")[0] == _UPGRADED
        who = "it takes WebSockets" if is_upgraded else f"a web server answers `{status}`"
        raise NoParent(f"{who}; {wanted}", remedy)
    remedy = _SEE if scheme in TLS_SCHEMES else f"write tls:// if it takes TLS alone; else {_SEE}"
    raise NoParent(f"{_who(line)} answers; {wanted}", remedy)


def _check_port(line: bytes) -> None:
    if _OF_CLIENTS in line:
        who = "a nats-server answers, at its port for clients; a parent has one for links"
        raise NoParent(who, "name its port for links (leafnodes)")


async def _first_line(streams: Streams, url: str) -> bytes:
    """What it says by itself, or else to who asks for a WebSocket."""
    reader, writer = streams
    with suppress(NoParent):
        return await _line(reader)
    writer.write(upgrade_request(url))
    return await _line(reader)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Its next line, or raises NoParent."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            line = await reader.readline()
    except TimeoutError:
        why = f"it takes the connection, and says nothing within {ANSWER_SECONDS:g} s"
        raise NoParent(why, _SEE) from None
    except (OSError, ValueError):
        line = b""
    if not line:
        raise NoParent("it takes the connection, and ends it without a word", _SEE)
    return line


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    """Those of an answer whose first line was read."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError):
        return {}
    pairs = (line.partition(":") for line in head.decode("latin-1").splitlines())
    return {name.strip().lower(): said.strip() for name, _, said in pairs}


async def _time_at(url: str, proxy: str, now: Callable[[], float]) -> tuple[float, float] | None:
    """What time a parent says to who asks for a page: with the WebSocket it may say none."""
    with suppress(OSError, TimeoutError, NoParent):
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await connected(*end_of(url), proxy)
            try:
                if urlsplit(url).scheme in TLS_SCHEMES:
                    host = urlsplit(url).hostname
                    await writer.start_tls(any_certificate(), server_hostname=host)
                writer.write(upgrade_request(url, upgrades=False))
                await _line(reader)
                return _date(await _headers(reader), now())
            finally:
                writer.transport.abort()
    return None


def _date(headers: dict[str, str], here: float) -> tuple[float, float] | None:
    try:
        return parsedate_to_datetime(headers["date"]).timestamp(), here
    except (KeyError, ValueError, OverflowError):
        return None


def _good(writer: asyncio.StreamWriter) -> tuple[float, float] | None:
    """From when until when the certificate of the other side is good."""
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return good_between(shown) if shown else None


def _status(line: bytes) -> str:
    """As in `404 Not Found`."""
    return _shown(line).partition(" ")[2].strip()


def _who(line: bytes) -> str:
    if line.startswith(_INFO):
        return "a nats-server"
    return "a web server" if line.startswith(_HTTP) else f"`{_shown(line)}`"


def _shown(line: bytes) -> str:
    """Nothing in it steers a terminal."""
    text = line[:LINE_BYTES_MAX].decode(errors="replace").strip()
    return "".join(it if it.isprintable() else "?" for it in text)[:_SHOWN_MAX]
