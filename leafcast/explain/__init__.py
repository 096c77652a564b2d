"""Why a copy is not as it is meant at a destination: facts in, the first stage that blocks out."""
