"""Which secrets are known: those that the data directory, its kubeconfigs and this process hold."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from leafcast.data_dir import DataDir, DataDirUnusable
from relay.space_port import Object
from schemas.objects.yaml_documents import InvalidManifest, read_documents

FILES_MAX = 2_000
FILE_BYTES_MAX = 4_000_000
VALUES_MAX = 50_000
SECRET_FILES = ("admin.json", "accounts.json", "credentials.json", "bundle.json", "keys/*.json")
"""In the data directory and in the folders of its nodes: texts in them are taken for secret."""
_PUBLIC = re.compile(r"[UANOCX][A-Z2-7]{55}|[a-z2-7]{26}|\S+://\S+|[a-z-]{1,20}")
"""Public NKeys, ids, addresses and words: nobody needs to hide them."""
_USER_FIELDS = frozenset({"token", "password", "client-key-data"})
_OF_THE_ENVIRONMENT = re.compile(r"PASS|SECRET|TOKEN|SEED|CREDENTIAL|KEY|AUTH", re.IGNORECASE)
_LINE = re.compile(r"^[ \t]*(?:export )?[\w.-]{1,64}(?:=|:[ \t])(.+)$", re.MULTILINE)
_NAMESPACE_OF_TOKENS = ("kubernetes.io/service-account-token", "namespace")


def secrets_here(place: DataDir, environment: Mapping[str, str] = os.environ) -> list[str]:
    """What files of a data directory and the environment hold that nobody else may know."""
    found = list[str]()
    for file in _files(place.folder, SECRET_FILES):
        found += [it for it in _texts(_read(file)) if not _PUBLIC.fullmatch(it)]
    with suppress(DataDirUnusable):
        spaces = place.spaces()
        for setting in (*spaces.workloads, *spaces.inventory):
            if setting.kubeconfig:
                found += kubeconfig_secrets(Path(setting.kubeconfig))
    for file in _files(place.folder, ("kubeconfig", "*.kubeconfig")):
        found += kubeconfig_secrets(file)
    found += [said for name, said in environment.items() if _OF_THE_ENVIRONMENT.search(name)]
    # A path or a number that a variable names is none.
    return [it for it in found if not it.startswith("/") and not it.isdecimal()][:VALUES_MAX]


def kubeconfig_secrets(file: Path) -> Iterator[str]:
    """What the users of a kubeconfig have, and what is in its base64."""
    try:
        (document, *_) = [it.root for it in read_documents(file.read_text(), str(file))]
    except (OSError, ValueError, InvalidManifest):
        return
    users = document.get("users") if isinstance(document, Mapping) else None
    for user in users if isinstance(users, Sequence) else ():
        said = user.get("user") if isinstance(user, Mapping) else None
        for name, value in (said if isinstance(said, Mapping) else {}).items():
            if name in _USER_FIELDS and isinstance(value, str):
                yield value
                yield from _opened(value)


def secrets_of_objects(objects: Iterable[Object]) -> list[str]:
    """The values of Secrets; of tokens not the namespace, which is a word like any other."""
    found = list[str]()
    for obj in objects:
        for name, value in _mapping(obj.get("data")).items():
            if (obj.get("type"), name) != _NAMESPACE_OF_TOKENS and isinstance(value, str):
                found.append(value)
                for text in _opened(value):
                    found += [text, *_values_in(text)]
        for text in _mapping(obj.get("stringData")).values():
            if isinstance(text, str):
                found += [text, *_values_in(text)]
    return found[:VALUES_MAX]


def _values_in(text: str) -> Iterator[str]:
    """What a file says that lies in a Secret: in its JSON, or in its lines as NAME=VALUE."""
    said = [found[1] for found in _LINE.finditer(text)]
    with suppress(ValueError, RecursionError):
        said = [*_texts(json.loads(text))]
    for each in said:
        value = each.strip().strip("\"'")
        if not _PUBLIC.fullmatch(value):
            yield value


def _opened(value: str) -> Iterator[str]:
    with suppress(binascii.Error, UnicodeDecodeError, ValueError):
        yield base64.b64decode(value, validate=True).decode()


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    found = [file for it in patterns for at in (it, f"*/{it}") for file in folder.glob(at)]
    return sorted(found)[:FILES_MAX]


def _read(file: Path) -> Any:
    with suppress(OSError, ValueError, RecursionError):
        if file.stat().st_size <= FILE_BYTES_MAX:
            return json.loads(file.read_bytes())
    return None


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
        case _:
            return


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
