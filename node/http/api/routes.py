"""The routes of Prometheus' API except remote read, and of key pages."""

from strandline.clock import Clock
from strandline.node.http.api.evaluating import EvaluatingApi
from strandline.node.http.api.key_pages import KeyPagesApi
from strandline.node.http.api.language import LanguageApi
from strandline.node.http.api.names import NamesApi
from strandline.node.http.api.status import StatusApi
from strandline.node.http.routes import Route
from strandline.node.query.queries import NodeQueries
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers


def api_routes(
    queries: NodeQueries,
    workers: Workers,
    settings: QuerySettings,
    clock: Clock,
    *,
    started_ms: int | None = None,
) -> tuple[Route, ...]:
    """The routes, over these queries. `started_ms` is the node's start, by default now."""
    return (
        *NamesApi(queries, workers, settings).routes(),
        *KeyPagesApi(queries, workers, settings).routes(),
        *EvaluatingApi(queries, workers, settings, clock).routes(),
        *LanguageApi(workers).routes(),
        *StatusApi(queries, workers, settings, clock, clock.now_ms() if started_ms is None else started_ms).routes(),
    )
