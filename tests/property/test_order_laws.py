"""Laws of what waits at a destination, under random changes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.values.wire import replace
from tests.property.examples import examples
from tests.unit.test_destination_order import HERE, Ordered, X, Y, platform

versions = st.integers(1, 3)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("platform"), versions),
        st.tuples(st.just("shop"), versions),
        st.tuples(st.just("health"), st.sampled_from(["healthy", "progressing", "degraded"])),
        st.tuples(st.just("late"), versions),
        st.tuples(st.just("drop"), st.sampled_from(["platform", "shop"])),
    ),
    max_size=12,
)


def version(entry, number):
    return replace(entry, address=f"{number:x}" * 64, revision=number)


class Model:
    """What may be in force, by the words of the protocol."""

    def __init__(self):
        self.bench, self.generation = Ordered(), 10
        self.platform = self.seen = None
        self.needs = 0
        self.shop = None

    def change(self, what, how):
        self.generation += 1
        before = self.bench.wants().get("x")
        was_well = self.is_well()
        getattr(self, f"_{what}")(how)
        after = self.bench.wants().get("x")
        if after is not None and after != before:
            # New content came: only while what it waits for was, or became, well.
            assert was_well or self.is_well()

    def is_well(self):
        if self.platform is None or self.platform[0] < self.needs:
            return False
        return self.seen == (self.platform[1].address, "healthy")

    def _platform(self, number):
        entry = version(Y, number)
        self.platform = (self.generation, entry)
        self.bench.put_named("platform", self.generation, [entry])

    def _shop(self, number):
        """It waits for what the platform is now."""
        self.needs = self.platform[0] if self.platform else 0
        self._say_shop(number)

    def _late(self, number):
        """It waits for what the platform will be: that comes later by another way."""
        self.needs = self.generation + 1
        self._say_shop(number)

    def _say_shop(self, number):
        self.shop = version(X, number)
        after = platform(self.needs, HERE)
        self.bench.put_named("shop", self.generation, [self.shop], after)

    def _health(self, health):
        if self.platform is not None:
            self.seen = (self.platform[1].address, health)
            self.bench.see(self.platform[1], health)

    def _drop(self, name):
        self.bench.drop(name)
        if name == "platform":
            self.platform = None
        else:
            self.shop = None


@settings(max_examples=examples(200))
@given(changes)
def test_new_content_comes_only_while_what_it_waits_for_is_well_and_then_at_once(steps):
    model = Model()
    for what, how in steps:
        model.change(what, how)
    model.change("platform", 3)
    model.change("health", "healthy")
    model.generation += 1
    model.change("platform", 2)
    model.change("health", "healthy")
    if model.shop is not None:
        assert model.bench.wants()["x"] == model.shop.address
