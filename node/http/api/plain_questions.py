"""Look-ups as most clients send them, read from the URL straight into what the link carries.

One selector of plain matchers, times in whole seconds, a number of results: what this reads, the general way reads the
same, and takes several times as long. Whatever else there is, and whatever is wrong, is left to that.
"""

from strandline.index.selectors import plain_matchers
from strandline.node.http.parameters import unescaped_ascii
from strandline.node.http.times import EARLIEST_MS, LATEST_MS
from strandline.node.query.asks import LABEL_VALUES, SERIES
from strandline.node.query.quick import Question

# Every number of so many digits is in the safe range, of times as of limits.
_MOST_DIGITS = 12
_MATCH = ("match[]", "match%5B%5D", "match%5b%5d")
# What a label's name in a path begins with if it is escaped.
_ESCAPED_NAME = "U__"


def plain_question(kind: str, label: str, query: str, most: int) -> Question | None:
    """What a URL's parameters ask for, with the label that its path names, of at most so many results; None if it is
    not plain.
    """
    selectors: list[list[tuple[str, str, str]]] = []
    numbers: dict[str, int] = {}
    for parameter in query.split("&") if query else ():
        name, _, value = parameter.partition("=")
        if name in ("start", "end", "limit"):
            if not (value.isdigit() and value.isascii()) or len(value) > _MOST_DIGITS or name in numbers:
                return None
            numbers[name] = int(value)
        elif name in _MATCH and not selectors:
            selectors.append(_plain_selector(value))
        else:
            return None
    if [] in selectors or (kind == SERIES and not selectors) or label.startswith(_ESCAPED_NAME):
        return None
    within: tuple[int, int] | None = None
    if "start" in numbers or "end" in numbers:
        within = (
            1000 * numbers["start"] if "start" in numbers else EARLIEST_MS,
            1000 * numbers["end"] if "end" in numbers else LATEST_MS,
        )
        if within[1] < within[0]:
            return None
    limit = min(numbers.get("limit") or most, most)
    fields: dict[str, object] = {"selectors": selectors, "within": within, "limit": limit}
    if kind == LABEL_VALUES:
        fields["label"] = label
    return Question(kind, fields, limit)


def _plain_selector(written: str) -> list[tuple[str, str, str]]:
    """The matchers of a selector that leaves something out, by plain values alone; none if it is another."""
    if "+" in written:
        return []
    try:
        matchers = plain_matchers(unescaped_ascii(written))
    except KeyError:
        return []
    leaves_out = False
    for _, op, value in matchers:
        if op not in ("=", "!="):
            return []
        leaves_out = leaves_out or (op == "=" and value != "")
    return matchers if leaves_out else []
