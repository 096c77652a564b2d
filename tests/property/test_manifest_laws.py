"""Laws of manifests: what is written is read back, and any text gives objects or a refusal."""

import json

import yaml
from hypothesis import given
from hypothesis import strategies as st

from schemas.objects import yaml_documents
from schemas.objects.manifest_files import InvalidManifest, load_manifests

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | finite | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)
objects = st.builds(
    lambda name, value: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "value": value,
    },
    st.from_regex(r"[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True),
    values,
)
yaml_like = st.lists(
    st.sampled_from(
        [
            *"abc:-?*&!<>|'\"{}[],#%@~=\n\t ",
            ": ",
            "- ",
            "\n  ",
            "---\n",
            "&a ",
            "*a",
            "<<: ",
            "kind",
        ]
    )
).map("".join)


def loaded(text):
    return [item.object for item in load_manifests(text, "any.yaml")]


@given(st.lists(objects, max_size=3))
def test_json_documents_read_back_as_they_were(written):
    text = "\n---\n".join(json.dumps(obj) for obj in written)
    assert loaded(text) == written


@given(st.lists(objects, max_size=3))
def test_objects_that_another_program_wrote_as_yaml_read_back_as_they_were(written):
    # `=`, `y` and numbers with underscores are plain to some writers: this one quotes all strings.
    class Quoting(yaml.SafeDumper):
        pass

    Quoting.add_representer(
        str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
    )
    text = yaml.dump_all(written, Dumper=Quoting, allow_unicode=True)
    assert loaded(text) == written


@given(st.one_of(yaml_like, st.text(), st.text(st.characters())))
def test_any_text_gives_objects_or_a_refusal_with_a_place_in_the_text(text):
    lines = text.splitlines()
    try:
        load_manifests(text, "any.yaml")
    except InvalidManifest as refused:
        for problem in refused.problems:
            assert 1 <= problem.position.line <= len(lines) + 1
            assert problem.position.column >= 1
            assert problem.message


@given(yaml_like)
def test_both_parsers_read_the_same(text):
    def read(parser):
        previous, yaml_documents._LOADER = yaml_documents._LOADER, parser
        try:
            return [document.root for document in yaml_documents.read_documents(text, "any.yaml")]
        except InvalidManifest:
            return None
        finally:
            yaml_documents._LOADER = previous

    fast, plain = read(yaml_documents._LOADER), read(yaml.SafeLoader)
    # Each refuses some texts that the other takes; what both take, they read alike.
    assert fast is None or plain is None or fast == plain
