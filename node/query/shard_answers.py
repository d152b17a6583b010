"""Answers of one shard, from what its process has: index, bitmaps, buffers, and the store behind them."""

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
# Errors that say something about the question, or about whoever asks. Any other is the shard's own trouble.
ABOUT_THE_QUESTION = (InvalidMatcher, RegexTooCostly, QueryTooLarge, QueryCancelled, QueryTimedOut, EvaluationError)


class ShardAnswers:
    """Answers for a shard of this process. Any thread may ask, at any time of the shard's life; each thread that does
    is attached to the JVM.
    """

    def __init__(
        self, running: LiveShard, *, budget: RegexBudget = DEFAULT_BUDGET, result_cache: int = DEFAULT_BYTES
    ) -> None:
        """`result_cache` is how many bytes of results of PromQL fragments are kept."""
        self._running, self._budget = running, budget
        self._lock = threading.Lock()
        self._reader: ShardReader | None = None
        self._known: Shard | None = None
        self._groups = GroupNumbers()
        # More at once would be no faster, and hold more samples in memory. Two, so that one may wait for the store.
        self._block_semaphore = FairSemaphore(max(2, len(os.sched_getaffinity(0))))
        self.results = ResultCache(result_cache)

    def answer(self, request: ShardRequest, cancellation: Cancellation) -> Answer:
        """Answer a question.

        Raises `QueryTooLarge`, `QueryCancelled`, `QueryTimedOut`, what `strandline.index.matchers` raises for an
        expression, and `QueryUnavailable` for all else that keeps the shard from answering, with the reason.
        """
        cancellation.check()
        able = ready_shard(self._running, request.within)
        try:
            answer = self._answered(able, request, cancellation)
        except QueryTimedOut:
            if (trouble := self._unresponsive_store_error(cancellation.timeout_s)) is not None:
                raise trouble from None
            raise
        except (*ABOUT_THE_QUESTION, QueryUnavailable):
            raise
        except StrandlineError as error:
            raise self._trouble(error) from error
        check_not_ended(self._running)
        return answer

    def publish(self, page: IndexVersionPage, lookups: LookupGate) -> None:
        """Publish the version of the lists that this would answer with, and let the JVM answer look-ups while answers
        have no warnings. Called by the shard's own threads.
        """
        try:
            able = ready_shard(self._running)
        except QueryUnavailable:
            able = None
        if able is None or able.warnings:
            lookups.shut()
            page.publish(None, NO_KEYS)
            return
        # Before anyone asks: the JVM compiles look-ups for some seconds, and the first query would share the cores.
        self._reader_of(able)
        index = able.shard.index
        lookups.open(able.lucene, index.columns)
        if self._running.status.phase is not Phase.ACTIVE:
            # Another thread has just said so, and waits to tell it.
            lookups.shut()
        if index.has_forgotten():
            page.publish(None, NO_KEYS)
        else:
            # The refreshes first: what comes between the two is in the span and not yet in the lists.
            refreshes = able.lucene.refreshes
            page.publish((id(able.shard), refreshes), index.columns.span())

    def close(self) -> None:
        """End what reads in the background. Closing twice does nothing."""
        with self._lock:
            reader, self._reader, self._known = self._reader, None, None
        if reader is not None:
            reader.close()

    def _answered(  # noqa: PLR0911 - one for each kind
        self, able: ReadyShard, request: ShardRequest, cancellation: Cancellation
    ) -> Answer:
        reader = self._reader_of(able)
        index = able.shard.index
        budget = self._budget_of(cancellation)
        catalogue = Catalogue(able.lucene, index.columns, budget, has_forgotten=index.has_forgotten)
        match request:
            case SeriesRequest():
                return _series(catalogue, request, cancellation, able.warnings)
            case LabelNamesRequest() | LabelValuesRequest():
                return _terms(catalogue, request, able.warnings)
            case SamplesRequest():
                columns = able.shard.index.columns
                return read_samples(catalogue, columns, reader, request, cancellation, warnings=able.warnings)
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
                return evaluate_fragment(view, request, cancellation, able.warnings)
            case SeriesHashesRequest():
                return series_hashes(catalogue, index.columns, request, able.warnings)
            case KeyPageRequest():
                return read_key_page(catalogue, index.columns, reader, request, cancellation, warnings=able.warnings)
            case CardinalityRequest():
                samples = estimated_samples(catalogue, index.columns, reader, request) if request.samples else None
                return replace(_cardinality(catalogue, request, cancellation, able.warnings), samples=samples)
            case BucketsRequest():
                return BucketsAnswer(bucket_figures(able.shard, request), able.warnings)

    def _trouble(self, error: StrandlineError) -> QueryUnavailable:
        """What is told of an error that says nothing about the question."""
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

    def _reader_of(self, able: ReadyShard) -> ShardReader:
        """The reader of a shard, made when it is active or first asked."""
        with self._lock:
            if self._reader is None or self._known is not able.shard:
                # Its index was loaded, perhaps from the store, and nothing need have come since that searches would
                # have been let see.
                able.lucene.refresh()
                if self._reader is not None:
                    self._reader.close()
                self._reader, self._known, self._groups = ShardReader(able.shard), able.shard, GroupNumbers()
                self.results.clear()
            return self._reader

    def _budget_of(self, cancellation: Cancellation) -> RegexBudget:
        """No expression is worked on for longer than the question has."""
        left = max(1, int(cancellation.seconds_left * 1000))
        return self._budget if left >= self._budget.max_ms else RegexBudget(self._budget.max_terms, left)


def _series(
    catalogue: Catalogue, request: SeriesRequest, cancellation: Cancellation, warnings: tuple[str, ...]
) -> SeriesAnswer:
    few = catalogue.few_keys(request.selectors, request.within)
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
