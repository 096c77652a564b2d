"""What is written as YAML reads back the same."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from schemas.objects.yaml_documents import read_documents
from schemas.objects.yaml_writing import write_yaml

# What YAML cannot say is refused where it is read: control characters, half characters.
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"))
# YAML takes a key in braces of 1,024 characters at most, and JSON writes up to twelve for one.
KEYS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=80
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT
VALUES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False, width=32),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
@example({"a": "="})
@example({"y": "0o17", "on": "12:30:00", "b": "1e3", "c": "", "d": "~", "e": ".inf"})
@example({"a": "two\nlines\n", "b": " x\ny", "c": "\n", "d": "x\n\n", "e": "\n x"})
@example({"": "...\n"})
@example({"a": "\n...\n\n"})
@example({"a": "#x", "b": "- x", "c": "x: y", "d": "%x", "e": "---\n...", "f": "x #y"})
def test_what_is_written_reads_back_the_same(value):
    [document] = read_documents(write_yaml(value), "written")
    assert document.root == value


def test_it_is_laid_out_as_kubectl_does():
    text = write_yaml({"b": [{"name": "x", "args": ["1", 2]}], "a": {"conf": "x=1\ny=2\n"}})
    assert text == ('a:\n  conf: |\n    x=1\n    y=2\nb:\n- args:\n  - "1"\n  - 2\n  name: x\n')


@given(
    st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=4),
    st.sampled_from(["", " ", "\n", "\n\n# a tool\n", "\ufeff", "\n\ufeff", "\n---\n", "\x1e"]),
    st.booleans(),
)
def test_json_values_that_follow_each_other_read_back_the_same(values, between, escaped):
    text = between.join(json.dumps(value, ensure_ascii=escaped) for value in values)
    read = [document.root for document in read_documents(text, "stream")]
    assert read == values
