"""JSON values as YAML text that reads back the same, laid out as kubectl prints it."""

from __future__ import annotations

from typing import Any

import yaml

from schemas.objects.scalars import NoJsonForm, resolve

_STRING = "tag:yaml.org,2002:str"
_WIDTH = 2**31 - 1
# libyaml's emitter is several times as fast; the one in Python writes the same language.
_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def write_yaml(value: Any) -> str:
    """One document: keys sorted, lists not indented, several lines as a block, ends in a newline.

    `schemas.objects.yaml_documents` reads back an equal value.
    """
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=False,
        allow_unicode=True,
        sort_keys=True,
        width=_WIDTH,
    )
    # A block that keeps empty lines at its end is closed so; in a document of its own needlessly.
    return str(text).removesuffix("...\n") if str(text).endswith("\n...\n") else str(text)


class _Dumper(_BASE):  # type: ignore[misc]
    """PyYAML's own, but for strings: more of them would read back as something else here."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _represent(dumper: _Dumper, text: str) -> Any:
    if "\n" in text and not _misread_as_block(text):
        return dumper.represent_scalar(_STRING, text, style="|")
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))
    quoted = tag != _STRING or _reads_as_other(text)
    return dumper.represent_scalar(_STRING, text, style='"' if quoted else None)


def _reads_as_other(text: str) -> bool:
    try:
        return not isinstance(resolve(text), str)
    except NoJsonForm:
        return True


def _misread_as_block(text: str) -> bool:
    """Whether blank ends, or characters that end lines, make a block say something else."""
    return text.strip("\n") != text.strip() or any(mark in text for mark in "\r\t\x85\u2028\u2029")


_Dumper.add_representer(str, _represent)
