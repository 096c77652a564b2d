"""Secrets taken out of what others are to read: by field, by form, and those that are known. Pure.

What is named like a secret is hidden whatever it is; what has the form of one is hidden wherever it
stands; and what is known to be one is hidden as it is, as base64, and as a URL or JSON writes it.
Where it is in doubt it hides too much.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from schemas.objects.objects import LAST_APPLIED

HIDDEN = "<redacted>"
KNOWN_CHARACTERS_MIN = 6
"""A shorter one would be found in the middle of words; by its field it is hidden all the same."""

_ANY_CASE = re.IGNORECASE
_WORDS = (
    r"passw(?:or)?d|passwd|pass-?phrase|passcode|secret|token(?!_position)|seed|credential|api[-_]?key"
    r"|access[-_]?key|private|authorization|cookie|bearer|key-data|auth[-_]?key|[-_]pass\b|pwd"
)
_NAMED = re.compile(rf"{_WORDS}|^pass$|^auth$|_key$|_pw$", _ANY_CASE)
_NAME_FIELDS = ("name", "key", "path", "field", "jsonPath")
_SECRET_FIELDS = ("data", "stringData")
_PEM = r"(?:[A-Z0-9]+ )*PRIVATE KEY-----"
_VALUE = r"\\*\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,;}\]\"']+"
_QUOTE = r"(?:\\*[\"'])?"
_PEM_END, PEM_CHARACTERS_MAX = re.compile(rf"-----END {_PEM}"), 16_384
_BASE64 = string.ascii_letters + string.digits + "+/=\\ \r\n\t"
_OF_SERVICES = "|".join(
    [
        r"(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"gh[opsur]_[A-Za-z0-9]{20,255}",
        r"github_pat_\w{20,255}",
        r"glpat-[\w-]{16,255}",
        r"xox[a-z]-[\w-]{10,255}",
        r"AIza[\w-]{30,64}",
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}",
        r"npm_[A-Za-z0-9]{30,64}",
        r"dckr_pat_[\w-]{16,64}",
        r"hf_[A-Za-z0-9]{30,64}",
        r"hv[bs]\.[\w-]{20,255}",
        r"sk-(?:ant|proj)-[\w-]{20,255}",
        r"AGE-SECRET-KEY-1[A-Z0-9]{50,64}",
    ]
)
"""Of clouds, forges, registries and vaults, as scanners of secrets know them."""
_FORMS = [
    # Keys in PEM, whole or with their end cut off, or with their beginning.
    (re.compile(rf"-----BEGIN {_PEM}.{{0,16384}}?-----END {_PEM}", re.DOTALL), HIDDEN),
    (re.compile(rf"-----BEGIN {_PEM}[A-Za-z0-9+/=\s\\:,.-]*"), HIDDEN),
    (re.compile(r"^[ \t]*(?![0-9a-f]+$)[A-Za-z0-9+/]{60,76}={0,2}[ \t]*$", re.MULTILINE), HIDDEN),
    # Tokens of Leafcast, seeds of NKeys, JWTs.
    (re.compile(r"\blcm?1[a-z2-7]{20,}", _ANY_CASE), HIDDEN),
    (re.compile(r"\bS[ACNOPUX][A-Z2-7]{50,62}\b"), HIDDEN),
    (re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]*){1,4}"), HIDDEN),
    # Tokens and keys of services, by how they begin.
    (re.compile(rf"(?<![A-Za-z0-9])(?:{_OF_SERVICES})"), HIDDEN),
    # Who asks, in a URL or in a header. Some of it may be hidden already.
    (
        re.compile(rf"([A-Za-z][A-Za-z0-9+.-]{{0,20}}://)(?:{HIDDEN}|[^\s\"'<>]){{1,2048}}@"),
        rf"\1{HIDDEN}@",
    ),
    (
        re.compile(r"(authorization\W{1,4})(?:(?:basic|bearer)\s+)?[^\s\"']+", _ANY_CASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\b(bearer\s+)[\w.~+/=-]{6,}", _ANY_CASE), rf"\1{HIDDEN}"),
    # What is said to be a secret. Such a phrase may be several words, to the end of its line.
    (
        re.compile(rf"(pass-?phrase{_QUOTE}\s*[=:]\s*)(\"(?:[^\"\\]|\\.)*\"|[^\n]+)", _ANY_CASE),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(rf"((?:{_WORDS})[\w.-]{{0,64}}{_QUOTE}\s*[=:]\s*)({_VALUE})", _ANY_CASE),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(rf"(--[\w-]{{0,32}}(?:{_WORDS})[\w-]{{0,32}}\s+)({_VALUE})", _ANY_CASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(rf"\b([A-Z][A-Z0-9_]*(?:KEY|PASS|PW)=)({_VALUE})"), rf"\1{HIDDEN}"),
]


class Redaction:
    """Hides secrets; `known` are values that are secret wherever they stand."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        # By their first characters, the longest first.
        self._known: dict[str, list[str]] = {}
        for value in sorted(set(_written(known)), key=len, reverse=True):
            self._known.setdefault(value[:KNOWN_CHARACTERS_MIN], []).append(value)

    def text(self, text: str) -> str:
        """The text without what has the form of a secret, or is known to be one."""
        text = self._without_known(text)
        for form, instead in _FORMS:
            text = form.sub(instead, text)
        return _without_ends(text)

    def form(self, value: Any) -> Any:
        """A value of JSON with each secret in it hidden, by its field or by its form."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return self._mapping(value)
            case list() | tuple():
                return [self.form(each) for each in value]
            case _:
                return value

    def _mapping(self, said: Mapping[Any, Any]) -> dict[str, Any]:
        is_secret = said.get("kind") == "Secret"
        about = " ".join(str(said[it]) for it in _NAME_FIELDS if isinstance(said.get(it), str))
        found: dict[str, Any] = {}
        for name, value in said.items():
            text = str(name)
            if text == LAST_APPLIED:
                # The object once more, as text.
                found[text] = HIDDEN
            elif text == "env":
                found[text] = _environment(value)
            elif _is_named(text, about) or (is_secret and text in _SECRET_FIELDS):
                found[text] = _hidden(value)
            else:
                found[self.text(text)] = self.form(value)
        return found

    def _without_known(self, text: str) -> str:
        if not self._known:
            return text
        pieces, begin, at = list[str](), 0, 0
        last = len(text) - KNOWN_CHARACTERS_MIN
        while at <= last:
            values = self._known.get(text[at : at + KNOWN_CHARACTERS_MIN])
            value = next((it for it in values or () if text.startswith(it, at)), None)
            if value is None:
                at += 1
                continue
            pieces += [text[begin:at], HIDDEN]
            at = begin = at + len(value)
        return "".join([*pieces, text[begin:]])


def _is_named(name: str, about: str) -> bool:
    """Whether a field is a secret by its name, or a value by that of what it is for."""
    return bool(_NAMED.search(about if name in ("value", "values") else name))


def _without_ends(text: str) -> str:
    """The text without the ends of keys whose beginning was cut off."""
    pieces, begin = list[str](), 0
    for end in _PEM_END.finditer(text):
        before = text[max(begin, end.start() - PEM_CHARACTERS_MAX) : end.start()]
        body = len(before) - len(before.rstrip(_BASE64))
        pieces += [text[begin : end.start() - body], HIDDEN]
        begin = end.end()
    return "".join([*pieces, text[begin:]])


def _hidden(value: Any) -> Any:
    """The same shape with each text hidden; figures and truths tell no secret."""
    match value:
        case str():
            return HIDDEN if value else ""
        case Mapping():
            return {str(name): _hidden(each) for name, each in value.items()}
        case list() | tuple():
            return [_hidden(each) for each in value]
        case _:
            return value


def _environment(value: Any) -> Any:
    """Of an environment the names alone."""
    if isinstance(value, list):
        return [
            {name: said if name == "name" else _hidden(said) for name, said in each.items()}
            if isinstance(each, Mapping)
            else HIDDEN
            for each in value
        ]
    return _hidden(value)


def _written(known: Iterable[str]) -> Iterator[str]:
    """Each value as others may write it: whole, by its lines, encoded."""
    for value in known:
        whole = value.strip()
        for text in {value, whole, *map(str.strip, whole.splitlines())}:
            if len(text) < KNOWN_CHARACTERS_MIN:
                continue
            yield text
            yield quote(text, safe="")
            yield json.dumps(text)[1:-1]
        for text in (value, whole):
            if len(text) >= KNOWN_CHARACTERS_MIN:
                yield base64.b64encode(text.encode()).decode().rstrip("=")
