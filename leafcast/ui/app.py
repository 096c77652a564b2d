"""The page over HTTP: its own files, `/api/v1` as JSON, and the same views as they change."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ui.access import HEADERS, PageEntrance
from leafcast.ui.live import LOOK_SECONDS, LiveViews, TooManyWatchers, failure_form, whole_text
from leafcast.ui.patches import harmless
from leafcast.ui.views import PAUSES, NoSuchView, Views
from relay.ports import Clock
from relay.space_errors import SpaceError

API = "/api/v1"
PLAN_BYTES_MAX = 4_000_000
_FILES = files("leafcast.ui") / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_NOT_FOUND_STATUS = {"NotFound": 404, "Invalid": 400}
_REFUSALS = {
    "no cookie": "This page lets a browser in once, by the address that `leafcast ui` printed. "
    "That address was used, or is not the newest one. Open the newest address that it prints.",
    "another host": "This server answers at its own address only. Open the address that "
    "`leafcast ui` printed.",
    "another origin": "Another page sent this request. Open the address that `leafcast ui` printed "
    "by typing or pasting it.",
}

LetIn = Callable[[], None]
"""Told that a browser was let in, by an address that nobody can use again."""


def make_app(
    views: Views, live: LiveViews, entrance: PageEntrance, clock: Clock, let_in: LetIn
) -> Starlette:
    """The page of a tree; whoever asks is judged before anything else is done."""
    page = _Page(views, live, clock)
    routes = [
        Route("/static/{name}", _static),
        Route(f"{API}/live/{{name}}", page.follow),
        Route(f"{API}/plan", page.plan, methods=["POST"]),
        Route(f"{API}/{{name}}", page.once),
        # Each view has an address of its own, and the page finds out which.
        Route("/{address:path}", _shell),
    ]
    return Starlette(routes=routes, middleware=[Middleware(_Guard, entrance, let_in)])


class _Guard:
    """Lets through what `PageEntrance` lets in, and puts the headers on each answer."""

    def __init__(self, app: ASGIApp, entrance: PageEntrance, let_in: LetIn) -> None:
        self._app, self._entrance, self._let_in = app, entrance, let_in

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
        token = request.query_params.get("token")
        if token is not None and self._entrance.is_ours(request.headers) == "let in":
            return self._by_token(request, token)
        verdict = self._entrance.judge(request.headers, request.cookies)
        return None if verdict == "let in" else _refused(request, verdict)

    def _by_token(self, request: Request, token: str) -> Response:
        """Let the browser in, at an address without the token."""
        secret = self._entrance.take(token)
        if secret is None:
            known = self._entrance.judge(request.headers, request.cookies) == "let in"
            return (
                RedirectResponse(_path(request), 303) if known else _refused(request, "no cookie")
            )
        answer = RedirectResponse(_path(request), 303)
        answer.set_cookie(self._entrance.cookie, secret, path="/", httponly=True, samesite="strict")
        self._let_in()
        return answer


def _path(request: Request) -> str:
    """Where it goes on; never to another server, which a path that begins with `//` would name."""
    return "/" + request.url.path.lstrip("/")


def _refused(request: Request, verdict: str) -> Response:
    said, status = _REFUSALS[verdict], 401 if verdict == "no cookie" else 403
    if request.url.path.startswith(API):
        error = {"code": "NotLetIn", "message": said, "remedy": "", "away": False}
        return JSONResponse({"error": error}, status)
    return Response(said + "\n", status, media_type="text/plain")


class _Page:
    """The views of the page, once or as they change."""

    def __init__(self, views: Views, live: LiveViews, clock: Clock) -> None:
        self._views, self._live, self._clock = views, live, clock

    async def once(self, request: Request) -> Response:
        return await self._answered(request, self._once)

    async def follow(self, request: Request) -> Response:
        return await self._answered(request, self._follow)

    async def plan(self, request: Request) -> Response:
        """What applying the body would do: YAML, sent by this page."""
        # Each browser says with a POST where it comes from; without that nobody knows.
        if "origin" not in request.headers:
            return _refused(request, "another origin")
        text = bytearray()
        async for piece in request.stream():
            text += piece
            if len(text) > PLAN_BYTES_MAX:
                remedy = "plan it by leafcast plan -f FILE"
                said = {"code": "TooLarge", "message": f"more than {PLAN_BYTES_MAX} bytes"}
                return JSONResponse({"error": {**said, "remedy": remedy, "away": False}}, 413)

        async def planned(_: str, __: Mapping[str, str]) -> Response:
            seen = harmless(await self._views.plan(text.decode(errors="replace")))
            said = whole_text(seen, self._clock.now().wall_ms)
            return Response(said, media_type="application/json")

        return await self._answered(request, planned)

    async def _once(self, name: str, words: Mapping[str, str]) -> Response:
        _, look = self._views.named(name, words)
        seen = harmless(await look())
        return Response(whole_text(seen, self._clock.now().wall_ms), media_type="application/json")

    async def _follow(self, name: str, words: Mapping[str, str]) -> Response:
        key, look = self._views.named(name, words)

        async def messages() -> AsyncGenerator[ServerSentEvent]:
            try:
                async for message in self._live.watch(key, look, PAUSES.get(name, LOOK_SECONDS)):
                    yield ServerSentEvent(message.text, event=message.event)
            except TooManyWatchers:
                said = {"code": "Busy", "message": "too many browsers look at it"}
                text = {"error": {**said, "remedy": "close some", "away": False}}
                yield ServerSentEvent(json.dumps(text), event="failed")

        return EventSourceResponse(messages(), send_timeout=10)

    async def _answered(
        self,
        request: Request,
        answer: Callable[[str, Mapping[str, str]], Awaitable[Response]],
    ) -> Response:
        try:
            name = request.path_params.get("name", "")
            return await answer(name, dict(request.query_params))
        except NoSuchView as error:
            said = {"code": "Invalid", "message": str(error), "remedy": "", "away": False}
            return JSONResponse({"error": said}, 400)
        except (CallFailed, NotRunning, SpaceError) as error:
            form: dict[str, Any] = failure_form(error)
            return JSONResponse({"error": form}, _NOT_FOUND_STATUS.get(form["code"], 503))


async def _shell(request: Request) -> Response:
    if request.url.path.startswith(("/api", "/static")):
        return JSONResponse(
            {"error": {"code": "NotFound", "message": "there is no such thing"}}, 404
        )
    return Response((_FILES / "index.html").read_bytes(), media_type="text/html")


async def _static(request: Request) -> Response:
    name = str(request.path_params["name"])
    suffix = name[name.rfind(".") :]
    # By the list of what is there: no path of a request is ever opened.
    there = {it.name: it for it in _FILES.iterdir() if it.is_file()}
    if suffix not in _TYPES or name not in there:
        return Response("there is no such file\n", 404, media_type="text/plain")
    return Response(there[name].read_bytes(), media_type=_TYPES[suffix])
