"""Answers the requests to one shard, from its index, bitmaps, buffers and store."""

import os
import threading
from dataclasses import replace

import numpy as np

from strandline.errors import StrandlineError
from strandline.index.catalogue import Catalogue
from strandline.index.documents import PartKeyBatch
from strandline.index.key_bytes import KeyBytes, in_label_order
from strandline.index.matchers import InvalidMatcher, RegexBudget
from strandline.index.part_columns import NO_KEYS
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.node.query.answers import Answer, BucketsAnswer, CardinalityAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.bucket_figures import bucket_figures
from strandline.node.query.fair_semaphore import FairSemaphore
from strandline.node.query.fragment_answers import ShardView, evaluate_fragment
from strandline.node.query.group_numbers import GroupNumbers
from strandline.node.query.index_version import IndexVersionPage
from strandline.node.query.key_pages import read_key_page
from strandline.node.query.label_terms import list_terms
from strandline.node.query.live_shard import LiveShard, ReadyShard, check_not_ended, ready_shard, shard_number
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.queries import (
    Cancellation,
    QueryCancelled,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)
from strandline.node.query.result_cache import DEFAULT_BYTES, ResultCache
from strandline.node.query.sampling import estimated_samples, read_samples
from strandline.node.query.series_hashes import series_hashes
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    EvaluateRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    SeriesHashesRequest,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.query.unresponsive_store import unresponsive_store_error
from strandline.node.shard.reader import ShardReader
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase
from strandline.promql.errors import EvaluationError

DEFAULT_BUDGET = RegexBudget(max_terms=5_000_000, max_ms=10_000)
# Errors of the request or of the client. Any other error means that the shard can't answer.
_REQUEST_ERRORS = (InvalidMatcher, RegexTooCostly, QueryTooLarge, QueryCancelled, QueryTimedOut, EvaluationError)


class ShardAnswers:
    """Answers for a shard of this process, in any phase of the shard. Thread-safe. Each calling thread is attached to
    the JVM.
    """

    def __init__(
        self, running: LiveShard, *, budget: RegexBudget = DEFAULT_BUDGET, result_cache: int = DEFAULT_BYTES
    ) -> None:
        """`result_cache` is the size of the result cache in bytes."""
        self._running, self._budget = running, budget
        self._lock = threading.Lock()
        self._reader: ShardReader | None = None
        self._reader_shard: Shard | None = None
        self._groups = GroupNumbers()
        # More at a time would not be faster, and hold more samples in memory. At least two: one may wait for the store.
        self._block_semaphore = FairSemaphore(max(2, len(os.sched_getaffinity(0))))
        self.results = ResultCache(result_cache)

    def answer(self, request: ShardRequest, cancellation: Cancellation) -> Answer:
        """Answer a request.

        Raises `QueryTooLarge`, `QueryCancelled`, `QueryTimedOut`, the errors of `strandline.index.matchers`, and
        `QueryUnavailable`, with the reason, for any other error.
        """
        cancellation.check()
        ready = ready_shard(self._running, request.within)
        try:
            answer = self._answered(ready, request, cancellation)
        except QueryTimedOut:
            if (store_error := self._unresponsive_store_error(cancellation.timeout_s)) is not None:
                raise store_error from None
            raise
        except (*_REQUEST_ERRORS, QueryUnavailable):
            raise
        except StrandlineError as error:
            raise self._unavailable(error) from error
        check_not_ended(self._running)
        return answer

    def publish(self, page: IndexVersionPage, lookups: LookupGate) -> None:
        """Publish the version of the label lists, and let the JVM answer lookups while answers have no warnings. Called
        by the shard's threads.
        """
        try:
            ready = ready_shard(self._running)
        except QueryUnavailable:
            ready = None
        if ready is None or ready.warnings:
            lookups.shut()
            page.publish(None, NO_KEYS)
            return
        # Before the first request, which would otherwise share the cores with the JVM compiling lookups for seconds.
        self._reader_of(ready)
        index = ready.shard.index
        lookups.open(ready.lucene, index.columns)
        if self._running.status.phase is not Phase.ACTIVE:
            # Another thread has changed the phase, and its call of this method waits.
            lookups.shut()
        if index.has_purged_documents():
            page.publish(None, NO_KEYS)
        else:
            # Refreshes are read first: a key added in between is in the span and not yet in the lists.
            refreshes = ready.lucene.refreshes
            page.publish((id(ready.shard), refreshes), index.columns.span())

    def close(self) -> None:
        """Stop background reads. Idempotent."""
        with self._lock:
            reader, self._reader, self._reader_shard = self._reader, None, None
        if reader is not None:
            reader.close()

    def _answered(  # noqa: PLR0911 - one for each kind
        self, ready: ReadyShard, request: ShardRequest, cancellation: Cancellation
    ) -> Answer:
        reader = self._reader_of(ready)
        index = ready.shard.index
        budget = self._budget_of(cancellation)
        catalogue = Catalogue(ready.lucene, index.columns, budget, has_purged_documents=index.has_purged_documents)
        match request:
            case SeriesRequest():
                return _series(catalogue, request, cancellation, ready.warnings)
            case LabelNamesRequest() | LabelValuesRequest():
                return _terms(catalogue, request, ready.warnings)
            case SamplesRequest():
                columns = ready.shard.index.columns
                return read_samples(catalogue, columns, reader, request, cancellation, warnings=ready.warnings)
            case EvaluateRequest():
                view = ShardView(
                    shard_number(self._running),
                    catalogue,
                    index.columns,
                    reader,
                    self._groups,
                    self.results,
                    self._block_semaphore,
                )
                return evaluate_fragment(view, request, cancellation, ready.warnings)
            case SeriesHashesRequest():
                return series_hashes(catalogue, index.columns, request, ready.warnings)
            case KeyPageRequest():
                return read_key_page(catalogue, index.columns, reader, request, cancellation, warnings=ready.warnings)
            case CardinalityRequest():
                samples = estimated_samples(catalogue, index.columns, reader, request) if request.samples else None
                return replace(_cardinality(catalogue, request, cancellation, ready.warnings), samples=samples)
            case BucketsRequest():
                return BucketsAnswer(bucket_figures(ready.shard, request), ready.warnings)

    def _unavailable(self, error: StrandlineError) -> QueryUnavailable:
        """The error that the client gets for an error that is not about its request."""
        check_not_ended(self._running)
        number = shard_number(self._running)
        return QueryUnavailable(f"shard {number} can't answer: {error.message}", remedy=error.remedy)

    def _unresponsive_store_error(self, timeout_s: float) -> QueryUnavailable | None:
        health = self._running.parts.store_health
        return (
            unresponsive_store_error(shard_number(self._running), health.figures(), timeout_s)
            if health is not None
            else None
        )

    def _reader_of(self, ready: ReadyShard) -> ShardReader:
        """The reader of a shard, created when it becomes active or with its first request."""
        with self._lock:
            if self._reader is None or self._reader_shard is not ready.shard:
                # Searches may not see the loaded index yet if no record has caused a refresh since.
                ready.lucene.refresh()
                if self._reader is not None:
                    self._reader.close()
                self._reader, self._reader_shard, self._groups = ShardReader(ready.shard), ready.shard, GroupNumbers()
                self.results.clear()
            return self._reader

    def _budget_of(self, cancellation: Cancellation) -> RegexBudget:
        """The budget of regular expressions, limited to the request's time."""
        left_ms = max(1, int(cancellation.seconds_left * 1000))
        return self._budget if left_ms >= self._budget.max_ms else RegexBudget(self._budget.max_terms, left_ms)


def _series(
    catalogue: Catalogue, request: SeriesRequest, cancellation: Cancellation, warnings: tuple[str, ...]
) -> SeriesAnswer:
    few = catalogue.keys_up_to(request.selectors, request.within)
    if few is not None and len(few) <= request.limit:
        return SeriesAnswer(in_label_order(KeyBytes(few.offsets, few.keys)), more=False, warnings=warnings)
    found = catalogue.find(request.selectors, request.within)
    cancellation.check()
    keys = _key_bytes(catalogue.keys(found, limit=request.limit, step=cancellation.check))
    cancellation.check()
    return SeriesAnswer(in_label_order(keys), len(found.part_ids) > request.limit, warnings)


def _terms(
    catalogue: Catalogue, request: LabelNamesRequest | LabelValuesRequest, warnings: tuple[str, ...]
) -> TermsAnswer:
    if isinstance(request, LabelNamesRequest):
        found = catalogue.label_names(*request.selectors, within=request.within, limit=request.limit)
    else:
        found = catalogue.label_values(request.label, *request.selectors, within=request.within, limit=request.limit)
    offsets, counts = found.offsets.astype(np.int64, copy=False), found.counts.astype(np.int64, copy=False)
    return TermsAnswer(offsets, found.data, counts, found.more, warnings, found.of_all)


def _cardinality(
    catalogue: Catalogue, request: CardinalityRequest, cancellation: Cancellation, warnings: tuple[str, ...]
) -> CardinalityAnswer:
    counted = catalogue.counted(
        *request.selectors, within=request.within, without=np.frombuffer(request.without, dtype="<u4")
    )
    found = counted.cardinality(limit=request.limit)
    values = counted.top_values(request.label, limit=request.limit) if request.label is not None else ()
    terms = (
        list_terms(counted, found.labels, request.listed_bytes, cancellation.check) if request.listed_bytes else None
    )
    return CardinalityAnswer(
        found.series,
        found.labels,
        found.top_pairs_by_series,
        found.top_metrics_by_series,
        tuple(values),
        terms,
        warnings=warnings,
    )


def _key_bytes(batch: PartKeyBatch) -> KeyBytes:
    return KeyBytes(batch.offsets.astype(np.int64), batch.keys)
