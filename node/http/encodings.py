"""How an answer may be encoded."""


def accepts_gzip(header: str) -> bool:
    """Whether an `Accept-Encoding` allows it."""
    for part in header.lower().split(","):
        coding, _, parameters = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            quality = parameters.strip().removeprefix("q=")
            return not (quality and quality.strip("0.") == "" and parameters)
    return False
