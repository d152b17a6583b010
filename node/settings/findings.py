"""Findings: what is wrong with a value, as reported by a validator, which does not know the value's file and line.

Validators raise findings through pydantic. The loader collects them and adds the place (see `problems`). A finding does
not contain the value: whether the value may be shown depends on `hidden` and on the setting's name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic_core import PydanticCustomError

ERROR_TYPE = "findings"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and what would be right. `at` is the path from the validated value to the wrong one. `because` has
    the names of other settings with which it conflicts; those of the same section without the section's name.
    """

    what: str
    remedy: str
    at: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    hidden: bool = False


def validation_error(findings: Iterable[Finding]) -> PydanticCustomError:
    """The error that carries these findings through pydantic."""
    carried = tuple(findings)
    return PydanticCustomError(
        ERROR_TYPE, "{summary}", {"summary": "; ".join(finding.what for finding in carried), "findings": carried}
    )


def invalid(what: str, remedy: str, *, hidden: bool = False) -> PydanticCustomError:
    """The error for one invalid value."""
    return validation_error([Finding(what, remedy, hidden=hidden)])


def suggestion(word: str, known: Sequence[str]) -> str:
    """`Did you mean ...?` if one of the known words is similar; otherwise empty."""
    folded = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f'Did you mean "{folded[close[0]]}"?' if close else ""


# Names with these endings are about a secret, such as its path, and don't contain it.
_ABOUT_SECRETS = re.compile(r"(file|location|path|dir|directory|url|type|class|provider|enabled|regex)$", re.IGNORECASE)
_SECRET = re.compile(
    r"password|passwd|passphrase|secret|jaas|token$|access[._]?key|key[._]pem|private[._]?key|ssl_key$", re.IGNORECASE
)


def names_secret(name: str) -> bool:
    """Whether a setting or property of this name contains a secret."""
    return _SECRET.search(name) is not None and _ABOUT_SECRETS.search(name) is None
