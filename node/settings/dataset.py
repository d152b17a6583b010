"""The dataset that a node serves: its topic, its buckets, and how long what is kept.

Some of these lengths lean on each other, and the margin leans on what the topic itself says of its retention, which is
known only once Kafka has been asked. So the same checks run twice: here over the settings alone, and through `shards`
with the topic's retention as well.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from strandline.node.settings import fields
from strandline.node.settings.findings import Finding, nonsense
from strandline.node.settings.section import AS_WRITTEN, Section
from strandline.node.settings.units import Duration

MOST_ROWS = 500_000
"""What a shard's manifest may hold, so that it is one partition of the table and can be read at a start."""

# Cassandra keeps nothing for more than 20 years: the retention and what is added to it share them. A margin is Kafka's
# retention and two flush intervals, which are two days at the most.
_LONGEST, _LONGEST_IN_KAFKA = "3650d", "3640d"
LONGEST_KAFKA_RETENTION = Duration.parse(_LONGEST_IN_KAFKA)
"""A topic that keeps its records for longer keeps them for ever, as far as we are concerned."""

_HOUR, _DAY = Duration.parse("1h").milliseconds, Duration.parse("1d").milliseconds

OptionalDuration = Annotated[Duration | None, fields.between_or_none(Duration, "1s", _LONGEST), AS_WRITTEN]


def _fits_the_day(interval: Duration) -> Duration:
    milliseconds = interval.milliseconds
    if _HOUR % milliseconds and (milliseconds % _HOUR or _DAY % milliseconds):
        remedy = "A part of an hour, such as 5m, 15m or 30m, or one of 1h, 2h, 3h, 4h, 6h, 8h, 12h and 1d"
        raise nonsense("neither divides an hour nor is it whole hours that divide a day", remedy)
    return interval


class DatasetSettings(Section):
    """The dataset that a node serves. Its flush interval and groups can't be changed once it exists."""

    name: Annotated[
        str,
        fields.text_like(
            # As long as a topic's name may be with "-dead" behind it.
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
    groups: Annotated[int, fields.whole_number(1, 256)] = Field(
        default=16, description="In how many parts a bucket is stored, one after the other."
    )
    grace: Annotated[Duration, fields.between(Duration, "0s"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long after its end a bucket stays open."
    )
    retention: Annotated[Duration, fields.between(Duration, "1s", _LONGEST), AS_WRITTEN] = Field(
        default=Duration.parse("7d"), description="How long samples and series that have ended are kept."
    )
    stale_after: OptionalDuration = Field(
        default=None, description="A series without a sample for so long has ended; empty for the flush interval."
    )
    kafka_retention: Annotated[
        Duration | None, fields.between_or_none(Duration, "1s", _LONGEST_IN_KAFKA), AS_WRITTEN
    ] = Field(default=None, description="How long Kafka keeps records; empty for what the topic says.")
    margin: OptionalDuration = Field(
        default=None,
        description="What is stored outlives its retention by so much; empty for the least that is safe.",
    )
    history: Annotated[Duration, fields.between(Duration, "0s", _LONGEST), AS_WRITTEN] = Field(
        default=Duration.parse("30d"), description="How long the manifest tells of data that has gone."
    )

    @property
    def topic_name(self) -> str:
        """The Kafka topic."""
        return self.topic or self.name

    def least_margin(self, topic_retention: Duration | None) -> Duration:
        """The least margin with which a node that was down for as long as Kafka kept its records finds all of its
        keys. None for a topic that keeps its records for ever, or whose retention is not known yet.
        """
        kept = self.kafka_retention or topic_retention or Duration(0)
        return Duration(kept.milliseconds + 2 * self.flush_interval.milliseconds)

    def margin_with(self, topic_retention: Duration | None) -> Duration:
        """The margin that counts."""
        return self.margin or self.least_margin(topic_retention)

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
        """What is wrong with the margin and the number of rows, as far as the topic's retention is known."""
        least = self.least_margin(topic_retention)
        if self.margin is not None and self.margin < least:
            behind = f"two flush intervals of {self.flush_interval}"
            if least.milliseconds > 2 * self.flush_interval.milliseconds:
                behind = f"Kafka's retention, {self.kafka_retention or topic_retention}, and {behind}"
            yield Finding(
                f"is less than {behind}: a node that was down could find its keys expired",
                f'At least {least}, or "" for that',
                ("margin",),
                ("kafka_retention", "flush_interval"),
            )
        else:
            yield from self._row_findings(self.margin_with(topic_retention))

    def _row_findings(self, margin: Duration) -> Iterator[Finding]:
        behind = max(self.history, margin)
        life = self.retention.milliseconds + behind.milliseconds
        rows = -(-life // self.flush_interval.milliseconds) * (self.groups + 1)
        if rows <= MOST_ROWS:
            return
        # What the length behind the retention comes from, and so what can be changed.
        if behind == self.history:
            word = "history"
        elif self.margin is not None:
            word = "margin"
        else:
            word = "kafka_retention" if self.kafka_retention is not None else "the topic's retention"
        because = ("flush_interval", "groups", "retention", "history", "margin", "kafka_retention")
        changed = (name for name in because if getattr(self, name) != type(self).model_fields[name].default)
        yield Finding(
            f"makes {rows:,} manifest rows a shard, and {MOST_ROWS:,} is the most: ({self.retention} of retention +"
            f" {behind} of {'history' if word == 'history' else 'margin'}) / {self.flush_interval} x"
            f" ({self.groups} groups + 1)",
            f"Raise flush_interval, or lower groups, retention or {word}",
            (next(changed, "flush_interval"),),
            because,
        )
