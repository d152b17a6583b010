"""The settings of the dataset that a node serves: its topic, its buckets, and its retention times.

Some durations depend on each other, and the margin depends on the topic's retention, which is known only after a query
to Kafka. So the checks run twice: here with the settings alone, and in `node.shard.configuring` with the topic's
retention.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from strandline.node.settings import fields
from strandline.node.settings.findings import Finding, invalid
from strandline.node.settings.section import AS_WRITTEN, Section
from strandline.node.settings.units import Duration

MAX_ROWS = 500_000
"""The maximum number of rows of a shard's manifest, which is one partition of its table and is read at a start."""

# Cassandra's maximum TTL is 20 years, which the retention and the margin share. A margin is Kafka's retention plus two
# flush intervals, which are at most two days.
_MAX_RETENTION, _MAX_KAFKA_RETENTION = "3650d", "3640d"
MAX_KAFKA_RETENTION = Duration.parse(_MAX_KAFKA_RETENTION)
"""A topic with a longer retention is treated as one that keeps its records forever."""

_HOUR, _DAY = Duration.parse("1h").milliseconds, Duration.parse("1d").milliseconds

OptionalDuration = Annotated[Duration | None, fields.between_or_none(Duration, "1s", _MAX_RETENTION), AS_WRITTEN]


def _fits_the_day(interval: Duration) -> Duration:
    milliseconds = interval.milliseconds
    if _HOUR % milliseconds and (milliseconds % _HOUR or _DAY % milliseconds):
        remedy = "A duration that divides an hour, such as 5m, 15m or 30m, or one of 1h, 2h, 3h, 4h, 6h, 8h, 12h and 1d"
        raise invalid("divides neither an hour nor, as a number of hours, a day", remedy)
    return interval


class DatasetSettings(Section):
    """The dataset that a node serves. Its flush interval and groups can't be changed once it exists."""

    name: Annotated[
        str,
        fields.text_like(
            # Kafka's maximum length of a topic's name minus that of "-dead".
            r"[A-Za-z0-9][A-Za-z0-9._-]{0,243}",
            "is not a dataset's name",
            "At most 244 of a-z, A-Z, 0-9, dot, _ and -, a letter or digit first",
        ),
    ] = Field(default="metrics", description="The dataset's name.")
    topic: Annotated[
        str,
        fields.text_like(
            r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{0,244}",
            "is not a topic's name",
            'At most 244 of a-z, A-Z, 0-9, dot, _ and -, or "" for the dataset\'s name',
        ),
    ] = Field(default="", description="The Kafka topic that holds it; empty for one of the dataset's name.")
    flush_interval: Annotated[
        Duration, fields.between(Duration, "1s", "1d"), AfterValidator(_fits_the_day), AS_WRITTEN
    ] = Field(default=Duration.parse("1h"), description="How much time a bucket covers.")
    groups: Annotated[int, fields.integer(1, 256)] = Field(
        default=16, description="The number of parts in which a bucket is stored, one after the other."
    )
    grace: Annotated[Duration, fields.between(Duration, "0s"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long after its end a bucket stays open."
    )
    retention: Annotated[Duration, fields.between(Duration, "1s", _MAX_RETENTION), AS_WRITTEN] = Field(
        default=Duration.parse("7d"), description="How long samples and series that have ended are kept."
    )
    stale_after: OptionalDuration = Field(
        default=None, description="A series without a sample for this long has ended; empty for the flush interval."
    )
    kafka_retention: Annotated[
        Duration | None, fields.between_or_none(Duration, "1s", _MAX_KAFKA_RETENTION), AS_WRITTEN
    ] = Field(default=None, description="How long Kafka keeps records; empty for the topic's retention.")
    margin: OptionalDuration = Field(
        default=None,
        description="How much longer than the retention stored data is kept; empty for the safe minimum.",
    )
    history: Annotated[Duration, fields.between(Duration, "0s", _MAX_RETENTION), AS_WRITTEN] = Field(
        default=Duration.parse("30d"), description="How long the manifest keeps the rows of expired data."
    )

    @property
    def topic_name(self) -> str:
        """The Kafka topic."""
        return self.topic or self.name

    def min_margin(self, topic_retention: Duration | None) -> Duration:
        """The minimum margin with which a node finds all of its keys after it was down for as long as Kafka keeps
        records. `topic_retention` is None if the topic keeps records forever, or if its retention is not known yet.
        """
        kept = self.kafka_retention or topic_retention or Duration(0)
        return Duration(kept.milliseconds + 2 * self.flush_interval.milliseconds)

    def margin_with(self, topic_retention: Duration | None) -> Duration:
        """The effective margin."""
        return self.margin or self.min_margin(topic_retention)

    def findings(self) -> Iterator[Finding]:
        interval = self.flush_interval
        if self.grace >= interval:
            remedy = f"Less than {interval}, or a longer flush_interval"
            yield Finding(f"is not less than flush_interval, {interval}", remedy, ("grace",), ("flush_interval",))
        if self.retention < interval:
            remedy = f"At least {interval}, or a shorter flush_interval"
            yield Finding(f"is less than flush_interval, {interval}", remedy, ("retention",), ("flush_interval",))
        if self.stale_after is not None and self.stale_after > self.retention:
            remedy = f"At most {self.retention}, or a longer retention"
            yield Finding(f"is more than retention, {self.retention}", remedy, ("stale_after",), ("retention",))
        yield from self.findings_with(None)

    def findings_with(self, topic_retention: Duration | None) -> Iterator[Finding]:
        """Findings about the margin and the number of rows, as far as the topic's retention is known."""
        minimum = self.min_margin(topic_retention)
        if self.margin is not None and self.margin < minimum:
            required = f"two flush intervals of {self.flush_interval}"
            if minimum.milliseconds > 2 * self.flush_interval.milliseconds:
                required = f"Kafka's retention, {self.kafka_retention or topic_retention}, and {required}"
            yield Finding(
                f"is less than {required}: a node that was down could find its keys expired",
                f'At least {minimum}, or "" for that',
                ("margin",),
                ("kafka_retention", "flush_interval"),
            )
        else:
            yield from self._row_findings(self.margin_with(topic_retention))

    def _row_findings(self, margin: Duration) -> Iterator[Finding]:
        extra = max(self.history, margin)
        life = self.retention.milliseconds + extra.milliseconds
        rows = -(-life // self.flush_interval.milliseconds) * (self.groups + 1)
        if rows <= MAX_ROWS:
            return
        # The setting that determines `extra`, and so can be changed.
        if extra == self.history:
            source = "history"
        elif self.margin is not None:
            source = "margin"
        else:
            source = "kafka_retention" if self.kafka_retention is not None else "the topic's retention"
        because = ("flush_interval", "groups", "retention", "history", "margin", "kafka_retention")
        changed = (name for name in because if getattr(self, name) != type(self).model_fields[name].default)
        yield Finding(
            f"makes {rows:,} manifest rows per shard, and the maximum is {MAX_ROWS:,}: ({self.retention} of retention +"
            f" {extra} of {'history' if source == 'history' else 'margin'}) / {self.flush_interval} x"
            f" ({self.groups} groups + 1)",
            f"Raise flush_interval, or lower groups, retention or {source}",
            (next(changed, "flush_interval"),),
            because,
        )
