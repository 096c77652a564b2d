"""The protocol's pages say what the code does: diagrams, records, figures; rules have numbers."""

import re
from enum import Enum
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import msgspec
import pytest

import schemas
from schemas.reports import causes
from schemas.values.wire import INT_MAX, WireRecord

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "protocol.md").read_text()
PARTS = {path.name: path.read_text() for path in sorted((DOCS / "protocol").glob("*.md"))}
ALL = "\n".join((PAGE, *PARTS.values()))
RECORD_MODULES = (
    "content.blobs",
    "content.manifest",
    "enrolment.enrolment",
    "enrolment.member_requests",
    "records.asks",
    "records.health_rules",
    "records.records",
    "records.release_body",
    "records.roots",
    "records.snapshots",
    "records.windows",
    "reports.collectors",
    "reports.link",
    "reports.reports",
    "reports.running",
    "reports.upsync",
)
UNITS = {
    "": 1,
    "s": 1,
    "min": 60,
    "h": 3600,
    "days": 86400,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}

SAID_IN_A_LINE = frozenset(
    {
        *("Alternative", "Requirement", "Source", "Reference", "ObjectKey"),
        *("AskFault", "BlankValue", "Ended", "Expression", "Lost", "ObjectPrograms"),
        *("Repaired", "SourceObject"),
        *("ListRoot", "ManifestChunk", "SealedChunk", "SealedEntries", "SealedUpsync"),
        # What is signed of it is a LocationHead, and the rest a LocationBody.
        "LocationRecord",
        # As of a ReleaseHead and a ReleaseBody.
        "ReleaseRecord",
    }
)
"""Arrays that the page shows where they are used, without a table."""

DIAGRAM = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE_OF = re.compile(r"^ *%% ([\w.]+)$", re.MULTILINE)
ARROW = re.compile(r"^ *(\w+) --> (\w+): (.+)$", re.MULTILINE)
RECORD = re.compile(r"^#### `(\w+)`.*\n\n(?:(?!\|).+\n)*\n?((?:\|.*\n)+)", re.MULTILINE)
FIELD = re.compile(r"^\| (\d+) \| `(\w+)` \|", re.MULTILINE)
DEFAULT = re.compile(r"^\| \d+ \| `(\w+)` \| ([^|]+) \|", re.MULTILINE)
FIGURE = re.compile(r"^\| [^|]+ \| ([\d,.]+) ?(\w*) \| `([\w.]+)` \|$", re.MULTILINE)
RULE = re.compile(r"^- \*\*([A-Z]\d+)\*\* ((?:.+\n)(?:  .+\n)*)", re.MULTILINE)
NAMED_RULE = re.compile(r"\b([A-Z]\d+)\b")


def constant(dotted: str) -> object:
    module, _, name = dotted.rpartition(".")
    return getattr(import_module(module), name)


def diagrams() -> dict[str, str]:
    return {TABLE_OF.search(text)[1]: text for text in DIAGRAM.findall(PAGE)}


def test_each_machine_of_the_link_has_its_diagram():
    session, reader = "relay.core.link.session", "relay.core.link.reader"
    assert set(diagrams()) == {f"{session}.SESSION", f"{session}.PRESENCE", f"{reader}.READING"}


@pytest.mark.parametrize("table", diagrams())
def test_a_diagram_has_the_transitions_of_its_table(table: str):
    transitions: dict[tuple[Enum, Enum], Enum] = constant(table)
    expected = {
        (former.name, event.name, state.name) for (former, event), state in transitions.items()
    }
    drawn = [
        (former, event, state)
        for former, state, events in ARROW.findall(diagrams()[table])
        for event in events.split(", ")
    ]
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == expected


def record_tables() -> list[tuple[str, str]]:
    return RECORD.findall(ALL)


def record_of(name: str) -> type[msgspec.Struct]:
    """The one record of this name."""
    found = [
        vars(module)[name]
        for module in (import_module(f"schemas.{each}") for each in RECORD_MODULES)
        if name in vars(module) and vars(module)[name].__module__ == module.__name__
    ]
    assert len(found) == 1
    assert issubclass(found[0], msgspec.Struct)
    return found[0]


@pytest.mark.parametrize(("name", "rows"), record_tables(), ids=[n for n, _ in record_tables()])
def test_a_record_has_the_fields_of_its_table_at_their_places(name: str, rows: str):
    fields = [(str(at), field) for at, field in enumerate(record_of(name).__struct_fields__)]
    assert FIELD.findall(rows) == fields


def default_cell(field: msgspec.structs.FieldInfo) -> str:
    """A field's default as the tables say it."""
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    else:
        value = field.default
    match value:
        case msgspec.NODEFAULT:
            return "\N{EN DASH}"
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case int():
            return "2^63 - 1" if value == INT_MAX else f"{value:,}"
        case "" | b"":
            return '`""`'
        case () | {}:
            return f"`{'[]' if value == () else '{}'}`"
        case _:
            return f"`{value}`"


@pytest.mark.parametrize(("name", "rows"), record_tables(), ids=[n for n, _ in record_tables()])
def test_a_table_has_the_default_of_each_field(name: str, rows: str):
    fields = msgspec.structs.fields(record_of(name))
    expected = [(field.name, default_cell(field)) for field in fields]
    assert DEFAULT.findall(rows) == expected


def subclasses(kind: type) -> set[type]:
    found = set(kind.__subclasses__())
    return found.union(*map(subclasses, found))


def test_each_record_has_its_table_or_is_said_in_a_line():
    for module in walk_packages(schemas.__path__, "schemas."):
        import_module(module.name)
    records = {
        each.__name__
        for each in subclasses(WireRecord)
        if each.__module__.startswith("schemas.") and not each.__name__.startswith("_")
    }
    assert records - {name for name, _ in record_tables()} == SAID_IN_A_LINE


def test_what_nodes_say_to_each_other_has_its_tables():
    told = {name for name, _ in record_tables()}
    link = {"Hello", "Welcome", "Progress", "Cursor"}
    snapshot = {"SnapshotRecord", "TermEntry", "Entry", "InnerNode", "Child"}
    records = {"DeltaHead", "DeltaBody", "Profile", "LocationHead", "NodeRecord", "KeysRecord"}
    enrolling = {"SignedRequest", "JoinRequest", "SealedAnswer", "JoinAnswer", "Grant"}
    assert enrolling <= told
    assert link | snapshot | records | {"Report", "ReportPart", "Summary", "AskRecord"} <= told


@pytest.mark.parametrize(("value", "unit", "dotted"), FIGURE.findall(PAGE))
def test_a_figure_is_that_of_the_code(value: str, unit: str, dotted: str):
    milliseconds = 1000 if dotted.endswith("_MS") else 1
    assert constant(dotted) == float(value.replace(",", "")) * UNITS[unit] * milliseconds


def test_each_row_of_the_figures_is_compared():
    table = PAGE.partition("\n## Figures\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 90
    assert len(FIGURE.findall(PAGE)) == len(rows)


def test_each_rule_has_a_number_of_its_own_and_says_must():
    rules = RULE.findall(ALL)
    numbers = [number for number, _ in rules]
    assert len(numbers) > 50
    assert len(numbers) == len(set(numbers))
    assert [number for number, text in rules if "MUST" not in text] == []


def test_a_reason_names_rules_that_are_there():
    reasons = [PAGE.partition("\n## Annex")[2]]
    reasons += [text.partition("\n## The reasons\n")[2] for text in PARTS.values()]
    named = {rule for text in reasons for rule in NAMED_RULE.findall(text)}
    assert named
    assert named <= {number for number, _ in RULE.findall(ALL)}


def test_the_protocol_leads_to_each_of_its_pages():
    assert {name for name in PARTS if f"(protocol/{name})" in PAGE} == set(PARTS)


BYTES_ROW = re.compile(
    r"^\| ((?:`\w+`(?:, )?)+) \| ((?:each of )?(?:`\w+`(?:, )?)+) \|$", re.MULTILINE
)


def byte_fields(record: type) -> set[str]:
    """The fields of a record that are bytes, or a list or a map of bytes."""
    found = set()
    for field in msgspec.inspect.type_info(record).fields:
        kinds = getattr(field.type, "types", (field.type,))
        kinds = [getattr(it, "item_type", getattr(it, "value_type", it)) for it in kinds]
        if any(isinstance(it, msgspec.inspect.BytesType) for it in kinds):
            found.add(field.name)
    return found


def test_the_page_says_which_fields_are_bytes():
    section = PAGE.partition("\n### Forms\n")[2].partition("\n#### ")[0]
    said = {
        record: set(re.findall(r"`(\w+)`", fields))
        for records, fields in BYTES_ROW.findall(section)
        for record in re.findall(r"`(\w+)`", records)
    }
    modules = [import_module(f"schemas.{each}") for each in RECORD_MODULES]
    shown = {name for name, _ in record_tables()}
    there = {
        name: fields
        for module in modules
        for name in shown & vars(module).keys()
        if vars(module)[name].__module__ == module.__name__
        and (fields := byte_fields(vars(module)[name]))
    }
    assert said == there


def test_the_page_has_the_patterns_of_reasons_that_follow_from_others():
    table = PAGE.partition("| pattern |\n")[2].partition("\n\n")[0]
    said = [row.replace("\\|", "|") for row in re.findall(r"^\| `(.*)` \|$", table, re.MULTILINE)]
    assert said == [pattern.pattern for pattern in causes._CONSEQUENCES]
