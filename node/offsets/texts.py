"""Formats numbers and durations for reports."""

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def span(milliseconds: int) -> str:
    """A duration in its two largest units: "2d 3h", "45s"; negative ones with "-"."""
    left = abs(milliseconds)
    parts = []
    for name, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size}{name}")
        left %= size
    sign = "-" if milliseconds < 0 and parts else ""
    return sign + (" ".join(parts[:2]) or "0s")


def number(value: int | None) -> str:
    """A number with thousands separators; a dash for None."""
    return "-" if value is None else f"{value:,}"


def ranges(numbers: tuple[int, ...]) -> str:
    """Ascending numbers, with consecutive ones as ranges: "3, 5-7"."""
    runs: list[list[int]] = []
    for one in numbers:
        if runs and runs[-1][-1] == one - 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
