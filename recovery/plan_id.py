"""The id of a replay plan: a UUID of version 7 (RFC 9562) that contains the present at which the owner made the plan.

Attempts are named by it, so everything written under an attempt was written after the plan was made. This bounds the
age of a job's rows without relying on any worker's clock.
"""

import secrets
import uuid

_VERSION, _VARIANT = 7, 0b10
_RANDOM_BITS = 74
_MAX_TIME = (1 << 48) - 1


def new_plan_id(present: int | None) -> str:
    """An id that no other plan has: a job that was removed starts again with epoch 0. `present` is in milliseconds, or
    None if unknown, as for a job of an older version that is created again.
    """
    if present is None:
        return uuid.uuid4().hex
    random = secrets.randbits(_RANDOM_BITS)
    time = min(max(present, 0), _MAX_TIME)
    high, low = random >> 62, random & ((1 << 62) - 1)
    return uuid.UUID(int=time << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low).hex


def planned_at(plan: str) -> int | None:
    """The present at which a plan was made; None for plans of older versions, whose ids were random."""
    try:
        found = uuid.UUID(hex=plan)
    except ValueError:
        return None
    return found.int >> 80 if found.version == _VERSION else None
