"""Sends all queries; exits with 1 if an answer differs that is not a known difference."""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import monotonic

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from strandline.clock import SystemClock
from strandline.node.stack import Stack, StackOptions
from support.promql_oracle import KNOWN_DIFFERENCES, Case, bodies, cases, difference
from support.service import Service, eventually, service

_LAST_SAMPLE = 1794916800
_DAY = 86_400


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--partitions", default=2, show_default=True, help="The number of shards.")
@click.option("--group", help="Only the queries of this group.")
def main(*, partitions: int, group: str | None) -> None:
    """Compare a node's answers with those of a real Prometheus 3.15."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="strandline-promql-") as folder:
        console.print("starting Kafka, Cassandra, a gateway and a node")
        with (
            Stack.start(StackOptions(state_dir=Path(folder) / "stack")) as stack,
            service(stack, Path(folder) / "service", partitions=partitions, dataset=_dataset()) as running,
        ):
            _write(running)
            same, known, other = Counter[str](), Counter[str](), Counter[str]()
            wanted = [case for case in cases() if group in (None, case.group)]
            begin = monotonic()
            for case in track(wanted, "querying", console=console):
                why = _difference(running, case)
                if not why:
                    same[case.group] += 1
                elif case.name in KNOWN_DIFFERENCES:
                    known[case.group] += 1
                else:
                    other[case.group] += 1
                    console.print(f"{case.name} {case.query!r}: {why}", markup=False)
            seconds = monotonic() - begin
    table = Table("group", "same", "known differences", "other")
    for name in sorted({*same, *known, *other}):
        table.add_row(name, f"{same[name]}", f"{known[name]}", f"{other[name]}")
    table.add_row("all", f"{same.total()}", f"{known.total()}", f"{other.total()}")
    console.print(table)
    console.print(f"{len(wanted)} queries in {seconds:.0f} s")
    sys.exit(1 if other else 0)


def _dataset() -> dict[str, object]:
    """Settings that keep old samples. Buckets are as short as the number of manifest rows allows."""
    days = (int(SystemClock().now_ms() / 1000) - _LAST_SAMPLE) // _DAY + 3
    return {
        "retention": f"{days}d",
        "stale_after": f"{days}d",
        "kafka_retention": "1d",
        "groups": 4,
        "flush_interval": f"{max(1, days // 30)}m",
    }


def _write(running: Service) -> None:
    sent = bodies()
    for body in sent:
        running.gateway.post("/api/v1/write", body)

    def is_there() -> bool:
        status, answer = running.node.request("/api/v1/query", query="count({__name__=~'.+'})", time=_LAST_SAMPLE)
        return status == 200 and json.loads(answer)["data"]["result"] != []

    eventually(is_there, "the node has the last samples")


def _difference(running: Service, case: Case) -> str:
    if case.time is not None:
        status, answer = running.node.request("/api/v1/query", query=case.query, time=case.time / 1000)
    else:
        times = {"start": case.start / 1000, "end": case.end / 1000, "step": case.step / 1000}
        status, answer = running.node.request("/api/v1/query_range", query=case.query, **times)
    return difference(case, status, json.loads(answer))


if __name__ == "__main__":
    main()
