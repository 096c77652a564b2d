"""What the daemon of a tree answers: JSON in, JSON out, by verb; errors carry their remedy.

A part of the program that can answer something registers a handler; `leafcast.ask.session` asks.
"""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from leafcast.ask.long_questions import VERB as PART
from leafcast.ask.long_questions import LongQuestions, PartsLost, TooManyQuestions
from leafcast.ask.unanswered import AGAIN, accepted, is_unanswered
from leafcast.ask.verbs import API_PREFIX
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from schemas.values.codec import from_json

ANSWER_BYTES_MAX = 16_000_000
"""An object of the largest size as JSON, however it is escaped."""
PART_FIELDS = ("name", "verb", "at", "parts", "text")
"""Of a part of a long question."""

Handler = Callable[..., Awaitable[Any]]
"""Takes the question's arguments by name; returns JSON values."""
Method = TypeVar("Method", bound=Handler)

log = logging.getLogger("leafcast.api")


def verb(name: str) -> Callable[[Method], Method]:
    """Mark a method as what answers a verb, once its object is served."""

    def marked(method: Method) -> Method:
        method.__dict__["verb"] = name
        return method

    return marked


class ApiError(Exception):
    """An answer that is an error; `code` is a CamelCase word, `remedy` says what to do."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.code = code
        self.message = message
        self.remedy = remedy


def of_another_version(verb: str) -> ApiError:
    """What the daemon of a tree says of a verb that it does not know."""
    remedy = "run `leafcast down`, then `leafcast up` with this version"
    return ApiError("UnknownVerb", f"this tree's daemon knows no {verb!r}", remedy)


class Api:
    """The verbs of one daemon; `unknown` is what it says of any other."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        unknown: Callable[[str], ApiError] = of_another_version,
    ) -> None:
        self._now, self._unknown = now, unknown
        self._handlers: dict[str, Handler] = {}
        self._long = LongQuestions()

    def register(self, verb: str, handler: Handler) -> None:
        """Answer `verb` with this; a later registration replaces an earlier one."""
        self._handlers[verb] = handler

    def serve(self, *parts: object) -> None:
        """Answer the verbs that methods of these are marked with."""
        for part in parts:
            for method in vars(type(part)).values():
                if name := getattr(method, "verb", None):
                    self.register(name, method.__get__(part))

    async def answer(self, subject: str, question: bytes) -> bytes:
        """The answer to one question, whatever its bytes are; never raises."""
        verb = subject.removeprefix(API_PREFIX)
        # Parts whose command was killed are not kept until another comes with some.
        self._long.forget(self._now())
        try:
            if verb == PART:
                return await self._part(from_json(question))
            result = await self._handle(verb, question)
            return _fitting(verb, json.dumps({"result": result}).encode())
        except ApiError as error:
            return _refusal(error.code, error.message, error.remedy)
        except SpaceError as error:
            return _refusal(error.reason, error.message, "")
        except BusBroken as error:
            return _refusal("Restarting", f"{error}; {accepted(verb)}", AGAIN)
        except TooManyQuestions:
            message = "too many long questions are being asked"
            return _refusal("Busy", message, "try again in a moment")
        except PartsLost:
            return _refusal("Restarting", "parts of a long question were lost", "try again")
        except ValueError as error:
            return _refusal("Invalid", str(error), "")
        except Exception as error:
            log.exception("the verb %s failed", verb)
            if is_unanswered(error):
                message = f"a server that it needs did not answer in time; {accepted(verb)}"
                return _refusal("Restarting", message, AGAIN)
            remedy = "this is a defect of Leafcast; the daemon's log shows where"
            return _refusal("Internal", f"{type(error).__name__}: {error}", remedy)

    async def _part(self, part: Any) -> bytes:
        """Take a part of a long question; the last one is answered as the whole."""
        match part:
            case {
                "name": str(name),
                "verb": str(verb),
                "at": int(at),
                "parts": int(parts),
                "text": str(text),
            } if len(part) == len(PART_FIELDS):
                whole = self._long.take(name, at, parts, text, self._now())
            case _:
                message = "it is no part of a question"
                raise ApiError("Invalid", message, f"say {', '.join(PART_FIELDS)}")
        if whole is None:
            return json.dumps({"result": None}).encode()
        return await self.answer(API_PREFIX + verb, whole.encode())

    async def _handle(self, verb: str, question: bytes) -> Any:
        handler = self._handlers.get(verb)
        if handler is None:
            raise self._unknown(verb)
        args = from_json(question or b"{}")
        try:
            bound = inspect.signature(handler).bind(**args)
        except TypeError as error:
            raise ApiError("Invalid", f"{verb}: {error}", "name the verb's arguments") from error
        return await handler(*bound.args, **bound.kwargs)


def _fitting(verb: str, answer: bytes) -> bytes:
    if len(answer) > ANSWER_BYTES_MAX:
        message = f"the answer to {verb} has {len(answer)} bytes, at most {ANSWER_BYTES_MAX}"
        raise ApiError("TooLarge", message, "ask for less")
    return answer


def _refusal(code: str, message: str, remedy: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": message, "remedy": remedy}}).encode()
