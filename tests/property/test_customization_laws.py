"""Customization is a pure function: of an object, a Customizer and the properties it asks for."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from relay.objects.customization import (
    EXPAND_PARAMETERS,
    EXPAND_TEMPLATES,
    CustomizationFailed,
    SentCustomizer,
    SentReplacement,
    customize,
    expression_faults,
)
from relay.objects.expansion import Syntax
from relay.syncer.customized_content import customized_address
from schemas.content import blobs
from schemas.objects.objects import ObjectKey
from schemas.records.properties import PARAMETER
from schemas.values import codec
from tests.property.examples import examples

KEY = ObjectKey("", "configmaps", "shop", "c")
NAMES = ("a", "b", "example.com/c")
words = st.sampled_from(
    ["%(a)", "%(b)", "%(no)", "%(example.com/c)", "%%", "%", "{{ .a }}", "{{.b}}", "{{ .no }}"]
) | st.text(st.sampled_from("xyz{}()%. "), max_size=4)
texts = st.lists(words, max_size=4).map("".join)
plain_values = st.text(st.sampled_from("uvw-"), max_size=5)
values = st.dictionaries(st.sampled_from(NAMES), plain_values | texts)
trees = st.recursive(
    texts | st.integers(-5, 5) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("klm"), inner),
    max_leaves=8,
)
switches = st.sampled_from(["true", "false", "True", ""])
paths = st.sampled_from(["$.data.k", "$.data.n", "$..l", "$.data.*", "$.data.k[0]", "$.%(a)"])
replacements = st.lists(
    st.builds(SentReplacement, paths, st.sampled_from(['"%(a)"', "1", '{"k": "x"}'])), max_size=3
)
customizers = st.none() | st.builds(
    SentCustomizer,
    st.just("shop/c"),
    st.builds(Syntax, st.booleans(), st.booleans()),
    replacements.map(tuple),
)


@st.composite
def objects(draw):
    annotations = {EXPAND_PARAMETERS: draw(switches), EXPAND_TEMPLATES: draw(switches)}
    metadata = {"name": "c", "namespace": "shop", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": draw(trees)}


def outcome(obj, by, said):
    try:
        made = customize(KEY, obj, by, said, "s-001")
    except CustomizationFailed as error:
        return str(error), None
    return made.object, made.used


@settings(max_examples=examples(300))
@given(objects(), customizers, values)
def test_it_is_a_pure_function(obj, by, said):
    before = copy.deepcopy((obj, said))
    first = outcome(obj, by, said)
    assert outcome(copy.deepcopy(obj), by, dict(said)) == first
    assert (obj, said) == before
    if first[1] is not None:
        assert first[0]["metadata"]["name"] == "c"


@settings(max_examples=examples(300))
@given(objects(), customizers, values, values)
def test_only_the_properties_that_it_asked_for_matter(obj, by, said, others):
    made, used = outcome(obj, by, said)
    if used is None:
        return
    asked = {name.removeprefix(PARAMETER) for name in used}
    mixed = {name: value for name, value in others.items() if name not in asked}
    mixed |= {name: value for name, value in used.items() if value is not None}
    assert outcome(obj, by, mixed) == (made, used)


@settings(max_examples=examples(300))
@given(objects(), st.dictionaries(st.sampled_from(NAMES), plain_values))
def test_it_is_idempotent_where_nothing_that_was_put_in_is_an_expression(obj, said):
    made, used = outcome(obj, None, said)
    if used is None or "%%" in str(obj["data"]):
        return
    again, _ = outcome(made, None, said)
    if "{{" not in str(made["data"]) and "%(" not in str(made["data"]):
        assert again == made


@given(st.text(max_size=20), values)
def test_doubled_percents_say_any_text(text, said):
    assert Syntax(True, False).expand(text.replace("%", "%%"), said, {}) == text


@settings(max_examples=examples(300))
@given(objects(), customizers, values)
def test_what_the_centre_lets_out_fails_nowhere_but_for_values(obj, by, said):
    if [*expression_faults(obj)] or by is not None:
        return
    known = {**dict.fromkeys(["a", "b", "no", "example.com/c"], "x"), **said}
    assert outcome(obj, None, known)[1] is not None


@settings(max_examples=examples(200))
@given(objects(), customizers, values)
def test_the_address_is_of_what_it_became(obj, by, said):
    made, used = outcome(obj, by, said)
    if used is None:
        return
    plain, encoded = codec.canonical(obj), by.encode() if by else None
    address, asked, _ = customized_address(KEY, plain, encoded, said, "s-001")
    assert address == codec.address(blobs.OBJECT, codec.canonical(made))
    assert dict(asked) == used
    if by is not None:
        assert SentCustomizer.decode(encoded) == by
