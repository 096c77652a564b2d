"""The order in which the driver carries a batch of effects out, each stage kept before the next."""

from __future__ import annotations

from random import Random

from relay.core import effects as fx

STAGES: dict[type, int] = {
    fx.KeepBlob: 0,
    fx.StoreOwn: 0,
    fx.AddChild: 2,
    fx.RemoveChild: 2,
    fx.WriteMail: 3,
    fx.AckMail: 4,
    fx.DropBlobs: 5,
}
"""The driver's stages, each kept before the next; what is not named here comes last.

Blobs and own records are kept side by side: a crash may keep any of them.
"""


def staged(made: list[fx.Effect], random: Random | None = None) -> list[fx.Effect]:
    """A batch's effects in the driver's stages: own records once a key, one acknowledgement.

    With `random` what is kept side by side comes in any order.
    """
    kept: dict[str, fx.Effect] = {}
    acks: list[fx.Effect] = []
    others: list[fx.Effect] = []
    for effect in fx.still_meant(made):
        match effect:
            case fx.StoreOwn():
                kept[effect.key] = effect
            case fx.AckMail():
                acks = [effect]
            case _:
                others.append(effect)
    last = len(STAGES)
    ordered = sorted([*kept.values(), *acks, *others], key=lambda e: STAGES.get(type(e), last))
    if random is not None:
        together = sum(1 for e in ordered if STAGES.get(type(e)) == 0)
        first = ordered[:together]
        random.shuffle(first)
        ordered[:together] = first
    return ordered
