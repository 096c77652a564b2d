"""Strategies for all that is said on the wire: a record of every kind, whatever it holds."""

from hypothesis import strategies as st

from schemas.content.blobs import BLOB_MAX_BYTES, Reference
from schemas.content.manifest import ListRoot, ManifestChunk, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.objects.source_objects import SourceObject
from schemas.records.asks import AnswerPart, AskFault
from schemas.records.records import (
    Alternative,
    AskRecord,
    DeltaBody,
    DeltaHead,
    Dependency,
    Gate,
    KeyGrant,
    KeysRecord,
    LocationHead,
    NodeRecord,
    Profile,
    RootKey,
    Source,
)
from schemas.records.windows import Window
from schemas.reports.link import Cursor, Hello, Progress, Repair, Welcome
from schemas.reports.reports import Done, ExceptionSample, ObjectResult, Report, ReportPart, Summary
from schemas.reports.upsync import Copy, UpsyncClause
from schemas.values import codec
from schemas.values.identity import NodePath, short_key
from schemas.values.wire import INT_MAX, encode

numbers = st.integers(0, INT_MAX)
texts = st.text(max_size=12)
node_names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,4}[a-z0-9])?", fullmatch=True)
paths = st.lists(node_names, max_size=4).map(lambda listed: NodePath(tuple(listed)))
hashes = st.binary(min_size=32, max_size=32)
addresses = hashes.map(bytes.hex)
mail_keys = st.binary(min_size=20, max_size=20).map(short_key)
references = st.builds(Reference, texts, addresses, st.integers(0, BLOB_MAX_BYTES))
names = texts.filter(lambda text: "\0" not in text)
sources = st.builds(Source, names, names, names, names)
text_maps = st.dictionaries(texts, texts, max_size=3)
counts = st.dictionaries(texts, numbers, max_size=3)
object_keys = st.builds(ObjectKey, texts, texts, texts, texts)

label_keys = st.sampled_from(["env", "region", "tier"])
label_values = st.sampled_from(["a", "b", "c"])
label_sets = st.dictionaries(label_keys, label_values, max_size=3)
requirements = st.one_of(
    st.builds(
        Requirement,
        label_keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(label_values, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Requirement, label_keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.lists(requirements, max_size=3).map(lambda listed: LabelSelector(tuple(listed)))


def several(inner, most=3):
    return st.lists(inner, max_size=most).map(tuple)


terms = st.binary(min_size=8, max_size=8).map(bytes.hex)
base = (sources, numbers, terms, texts)
overs = st.sampled_from(["location", "synctarget"])
alternatives = st.builds(Alternative, overs, selectors, texts)
grants = st.builds(
    KeyGrant, texts, hashes, several(texts), paths, several(texts), several(texts), numbers, numbers
)
granted = st.lists(grants, max_size=3, unique_by=lambda grant: grant.key_id).map(tuple)
root_keys = st.builds(RootKey, texts, st.binary(min_size=32, max_size=32))
one_of_each = (lambda root: root.key_id, lambda root: root.public_key)
rooted = st.lists(root_keys, max_size=3, unique_by=one_of_each).map(tuple)


def keys_of(source, generation, term, trace, grants, roots, threshold, version):
    """Of roots no more sign than there are."""
    said = (source, generation, term, trace, grants, roots)
    return KeysRecord(*said, min(threshold, len(roots) or 1), version)


records = {
    "delta": st.builds(DeltaHead, *base, hashes, several(alternatives), numbers, numbers),
    "profile": st.builds(Profile, *base, texts, paths, text_maps, text_maps, text_maps),
    "location": st.builds(LocationHead, *base, hashes, st.none() | selectors),
    "node": st.builds(NodeRecord, *base, paths, texts, numbers),
    "keys": st.builds(keys_of, *base, granted, rooted, st.integers(1, 3), st.integers(1, INT_MAX)),
    "ask": st.builds(AskRecord, *base, texts, paths, numbers, text_maps),
}
windows = st.builds(Window, texts, numbers, texts)
gates = st.builds(
    Gate,
    st.none() | references,
    numbers,
    texts,
    overs,
    st.none() | selectors,
    st.from_regex(r"[0-9]{1,3}\.[0-9]{1,2}", fullmatch=True) | st.just(""),
    paths,
    several(windows),
)
dependencies = st.builds(Dependency, texts, numbers, several(alternatives))
bodies = st.builds(
    lambda content, some, last, collectors, after: DeltaBody(
        content, (*some, Gate(last)), collectors, after=after
    ),
    several(references),
    several(gates),
    st.none() | references,
    several(references),
    several(dependencies),
)

samples = st.builds(ExceptionSample, st.integers(0, 3), texts, texts, numbers, texts)
summaries = st.builds(Summary, counts, counts, counts, several(samples, 20), numbers, counts)
results = st.builds(ObjectResult, object_keys, numbers, texts, st.none() | st.binary(max_size=20))
reports = st.builds(
    Report, mail_keys, st.just(0), texts, numbers, numbers, st.booleans(), numbers, summaries
)
later_parts = st.builds(
    ReportPart, mail_keys, st.integers(1, INT_MAX), texts, numbers, numbers, several(results)
)
entries = st.builds(
    ManifestEntry,
    texts,
    texts,
    texts,
    texts,
    addresses,
    st.integers(0, BLOB_MAX_BYTES),
    texts,
    numbers,
    numbers,
    numbers,
    texts,
    st.none(),
    numbers,
    texts,
)
clauses = st.builds(UpsyncClause, texts, several(texts), several(texts), several(texts))
unsigned = {
    Hello: st.builds(
        Hello,
        texts,
        texts,
        texts,
        numbers,
        st.binary(max_size=17),
        numbers,
        st.binary(max_size=20),
        several(mail_keys | texts),
        numbers,
        numbers,
        numbers,
        st.booleans(),
        numbers,
    ),
    Copy: st.builds(Copy, object_keys, numbers, st.binary(max_size=20)),
    Welcome: st.builds(
        Welcome,
        texts,
        texts,
        numbers,
        st.binary(max_size=20),
        st.sampled_from([it.value for it in Repair]) | texts,
    ),
    Progress: st.builds(Progress, texts, texts, numbers, st.binary(max_size=17)),
    Done: st.builds(
        Done,
        object_keys,
        texts,
        texts,
        several(texts),
        st.booleans(),
        numbers,
        made_from=st.none() | st.builds(SourceObject, texts, texts, numbers, numbers),
    ),
    Cursor: st.builds(Cursor, texts, numbers, numbers, numbers, numbers, st.booleans()),
    ObjectResult: results,
    DeltaBody: bodies,
    ManifestChunk: st.builds(ManifestChunk, numbers, several(entries)),
    ListRoot: st.integers(0, 2).flatmap(
        lambda bits: st.builds(
            ListRoot,
            st.just(1),
            numbers,
            st.just(bits),
            st.lists(references, min_size=1 << bits, max_size=1 << bits).map(tuple),
            several(clauses),
        )
    ),
}
ask_faults = st.builds(AskFault, texts, texts, texts, numbers)
answers = st.builds(
    AnswerPart, texts, numbers, st.booleans(), st.binary(max_size=20), st.none() | ask_faults
)


def array_of(record):
    """What a record is on the wire: the array of its fields."""
    return list(codec.unpack(encode(record)))
