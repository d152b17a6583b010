"""`/-/healthy` and `/-/ready`: whether the process serves, and whether all its shards answer completely."""

import orjson

from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.query.coverage import unserved, unserved_in_words
from strandline.node.status.processes import NodeShards, ShardProcessStatus
from strandline.recovery.present import describe_wrong_clocks


def health_routes(node: NodeShards) -> tuple[Route, ...]:
    """The routes. They are open, because health checks usually have no token. So they show phases only: the reasons why
    shards are not active may name hosts and files, and are on the status page, which requires a read token.
    """

    async def healthy(_request: Request) -> Response:
        return Response.text("Strandline is healthy.\n")

    async def ready(request: Request) -> Response:
        shards, partitions = node.shards(), node.partitions()
        is_ready = bool(shards) and all(shard.is_ready for shard in shards)
        status, missing = 200 if is_ready else 503, unserved(partitions, [shard.shard for shard in shards])
        if "application/json" in request.headers.get("Accept", ""):
            state = {"ready": is_ready, "shards": [_record(shard) for shard in shards], "unserved": missing}
            return Response(orjson.dumps(state), status)
        headline = "Strandline is ready." if is_ready else "Strandline is not ready."
        lines = [headline, *map(_line, shards)] if shards else [headline, "It has no shards yet."]
        if missing:
            words = unserved_in_words(missing, partitions)
            lines.append(f"{words[0].upper()}{words[1:]}.")
        return Response.text("\n".join(lines) + "\n", status=status)

    return (
        Route(("GET",), "/-/healthy", healthy, Access.OPEN),
        Route(("GET",), "/-/ready", ready, Access.OPEN),
    )


def _phase(shard: ShardProcessStatus) -> str:
    return shard.state.value if shard.report is None else shard.report.status.phase.value


def _percent(shard: ShardProcessStatus) -> float | None:
    fraction = None if shard.report is None else shard.report.status.fraction
    return None if fraction is None else round(100 * fraction, 1)


def _line(shard: ShardProcessStatus) -> str:
    percent = _percent(shard)
    line = f"shard {shard.shard}: {_phase(shard)}"
    if percent is not None and not shard.is_active:
        line += f" {percent:g}%"
    if shard.starts_in_s is not None:
        line += f", starts in {shard.starts_in_s:.0f} s"
    if shard.store_unanswered_s is not None:
        line += f", its store has not answered for {shard.store_unanswered_s:.0f} s"
    behind = _behind_s(shard)
    if behind is not None and shard.is_active:
        line += f", {behind:,.0f} s behind"
    wrong = describe_wrong_clocks(shard.report.clocks) if shard.report is not None else ""
    return f"{line}, {wrong}" if wrong else line


def _behind_s(shard: ShardProcessStatus) -> float | None:
    """How far an active shard is behind; None below the limit for warnings."""
    report = shard.report
    if report is None or report.behind_s is None or report.behind_s <= report.limits.warn_behind_s:
        return None
    return round(report.behind_s, 1)


def _record(shard: ShardProcessStatus) -> dict[str, object]:
    return {
        "shard": shard.shard,
        "active": shard.is_active,
        "process": shard.state.value,
        "phase": _phase(shard),
        "percent": _percent(shard),
        "store_unanswered_seconds": shard.store_unanswered_s,
        "behind_s": _behind_s(shard),
        "clocks_ahead_ms": shard.report.clocks if shard.report is not None else {},
    }
