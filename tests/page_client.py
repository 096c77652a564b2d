"""What a browser says to the page's server and hears from it, word by word, with its cookies."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from leafcast.ui.page_place import PagePlace
from leafcast.ui.serving import listening, serve
from leafcast.ui.views import NodeViews, PageViews, Views
from relay.adapters.clock import SystemClock, SystemDice


class Answer:
    """An answer whose head was read."""

    def __init__(self, status: int, headers: Mapping[str, str], reader: asyncio.StreamReader):
        self.status, self.headers, self._reader = status, headers, reader

    async def text(self) -> str:
        """All of it, to the end of the connection."""
        return b"".join([line async for line in self._body()]).decode()

    async def json(self) -> Any:
        return json.loads(await self.text())

    async def events(self) -> AsyncIterator[tuple[str, Any]]:
        """The events of a stream, as they come."""
        event = ""
        async for line in self._body():
            word, _, said = line.decode().strip().partition(": ")
            if word == "event":
                event = said
            elif word == "data":
                yield event, json.loads(said)

    async def _body(self) -> AsyncIterator[bytes]:
        if self.headers.get("transfer-encoding") != "chunked":
            yield await self._reader.read()
            return
        rest = b""
        while size := int((await self._reader.readline()).strip() or b"0", 16):
            rest += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield line + b"\n"
        yield rest


class Client:
    """A browser that keeps the cookies that it is given."""

    def __init__(self) -> None:
        self.base, self.port = "", 0
        # What its page says to act.
        self.act = ""
        self.cookies: dict[str, str] = {}

    @asynccontextmanager
    async def asked(
        self, path: str, method: str = "GET", body: str = "", **headers: str
    ) -> AsyncIterator[Answer]:
        """The answer to one request; headers by their names with `_` for `-`."""
        place = urlsplit(self.base)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        said = {"host": place.netloc, "connection": "close"}
        if self.cookies:
            said["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body:
            said["content-length"] = str(len(body.encode()))
        said |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items())]
        writer.write("\r\n".join([*lines, "", body]).encode())
        try:
            status = int((await reader.readline()).split()[1])
            told: dict[str, str] = {}
            while line := (await reader.readline()).decode().strip():
                name, _, value = line.partition(": ")
                told[name.lower()] = value
            if cookie := told.get("set-cookie"):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value
            yield Answer(status, told, reader)
        finally:
            writer.close()


@asynccontextmanager
async def served(
    facts: Any, acts: Any = None, place: PagePlace | None = None
) -> AsyncIterator[tuple[asyncio.Queue[str], Client]]:
    """The page's addresses as they are printed, newest last, and a browser without a cookie."""
    addresses: asyncio.Queue[str] = asyncio.Queue()
    place = place or PagePlace()
    listener = listening(place)
    client, machine = Client(), (SystemClock(), SystemDice())
    client.port = listener.getsockname()[1]
    client.base = f"http://127.0.0.1:{client.port}"
    views: PageViews = NodeViews(facts)
    if not hasattr(facts, "here"):
        views = Views(facts, machine[0], may_act=acts is not None)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(
            serve(views, listener, place, addresses.put_nowait, machine, acts)
        )
        yield addresses, client
        serving.cancel()


@asynccontextmanager
async def let_in(facts: Any, acts: Any = None) -> AsyncIterator[Client]:
    """A browser that was let in."""
    async with served(facts, acts) as (addresses, client):
        address = await addresses.get()
        async with client.asked(address.removeprefix(client.base)) as answer:
            assert answer.status == 303
            client.act = answer.headers["location"].partition("#act=")[2]
        yield client


def events_of(followed: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """The events of a live view, as the lines of its stream tell them."""
    event = ""
    for line in followed:
        word, _, said = line.decode().strip().partition(": ")
        if word == "event":
            event = said
        elif word == "data":
            yield event, json.loads(said)
