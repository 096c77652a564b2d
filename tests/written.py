"""Objects written at a running centre as a person writes them, who is asked for nothing."""

from contextlib import aclosing

from leafcast.ask.asked_space import key_form
from leafcast.changes.asked_batches import judged
from leafcast.changes.forms import DELETE, ApplyBatch
from leafcast.changes.judged_batch import JudgedBatch, asked_to_judge
from relay.space_errors import SpaceError
from schemas.objects.manifest_files import LoadedObject


async def apply_objects(session, *objects):
    """Write these; raises BadManifests, CallFailed, SpaceError."""
    loaded = [LoadedObject(obj, "test", number) for number, obj in enumerate(objects)]
    async with judged(session, ApplyBatch(loaded), dry=False) as batch:
        async for _, error in batch.written({}):
            if error is not None:
                raise error


async def delete_objects(session, *keys):
    """Delete these, if they are there; raises CallFailed, SpaceError."""
    objects = [[*key_form(key), ""] for key in keys]
    answer = await asked_to_judge(session, DELETE, objects=objects, force=True)
    async with aclosing(JudgedBatch(session, answer["batch"])) as batch:
        async for _, outcome in batch.written():
            if isinstance(outcome, SpaceError):
                raise outcome
