"""Has done what a person said yes to, and nothing that another page sends."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from leafcast.ui.access import PageEntrance
from leafcast.ui.acts import NoSuchAct, PageActs, act_from
from leafcast.ui.http_answers import answered, error_answer, refused
from leafcast.ui.patches import harmless
from schemas.values.refusals import CodecError

ACT_BYTES_MAX = 4_096
JSON_TYPE = "application/json"


class ActRoute:
    """The one route that changes something; without `acts` it does nothing."""

    def __init__(self, acts: PageActs | None, entrance: PageEntrance) -> None:
        self._acts, self._entrance = acts, entrance

    async def act(self, request: Request) -> Response:
        """Do what the body names: `{name, words, command}`, the command as the person saw it."""
        if self._acts is None:
            said = "this page changes nothing"
            remedy = "run the command yourself, or start `leafcast ui --allow-actions`"
            return error_answer(403, "ReadOnly", said, remedy)
        if not self._entrance.may_act(request.headers, request.cookies):
            return refused(request, "another origin")
        if request.headers.get("content-type") != JSON_TYPE:
            return error_answer(400, "Invalid", f"it is no {JSON_TYPE}", "")
        text = bytearray()
        async for piece in request.stream():
            text += piece
            if len(text) > ACT_BYTES_MAX:
                return error_answer(413, "TooLarge", f"more than {ACT_BYTES_MAX} bytes", "")
        try:
            wanted = act_from(bytes(text))
        except (CodecError, NoSuchAct) as error:
            return error_answer(400, "Invalid", str(error), "reload the page")
        acts = self._acts

        async def do(_: Request) -> Response:
            done = harmless(await acts.do(wanted))
            return JSONResponse({"done": done, "command": wanted.command})

        return await answered(request, do)
