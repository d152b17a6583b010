"""What is wrong with a value, said where it is found out, before anybody knows which file or line it came from.

Validators raise findings through pydantic; the loader gathers them and adds the place (see `problems`). A finding never
repeats the value: whether that may be shown is decided once, by `hidden` and by the setting's name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic_core import PydanticCustomError

ERROR_TYPE = "findings"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong and what would be right. `at` leads from the value that was validated down to the wrong one;
    `because` names the other settings that make it wrong: by their names alone those of the same section.
    """

    what: str
    remedy: str
    at: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    hidden: bool = False


def raised(findings: Iterable[Finding]) -> PydanticCustomError:
    """The error that carries these findings through pydantic."""
    carried = tuple(findings)
    return PydanticCustomError(
        ERROR_TYPE, "{summary}", {"summary": "; ".join(finding.what for finding in carried), "findings": carried}
    )


def nonsense(what: str, remedy: str, *, hidden: bool = False) -> PydanticCustomError:
    """The error for one value that makes no sense."""
    return raised([Finding(what, remedy, hidden=hidden)])


def suggestion(word: str, known: Sequence[str]) -> str:
    """`Did you mean ...?` if one of the known words is close, else nothing."""
    folded = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f'Did you mean "{folded[close[0]]}"?' if close else ""


# Ends in a word that says it is only about a secret: where it lies, how it is used.
_ABOUT_SECRETS = re.compile(r"(file|location|path|dir|directory|url|type|class|provider|enabled|regex)$", re.IGNORECASE)
_SECRET = re.compile(
    r"password|passwd|passphrase|secret|jaas|token$|access[._]?key|key[._]pem|private[._]?key|ssl_key$", re.IGNORECASE
)


def names_secret(name: str) -> bool:
    """Whether a setting or property of this name holds a secret itself."""
    return _SECRET.search(name) is not None and _ABOUT_SECRETS.search(name) is None
