"""The page over HTTP: its own files, `/api/v1` as JSON, and the same views as they change."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from importlib.metadata import version
from importlib.resources import files

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leafcast.ui.access import HEADERS, PageEntrance, Verdict
from leafcast.ui.act_route import ActRoute
from leafcast.ui.acts import PageActs
from leafcast.ui.http_answers import answered, error_answer, refused
from leafcast.ui.live import LiveViews, TooManyWatchers, whole_text
from leafcast.ui.openapi import API, openapi_document
from leafcast.ui.patches import harmless
from leafcast.ui.view_table import NODE_VIEWS, ViewKind
from leafcast.ui.views import PageViews
from relay.ports import Clock

PLAN_BYTES_MAX = 4_000_000
_FILES = files("leafcast.ui") / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OF_TREE, _OF_NODE = '<body data-of="tree">', '<body data-of="node">'
LetIn = Callable[[], None]
"""Told that a browser was let in, by an address that nobody can use again."""


def make_app(
    views: PageViews,
    live: LiveViews,
    entrance: PageEntrance,
    clock: Clock,
    let_in: LetIn,
    acts: PageActs | None = None,
) -> Starlette:
    """The page of a tree; whoever asks is judged before anything else is done.

    With `acts` it does what a person says there; else it changes nothing.
    """
    page = _Page(views, live, entrance, clock)
    acting = ActRoute(acts, entrance)
    routes = [
        Route("/static/{name}", _static),
        Route(f"{API}/live/{{name}}", page.follow),
        Route(f"{API}/plan", page.plan, methods=["POST"]),
        Route(f"{API}/act", acting.act, methods=["POST"]),
        Route(f"{API}/openapi.json", page.described),
        Route(f"{API}/{{name}}", page.once),
        # Each view has an address of its own, and the page finds out which.
        Route("/{address:path}", page.shell),
    ]
    guard = Middleware(_Guard, entrance, clock, let_in, acts=acts is not None)
    return Starlette(routes=routes, middleware=[guard])


class _Guard:
    """Lets through what `PageEntrance` lets in, and puts the headers on each answer."""

    def __init__(
        self, app: ASGIApp, entrance: PageEntrance, clock: Clock, let_in: LetIn, *, acts: bool
    ) -> None:
        self._app, self._entrance, self._clock, self._let_in = app, entrance, clock, let_in
        self._acts = acts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), said.encode()) for name, said in HEADERS.items()]
                names = {name for name, _ in more}
                kept = [it for it in message["headers"] if it[0].lower() not in names]
                message["headers"] = kept + more
            await send(message)

        answer = self._answer(Request(scope))
        await (answer or self._app)(scope, receive, guarded)

    def _answer(self, request: Request) -> Response | None:
        """What to say instead of the page; None of who may see it."""
        # Who only looks what an address is, as chats do, uses up no token.
        token = request.query_params.get("token") if request.method == "GET" else None
        if token is not None and self._entrance.is_ours(request.headers) == "let in":
            return self._by_token(request, token)
        verdict = self._judged(request)
        return None if verdict == "let in" else refused(request, verdict)

    def _by_token(self, request: Request, token: str) -> Response:
        """Let the browser in, at an address without the token."""
        secrets = self._entrance.take(token, self._clock.now().seconds)
        if secrets is None:
            known = self._judged(request) == "let in"
            return RedirectResponse(_path(request), 303) if known else refused(request, "no cookie")
        # A browser sends what is behind # to nobody, not even to this server.
        where = f"{_path(request)}#act={secrets.act}" if self._acts else _path(request)
        answer = RedirectResponse(where, 303)
        answer.set_cookie(
            self._entrance.cookie,
            secrets.cookie,
            path="/",
            secure=self._entrance.secure,
            httponly=True,
            samesite="strict",
        )
        self._let_in()
        return answer

    def _judged(self, request: Request) -> Verdict:
        now = self._clock.now().seconds
        return self._entrance.judge(request.headers, request.cookies, now)


def _path(request: Request) -> str:
    """Where it goes on; never to another server, which a path that begins with `//` would name."""
    return "/" + request.url.path.lstrip("/")


class _Page:
    """The views of the page, once or as they change."""

    def __init__(
        self, views: PageViews, live: LiveViews, entrance: PageEntrance, clock: Clock
    ) -> None:
        self._views, self._live, self._entrance, self._clock = views, live, entrance, clock
        self._kinds: Mapping[str, ViewKind] = views.kinds

    async def shell(self, request: Request) -> Response:
        """What shows each view; it is told whether the page is a tree's or one node's."""
        if request.url.path.startswith(("/api", "/static")):
            remedy = f"{API}/openapi.json says what there is"
            return error_answer(404, "NotFound", "there is no such thing", remedy)
        text = (_FILES / "index.html").read_text(encoding="utf-8")
        if self._kinds is NODE_VIEWS:
            text = text.replace(_OF_TREE, _OF_NODE)
        return Response(text, media_type="text/html")

    async def described(self, _: Request) -> Response:
        return JSONResponse(openapi_document(version("leafcast"), self._kinds))

    async def once(self, request: Request) -> Response:
        return await answered(request, self._once)

    async def follow(self, request: Request) -> Response:
        return await answered(request, self._follow)

    async def plan(self, request: Request) -> Response:
        """What applying the body would do: YAML, sent by this page."""
        # Each browser says with a POST where it comes from; without that nobody knows.
        if "origin" not in request.headers:
            return refused(request, "another origin")
        text = bytearray()
        async for piece in request.stream():
            text += piece
            if len(text) > PLAN_BYTES_MAX:
                said, remedy = (
                    f"more than {PLAN_BYTES_MAX} bytes",
                    "plan it by leafcast plan -f FILE",
                )
                return error_answer(413, "TooLarge", said, remedy)

        async def planned(_: Request) -> Response:
            seen = harmless(await self._views.plan(text.decode(errors="replace")))
            said = whole_text(seen, self._clock.now().wall_ms)
            return Response(said, media_type="application/json")

        return await answered(request, planned)

    async def _once(self, request: Request) -> Response:
        name, words = _asked(request)
        key, look = self._views.named(name, words)
        said = await self._live.once(key, look, self._kinds[name].pause)
        return Response(said, media_type="application/json")

    async def _follow(self, request: Request) -> Response:
        name, words = _asked(request)
        key, look = self._views.named(name, words)
        until = self._entrance.until(request.cookies)

        async def messages() -> AsyncGenerator[ServerSentEvent]:
            try:
                async for message in self._live.watch(key, look, self._kinds[name].pause):
                    # It comes again, and is told then that it has to show a token.
                    if self._clock.now().seconds >= until:
                        return
                    yield ServerSentEvent(message.text, event=message.event)
            except TooManyWatchers:
                said = {"code": "Busy", "message": "too many browsers look at it"}
                text = {"error": {**said, "remedy": "close some", "away": False}}
                yield ServerSentEvent(json.dumps(text), event="failed")

        return EventSourceResponse(messages(), send_timeout=10)


def _asked(request: Request) -> tuple[str, Mapping[str, str]]:
    """The view that is asked for, and its words."""
    return str(request.path_params["name"]), dict(request.query_params)


async def _static(request: Request) -> Response:
    name = str(request.path_params["name"])
    suffix = name[name.rfind(".") :]
    # By the list of what is there: no path of a request is ever opened.
    there = {it.name: it for it in _FILES.iterdir() if it.is_file()}
    if suffix not in _TYPES or name not in there:
        return Response("there is no such file\n", 404, media_type="text/plain")
    return Response(there[name].read_bytes(), media_type=_TYPES[suffix])
