"""All paths of Prometheus' API that a node answers, but remote read; and pages of series beside them."""

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
    """The routes, over these queries. The node counts as started now, unless another time is given."""
    return (
        *NamesApi(queries, workers, settings).routes(),
        *KeyPagesApi(queries, workers, settings).routes(),
        *EvaluatingApi(queries, workers, settings, clock).routes(),
        *LanguageApi(workers).routes(),
        *StatusApi(queries, workers, settings, clock, clock.now_ms() if started_ms is None else started_ms).routes(),
    )
