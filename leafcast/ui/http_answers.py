"""How the page's server says no, and what the tree's errors are over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ui.live import failure_form
from leafcast.ui.openapi import API
from leafcast.ui.views import BadWord, NoSuchView
from relay.space_errors import SpaceError

_STATUS = {
    **dict.fromkeys(("NotFound", "NoSuchNode"), 404),
    **dict.fromkeys(("Refused", "NotHeld", "Conflict"), 409),
    "Invalid": 400,
}
_REFUSALS = {
    "no cookie": "This page lets a browser in once, by the address that `leafcast ui` printed. "
    "That address was used, or is not the newest one, or you were let in 12 hours ago. Open the "
    "newest address that it prints.",
    "another host": "This server answers at its own address only. Open the address that "
    "`leafcast ui` printed.",
    "another origin": "Another page sent this request. Open the address that `leafcast ui` printed "
    "by typing or pasting it.",
}


def refused(request: Request, verdict: str) -> Response:
    """The answer to who is not let in."""
    said, status = _REFUSALS[verdict], 401 if verdict == "no cookie" else 403
    if request.url.path.startswith(API):
        return error_answer(status, "NotLetIn", said, "")
    return Response(said + "\n", status, media_type="text/plain")


def error_answer(status: int, code: str, message: str, remedy: str) -> Response:
    """An error that is not the tree's."""
    said = {"code": code, "message": message, "remedy": remedy, "away": False}
    return JSONResponse({"error": said}, status)


async def answered(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """The answer, or why the tree gives none."""
    try:
        return await answer(request)
    except NoSuchView as error:
        return error_answer(404, "NotFound", str(error), "")
    except BadWord as error:
        return error_answer(400, "Invalid", str(error), "")
    except (CallFailed, NotRunning, SpaceError) as error:
        form: dict[str, Any] = failure_form(error)
        return JSONResponse({"error": form}, _STATUS.get(form["code"], 503))
