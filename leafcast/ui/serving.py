"""The page's server on this machine: a port, a session with the tree, and browsers let in."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from leafcast.data_dir import DataDir
from leafcast.ui.access import PageEntrance
from leafcast.ui.acts import PageActs, TreeActs
from leafcast.ui.app import make_app
from leafcast.ui.facts import PlanText, TreeFacts
from leafcast.ui.kept_session import KeptSession
from leafcast.ui.live import LiveViews
from leafcast.ui.node_facts import RunningNode
from leafcast.ui.page_place import PagePlace
from leafcast.ui.views import NodeViews, PageViews, Views
from relay.adapters.clock import SystemClock, SystemDice
from relay.ports import Clock, Dice
from schemas.values.faults import Unusable

CONNECTIONS_MAX = 1_000
END_SECONDS = 1
LOOK_SECONDS = 60.0
"""So often it is looked whether there is another certificate."""

TellAddress = Callable[[str], None]
log = logging.getLogger("leafcast")


class PagePortTaken(Unusable):
    """A port that cannot be listened at; says why, and what to do."""

    word = "port "


async def serve_tree(
    data_dir: Path | None,
    place: PagePlace,
    tell: TellAddress,
    plan_text: PlanText,
    *,
    may_act: bool = False,
    waits: bool = False,
) -> None:
    """Serve the page of the tree of a data directory at a host and port until cancelled.

    In the directory of a node below the centre it is the page of that node, and changes nothing.
    `tell` is told the address for the next browser, again each time that one was used. Raises
    PagePortTaken, and NotRunning if there is no tree at the start. With `may_act` a person can have
    some things done there. With `waits` the tree may come later.
    """
    clock, dice = SystemClock(), SystemDice()
    kept = KeptSession(data_dir, clock)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(kept.keep())
        if not waits:
            async with kept.session():
                pass
        is_of_node = DataDir.at(data_dir).is_of_node_below()
        try:
            acts: PageActs | None = None
            views: PageViews = NodeViews(RunningNode(kept))
            if not is_of_node:
                acts = TreeActs(kept) if may_act else None
                facts = TreeFacts(kept, clock, dice, plan_text)
                views = Views(facts, clock, may_act=may_act)
            await serve(views, listening(place), place, tell, (clock, dice), acts)
        finally:
            keeping.cancel()


async def serve(
    views: PageViews,
    listener: socket.socket,
    place: PagePlace,
    tell: TellAddress,
    machine: tuple[Clock, Dice],
    acts: PageActs | None = None,
) -> None:
    """Serve the page of these views until cancelled; with `acts` it does them, too."""
    clock, dice = machine
    entrance = PageEntrance(place.address(listener.getsockname()[1]), dice)
    async with asyncio.TaskGroup() as group:
        live = LiveViews(clock, group)

        def let_in() -> None:
            tell(entrance.new_address())

        app = make_app(views, live, entrance, clock, let_in, acts)
        config = uvicorn.Config(
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
            ssl_certfile=place.tls.certificate if place.tls else None,
            ssl_keyfile=place.tls.key if place.tls else None,
        )
        server = _Server(config)
        renewing = group.create_task(_renew(config, place, clock), name="certificate")
        tell(entrance.new_address())
        # Cancelled it would leave without a word to the browsers.
        serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        finally:
            renewing.cancel()
            await live.end()
            server.should_exit = True
            await serving
            listener.close()


class _Server(uvicorn.Server):
    """Leaves signals to the program, which cancels it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _renew(config: uvicorn.Config, place: PagePlace, clock: Clock) -> None:
    """Show a certificate that the user put in the place of the one before, without end."""
    shown = refused = _changed_at(place)
    while place.tls is not None:
        await clock.sleep(LOOK_SECONDS)
        now = _changed_at(place)
        if now == shown or config.ssl is None:
            continue
        pair = place.tls.certificate, place.tls.key
        try:
            # A context that refuses a key keeps its certificate: the one in use gets only pairs.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*pair)
            config.ssl.load_cert_chain(*pair)
        except (OSError, ssl.SSLError) as error:
            if now != refused:
                log.warning(
                    "%s and %s are not taken up, the page goes on with those before: %s; "
                    "put a certificate there and its key",
                    *pair,
                    error,
                )
            refused = now
        else:
            shown = now


def _changed_at(place: PagePlace) -> tuple[int, ...]:
    """When the files of the certificate were written; nothing while one is not there."""
    if place.tls is None:
        return ()
    try:
        return tuple(it.stat().st_mtime_ns for it in (place.tls.certificate, place.tls.key))
    except OSError:
        return ()


def listening(place: PagePlace) -> socket.socket:
    """A socket that listens there; raises PagePortTaken."""
    host, port = place.host, place.port
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
