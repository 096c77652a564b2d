"""What a text costs to be read follows from its length, whatever it says."""

import time
from dataclasses import replace

import pytest

from controllers.core.workloads.collectors import (
    COLLECTED_NAMES_MAX_BYTES,
    COLLECTED_TEXT_MAX_BYTES,
    MERGED_NAMES_MAX_BYTES,
    Collectors,
    names_too_much,
)
from controllers.core.workloads.transforms import Transform, TransformFailed, Transforms, transform
from relay.objects.customization import (
    CustomizationFailed,
    SentCustomizer,
    SentReplacement,
    customize,
)
from relay.objects.expansion import Syntax
from relay.objects.expressions import cel
from relay.objects.expressions.bounds import TOKENS_IN_ALL_MAX, TOKENS_MAX
from relay.objects.expressions.cel import CompiledExpression, ExpressionRefused
from relay.objects.expressions.programs import program_faults
from relay.objects.health_rules import assess_by_rule, rule_faults
from schemas.api.parsing import parse_wish
from schemas.content.blobs import BLOB_MAX_BYTES
from schemas.objects import json_paths
from schemas.objects.json_paths import CHARACTERS_MAX, JsonPath
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import Requirement
from schemas.records.health_rules import HealthProgram
from schemas.reports.collectors import Expression, Program, program_set
from schemas.values.faults import InvalidObject
from schemas.values.wire import force_setattr

KEY = ObjectKey("", "configmaps", "shop", "web")
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "web", "namespace": "shop"},
    "data": {"a": "b"},
}
DEAR_PATH = f"$.data[?{'||'.join(['@.b==1'] * 400)}]"


def custom_transform(*paths):
    return {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "CustomTransform",
        "metadata": {"name": "t"},
        "spec": {"apiGroup": "", "resource": "configmaps", "remove": list(paths)},
    }


def customizer(*paths):
    said = [{"path": path, "value": "1"} for path in paths]
    metadata = {"name": "c", "namespace": "shop"}
    form = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "Customizer"}
    return {**form, "metadata": metadata, "replacements": said}


@pytest.mark.parametrize(
    "text",
    [
        "+".join(["1"] * TOKENS_MAX),
        "obj" + ".a" * TOKENS_MAX,
        f"{'dyn(' * 30}[{'1,' * TOKENS_MAX}1]{')' * 30}",
        "!" * TOKENS_MAX + "true",
    ],
)
def test_an_expression_of_many_parts_is_refused_before_it_is_compiled(text, monkeypatch):
    monkeypatch.setattr(cel, "_extension", lambda: pytest.fail("it was compiled"))
    with pytest.raises(ExpressionRefused, match=f"at most {TOKENS_MAX} are allowed; write it"):
        CompiledExpression(text)


def test_calls_inside_of_calls_are_compiled_a_few_times_and_not_at_each_depth(monkeypatch):
    compiled, extension = [], cel._extension()

    class Counting:
        Context = extension.Context

        @staticmethod
        def compile(text):
            compiled.append(len(text))
            return extension.compile(text)

    monkeypatch.setattr(cel, "_extension", Counting)
    text = f"{'dyn(' * 30}'{'a' * 3000}'{')' * 30}"
    CompiledExpression(text)
    assert sum(compiled) <= len(text) + cel.TRIED_CHARACTERS_MAX
    # One that can be tried still is.
    with pytest.raises(ExpressionRefused, match="there is size"):
        CompiledExpression("size(1)")


def test_a_collector_and_a_health_rule_have_so_many_parts_in_all():
    one = "+".join(["1"] * (TOKENS_MAX // 2))
    count = TOKENS_IN_ALL_MAX // (TOKENS_MAX - 1)
    columns = [Expression(f"c{at}", one) for at in range(count + 1)]
    assert not program_faults(Program("p", select=tuple(columns[:count])))
    [fault] = program_faults(Program("p", select=tuple(columns)))
    assert (fault.path, fault.remedy) == ("spec", "collect less by one collector")
    assert f"at most {TOKENS_IN_ALL_MAX} are allowed; write them shorter" in fault.message
    one = "+".join(["1"] * (TOKENS_MAX // 2 - 2))
    wide = HealthProgram("r", "", "configmaps", f"{one}>0", f"{one}>1", f"string({one})")
    [fault] = rule_faults(wide)
    assert f"at most {TOKENS_IN_ALL_MAX} are allowed" in fault.message
    assert fault.remedy == "say less by one rule"


def test_the_expressions_of_one_health_rule_share_what_they_may_cost():
    items = [{"a": at} for at in range(150)]
    obj = {**OBJECT, "metadata": {**OBJECT["metadata"], "uid": "u"}, "spec": {"items": items}}
    one = "obj.spec.items.exists(x, x.a == -1 || x.a == -2 || x.a == -3)"
    many = " || ".join([one] * 4)
    alone = HealthProgram("r", "", "configmaps", f"!({many})")
    assert assess_by_rule(alone, obj, lambda: ("healthy", "")) == ("healthy", "")
    rule = HealthProgram("r", "", "configmaps", f"!({many})", many, f"{many} ? 'a' : 'b'")
    assert not rule_faults(rule)
    health, reason = assess_by_rule(rule, obj, lambda: ("healthy", ""))
    assert health == "progressing"
    assert "too costly" in reason
    assert "3 expressions together" in reason


def test_collectors_of_a_placement_have_so_much_text_in_all():
    texts = [f"'{at}' + '{'a' * 3000}'" for at in range(32)]
    columns = tuple(Expression(f"c{at}", text) for at, text in enumerate(texts))
    programs = [Program(f"p{at}", select=columns) for at in range(6)]
    kept, said = Collectors.within_budget({KEY: tuple(programs)})
    assert kept == {KEY: tuple(programs[:2])}
    assert len(said) == 4
    assert f"of {COLLECTED_TEXT_MAX_BYTES} for a placement" in said[0]
    assert said[0].endswith("write less, or use several placements")


def test_what_is_collected_of_very_many_objects_fits_the_blob_it_travels_in():
    program = Program("p", select=(Expression("c", "1"),))
    keys = [ObjectKey("g" * 60, "r" * 60, "n" * 63, f"{at:0250}") for at in range(40_000)]
    kept, [said] = Collectors.within_budget(dict.fromkeys(keys, (program,)))
    assert not kept
    assert f"at most {COLLECTED_NAMES_MAX_BYTES} are allowed" in said
    assert "use several placements" in names_too_much(keys)
    few, merged = keys[:10_000], keys[10_000:30_000]
    assert Collectors.within_budget(dict.fromkeys(few, (program,)))[1] == ()
    assert not names_too_much(merged)
    assert program_set(dict.fromkeys(few + merged, (program,))).reference.size < BLOB_MAX_BYTES
    assert COLLECTED_NAMES_MAX_BYTES + MERGED_NAMES_MAX_BYTES < BLOB_MAX_BYTES - 1024 * 1024


def test_what_many_collectors_over_few_of_many_objects_take_is_told_at_once():
    wide = Program("a", select=(Expression("c", "1"),))
    narrow = tuple(Program(f"b{at}", select=(Expression("c", "1"),)) for at in range(3_000))
    found = {ObjectKey("", "configmaps", "shop", f"c{at}"): (wide,) for at in range(40_000)}
    first = next(iter(found))
    found[first] += narrow
    began = time.process_time()
    assert Collectors.within_budget(found)[1] == ()
    # To compare each with all objects takes a hundred million steps.
    assert time.process_time() - began < 5


@pytest.mark.parametrize("number", ["1e400", "-1e999", f"1{'0' * 400}e0"])
def test_a_number_without_end_in_a_path_is_a_fault_of_it_and_of_nothing_else(number):
    path = f"$.data[?@.b=={number}]"
    with pytest.raises(InvalidObject, match="is not a JSONPath"):
        parse_wish(custom_transform(path))
    transforms = Transforms()
    transforms.put("t", custom_transform(path))
    assert "is not a JSONPath" in transforms.invalid["t"][0]
    with pytest.raises(TransformFailed, match="stays as it went out last"):
        transform(dict(OBJECT), transforms.of(KEY))
    # Where properties make a path of it.
    by = SentCustomizer(
        "shop/c",
        Syntax(parameters=True, templates=False),
        (SentReplacement("$.data[?@.b==%(n)].c", "1"),),
    )
    with pytest.raises(CustomizationFailed, match="is not a JSONPath"):
        customize(KEY, OBJECT, by, {"n": number}, "edge")


@pytest.mark.parametrize(("make", "where"), [(custom_transform, "spec.remove"), (customizer, "")])
def test_the_paths_of_one_text_have_so_many_characters_in_all(make, where, monkeypatch):
    monkeypatch.setattr(json_paths, "_compile", lambda _text: pytest.fail("it was read"))
    paths = [f"$.data.{at}{'a' * 900}" for at in range(20)]
    with pytest.raises(InvalidObject) as refused:
        parse_wish(make(*paths))
    said = str(refused.value)
    assert where in said
    assert f"characters in all paths, at most {CHARACTERS_MAX} may be" in said
    assert "write shorter paths, or fewer" in said


def test_paths_are_read_once_however_many_objects_they_are_followed_in(monkeypatch):
    transforms = tuple(
        Transform(f"t{at}", None, tuple(f"$.data.x{at}{path}" for path in range(200)))
        for at in range(3)
    )
    monkeypatch.setattr(json_paths, "_compile", lambda _text: pytest.fail("it was read again"))
    for _ in range(3):
        transform({**OBJECT}, transforms)


def test_paths_that_properties_make_long_are_followed_no_further_than_short_ones(monkeypatch):
    read, compile_ = dict[str, int](), json_paths._compile

    def counted(text):
        read[text] = len(text)
        return compile_(text)

    monkeypatch.setattr(json_paths, "_compile", counted)
    paths = [f"$.data.x{at}%(long)" for at in range(200)]
    syntax = Syntax(parameters=True, templates=False)
    by = SentCustomizer("shop/c", syntax, tuple(SentReplacement(path, "1") for path in paths))
    with pytest.raises(CustomizationFailed, match="write shorter paths, or fewer"):
        customize(KEY, OBJECT, by, {"long": "a" * 3000}, "edge")
    assert sum(read.values()) <= json_paths.STEPS_MAX


@pytest.mark.parametrize(
    ("path", "value"),
    [("$.data.items[*].x", f"[{','.join(['{}'] * 50)}]"), ("$.data.x", f"[{'1,' * 100_000}1]")],
)
def test_replacements_put_so_many_values_into_one_object(path, value):
    items = [{"a": at} for at in range(9_000)]
    obj = {**OBJECT, "data": {"items": items}}
    by = SentCustomizer(
        "shop/c", Syntax(parameters=False, templates=False), (SentReplacement(path, value),)
    )
    with pytest.raises(CustomizationFailed) as refused:
        customize(KEY, obj, by, {}, "edge")
    assert "put less there" in str(refused.value)
    small = replace(by, replacements=(SentReplacement(path, '"x"'),))
    assert customize(KEY, obj, small, {}, "edge").steps > 0


def test_a_dear_path_within_its_bounds_is_taken():
    paths = [f"{DEAR_PATH}.{at}" for at in range(CHARACTERS_MAX // (len(DEAR_PATH) + 3))]
    assert parse_wish(custom_transform(*paths)).spec.remove == tuple(paths)
    assert JsonPath(DEAR_PATH).places(OBJECT) == []


def rollout(*lists):
    waves = [
        {"name": f"w{at}", "percent": 100 if at == len(lists) - 1 else at + 1, "windows": listed}
        for at, listed in enumerate(lists)
    ]
    spec = {"placement": {"name": "shop"}, "waves": waves}
    form = {"apiVersion": "leafcast.io/v1alpha1", "kind": "Rollout"}
    return {**form, "metadata": {"name": "shop"}, "spec": spec}


def test_a_rollout_has_so_many_different_windows_and_each_as_often_as_it_likes():
    def windows(first):
        return [
            {"cron": f"{first} {hour} 29 2 *", "duration": "1h", "zone": "destination"}
            for hour in range(20)
        ]

    parse_wish(rollout(*[windows(0)] * 20))
    with pytest.raises(InvalidObject, match="80 different windows in all waves; write at most 64"):
        parse_wish(rollout(*map(windows, range(4))))


def test_a_label_that_is_not_there_is_compared_with_no_value():
    class Counted(str):
        compared = 0
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.compared += 1
            return str.__eq__(self, other)

    requirement = Requirement("k", "NotIn", tuple(f"v{at}" for at in range(256)))
    force_setattr(requirement, "values", tuple(map(Counted, requirement.values)))
    assert requirement.matches({"other": "v1"})
    assert Counted.compared == 0
    assert not requirement.matches({"k": "v1"})
