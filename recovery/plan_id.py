"""The id of a replay plan: a UUID of version 7 (RFC 9562), which holds the present at which its owner made the plan.

Attempts are named by it, and whatever is written under one was written later than the plan was made. So the plan's
time is a bound for the age of what a job wrote that depends on no worker's clock.
"""

import secrets
import uuid

_VERSION, _VARIANT = 7, 0b10
_RANDOM_BITS = 74
_MAX_TIME = (1 << 48) - 1


def new_plan_id(present: int | None) -> str:
    """A name that no other plan has: a job that was removed begins again with epoch 0. `present` is in milliseconds, or
    None where it is not known, as for a job of a version before that is made again.
    """
    if present is None:
        return uuid.uuid4().hex
    random = secrets.randbits(_RANDOM_BITS)
    time = min(max(present, 0), _MAX_TIME)
    high, low = random >> 62, random & ((1 << 62) - 1)
    return uuid.UUID(int=time << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low).hex


def planned_at(plan: str) -> int | None:
    """The present at which a plan was made; None for one of a version before, whose ids were random."""
    try:
        found = uuid.UUID(hex=plan)
    except ValueError:
        return None
    return found.int >> 80 if found.version == _VERSION else None
