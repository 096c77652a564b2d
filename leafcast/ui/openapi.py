"""The page's API in the words of OpenAPI 3.1, made of the table of views. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafcast.ui.view_table import VIEWS, ViewKind

API = "/api/v1"
FAILURES = {
    "400": "What is asked for is not understood.",
    "401": "This browser is not let in, or no longer.",
    "403": "The request comes from another page, or by another name.",
    "404": "There is no such thing in the tree.",
    "503": "The tree does not answer, or not to this.",
}

Json = dict[str, Any]


def openapi_document(version: str, views: Mapping[str, ViewKind] = VIEWS) -> Json:
    """The whole description of a page with these views; `version` is Leafcast's."""
    paths: Json = {f"{API}/{name}": {"get": _look(name, kind)} for name, kind in views.items()}
    paths |= {f"{API}/live/{name}": {"get": _follow(name, kind)} for name, kind in views.items()}
    if views is VIEWS:
        paths[f"{API}/plan"] = {"post": _plan()}
        paths[f"{API}/act"] = {"post": _act()}
    paths[f"{API}/openapi.json"] = {
        "get": _operation("openapi", "This description", {}, _json({"type": "object"}))
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Leafcast's page",
            "version": version,
            "description": "What `leafcast ui` shows. An answer of a view may be as old as its "
            "pause; `asOfMs` says of when it is.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Failed": _failed()},
            "securitySchemes": {
                "browser": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "leafcast-ui-PORT",
                    "description": "Set once, for who opens the address that `leafcast ui` prints.",
                }
            },
        },
        "security": [{"browser": []}],
    }


def _look(name: str, kind: ViewKind) -> Json:
    return _operation(name, kind.summary, kind.words, _json(_view(kind.shows)))


def _follow(name: str, kind: ViewKind) -> Json:
    said = (
        "Server-sent events: `whole` with the view, then `patch` with what changed, `failed` with "
        "an error, or `still`, with `lateSinceMs` if the tree has not answered for too long."
    )
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    answer = {"description": said, "content": content}
    return _operation(f"live-{name}", f"{kind.summary}, as it changes", kind.words, answer)


def _plan() -> Json:
    shows = {
        "reach": "how far it reaches",
        "centre": "what becomes of the centre's objects",
        "objects": "each object of the centre, with what becomes of it",
        "waves": "in which waves it goes out",
        "rows": "what becomes of which object where",
        "rest": "how many rows are left out",
        "notes": "what to know besides",
    }
    what = "What applying manifests would do; nothing is written"
    content = {"application/yaml": {"schema": {"type": "string"}}}
    body = {"required": True, "content": content}
    made = _operation("plan", what, {}, _json(_view(shows)))
    made["requestBody"] = body
    made["responses"]["413"] = _json(_ref("Failed"), "The manifests are too long.")
    return made


def _act() -> Json:
    text, words = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
    said: Json = {"name": text, "words": words, "command": text}
    asked = {"type": "object", "required": list(said), "properties": said}
    done: Json = {"done": text, "command": text}
    answer = {"type": "object", "required": list(done), "properties": done}
    what = "Do what a row offers in `act`, if the page may; the command is as it was shown"
    made = _operation("act", what, {}, _json(answer, "What became of it."))
    made["requestBody"] = {"required": True, "content": {"application/json": {"schema": asked}}}
    made["responses"]["409"] = _json(_ref("Failed"), "The tree refuses it.")
    return made


def _operation(name: str, summary: str, words: Mapping[str, str], answer: Json) -> Json:
    failures = {code: _json(_ref("Failed"), said) for code, said in FAILURES.items()}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [
            {"name": word, "in": "query", "description": said, "schema": {"type": "string"}}
            for word, said in words.items()
        ],
        "responses": {"200": answer, **failures},
    }


def _view(shows: Mapping[str, str]) -> Json:
    properties = {name: {"description": said} for name, said in shows.items()}
    view = {"type": "object", "required": list(shows), "properties": properties}
    moment = {"type": "integer", "description": "Of when the view is, in ms since 1970."}
    envelope = {"view": view, "asOfMs": moment}
    return {"type": "object", "required": list(envelope), "properties": envelope}


def _failed() -> Json:
    text = {"type": "string"}
    said: Json = {
        "code": {**text, "description": "A CamelCase word."},
        "message": text,
        "remedy": {**text, "description": "What to do."},
        "away": {"type": "boolean", "description": "Whether the tree as such does not answer."},
    }
    error = {"type": "object", "required": list(said), "properties": said}
    return {"type": "object", "required": ["error"], "properties": {"error": error}}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Json, said: str = "The view.") -> Json:
    return {"description": said, "content": {"application/json": {"schema": schema}}}
