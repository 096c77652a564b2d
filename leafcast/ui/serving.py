"""The page's server on this machine: a port, a session with the tree, and browsers let in."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from leafcast.ui.access import Address, PageEntrance
from leafcast.ui.acts import PageActs, TreeActs
from leafcast.ui.app import make_app
from leafcast.ui.facts import PlanText, TreeFacts
from leafcast.ui.kept_session import KeptSession
from leafcast.ui.live import LiveViews
from leafcast.ui.node_facts import RunningNode
from leafcast.ui.views import NodeViews, PageViews, Views
from relay.adapters.clock import SystemClock, SystemDice
from relay.ports import Clock, Dice
from schemas.values.faults import Unusable

CONNECTIONS_MAX = 1_000
END_SECONDS = 1

TellAddress = Callable[[str], None]


class PagePortTaken(Unusable):
    """A port that cannot be listened at; says why, and what to do."""

    word = "port "


async def serve_tree(
    data_dir: Path | None,
    place: tuple[str, int],
    tell: TellAddress,
    plan_text: PlanText,
    *,
    may_act: bool = False,
) -> None:
    """Serve the page of the tree of a data directory at a host and port until cancelled.

    In the directory of a node below the centre it is the page of that node, and changes nothing.
    `tell` is told the address for the next browser, again each time that one was used. Raises
    PagePortTaken, and NotRunning if there is no tree at the start. With `may_act` a person can have
    some things done there.
    """
    (host, port), clock, dice = place, SystemClock(), SystemDice()
    kept = KeptSession(data_dir, clock)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(kept.keep())
        async with kept.session() as session:
            is_of_node = session.data_dir.is_of_node_below()
        try:
            acts: PageActs | None = None
            views: PageViews = NodeViews(RunningNode(kept))
            if not is_of_node:
                acts = TreeActs(kept) if may_act else None
                facts = TreeFacts(kept, clock, dice, plan_text)
                views = Views(facts, clock, may_act=may_act)
            await serve(views, listening(host, port), host, tell, (clock, dice), acts)
        finally:
            keeping.cancel()


async def serve(
    views: PageViews,
    listener: socket.socket,
    host: str,
    tell: TellAddress,
    machine: tuple[Clock, Dice],
    acts: PageActs | None = None,
) -> None:
    """Serve the page of these views until cancelled; with `acts` it does them, too."""
    clock, dice = machine
    entrance = PageEntrance(Address(host, listener.getsockname()[1]), dice)
    async with asyncio.TaskGroup() as group:
        live = LiveViews(clock, group)

        def let_in() -> None:
            tell(entrance.new_address())

        app = make_app(views, live, entrance, clock, let_in, acts)
        server = _Server(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS_MAX,
                timeout_graceful_shutdown=END_SECONDS,
            )
        )
        tell(entrance.new_address())
        # Cancelled it would leave without a word to the browsers.
        serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        finally:
            await live.end()
            server.should_exit = True
            await serving
            listener.close()


class _Server(uvicorn.Server):
    """Leaves signals to the program, which cancels it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; raises PagePortTaken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        remedy = "name another: leafcast ui --port PORT; 0 takes any"
        raise PagePortTaken(f"{host}:{port}", error.strerror or str(error), remedy) from error
    return listener
