"""`-o` of the commands that show something, the same everywhere, and `--no-headers`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from leafcast.cli.options.common import gathered
from leafcast.show.object_formats import Format

if TYPE_CHECKING:
    from leafcast.show.json_path_output import Template


FORMATS: tuple[Format, ...] = ("table", "wide", "name", "json", "yaml")
_NOT_HERE = frozenset(
    {"jsonpath-file", "go-template", "go-template-file", "template", "kyaml"}
    | {"custom-columns", "custom-columns-file", "jsonpath-as-json"}
)
_JSONPATH = "jsonpath="


@dataclass(frozen=True, slots=True)
class Output:
    """How something is printed; a template goes with `jsonpath`."""

    format: Format = "table"
    template: Template | None = None
    headers: bool = True

    @property
    def is_table(self) -> bool:
        return self.format in ("table", "wide")

    @property
    def is_document(self) -> bool:
        return not self.is_table and self.format != "name"

    @property
    def is_wide(self) -> bool:
        return self.format == "wide"

    def structured(self, form: Any) -> str:
        """A document as this output says it, with its line's end; of no table and no name."""
        match self.format:
            case "json":
                return json.dumps(form, indent=2) + "\n"
            case "yaml":
                # Here, as most want no YAML.
                from schemas.objects.yaml_writing import write_yaml  # noqa: PLC0415

                return write_yaml(form)
            case "jsonpath" if self.template is not None:
                return self.template.of(form)
        raise AssertionError(self.format)


class OutputType(click.ParamType[Output]):
    """The formats there are; who knows kubectl's others is told what to do."""

    name = "format"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return f"[{'|'.join(FORMATS)}|{_JSONPATH}TEMPLATE]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Output:
        if isinstance(value, Output):
            return value
        word = str(value)
        if word.startswith(_JSONPATH):
            from leafcast.show.json_path_output import BadTemplate, read_template  # noqa: PLC0415

            try:
                return Output("jsonpath", read_template(word.removeprefix(_JSONPATH)))
            except BadTemplate as error:
                self.fail(str(error).removeprefix("jsonpath: "), param, ctx)
        if word == _JSONPATH[:-1]:
            self.fail("it needs a template: -o jsonpath='{.metadata.name}'", param, ctx)
        if word.partition("=")[0] in _NOT_HERE:
            self.fail(f"{word!r} is not there; use -o jsonpath=, or -o json and jq", param, ctx)
        if word not in FORMATS:
            known = ", ".join(FORMATS)
            self.fail(f"{word!r} is none of {known}, {_JSONPATH}TEMPLATE", param, ctx)
        return Output(word)


output_options = gathered(
    "output",
    lambda output, no_headers: replace(output, headers=not no_headers),
    click.option("-o", "--output", type=OutputType(), default="table", help="Format."),
    click.option("--no-headers", is_flag=True, help="Tables without their header."),
)
"""`-o` and `--no-headers`, given together as `output: Output`."""
