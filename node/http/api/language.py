"""`/api/v1/format_query` and `/api/v1/parse_query`, which need no requests to shards."""

from collections.abc import Callable

from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import Parameters, parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response
from strandline.node.http.routes import Access, Route
from strandline.node.workers import Workers
from strandline.promql.errors import ParseError
from strandline.promql.expressions import Expression
from strandline.promql.go_text import as_utf8
from strandline.promql.parser import parse
from strandline.promql.printing import format_query
from strandline.promql.tree_json import tree_of

# Longer queries are parsed in a worker thread.
_MAX_INLINE_QUERY = 2000


class LanguageApi:
    """Formats and parses queries."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def routes(self) -> tuple[Route, ...]:
        """Prometheus' paths."""
        forms = ("GET", "POST")
        return (
            Route(forms, "/api/v1/format_query", self.format, Access.READ),
            Route(forms, "/api/v1/parse_query", self.parse, Access.READ),
        )

    async def format(self, request: Request) -> AnyResponse:
        """The query, formatted."""
        return await self._answered(request, lambda expression: as_utf8(format_query(expression)))

    async def parse(self, request: Request) -> AnyResponse:
        """The tree of the query."""
        return await self._answered(request, tree_of)

    async def _answered(self, request: Request, work: Callable[[Expression], object]) -> AnyResponse:
        text = query_of(await parameters_of(request))
        if len(text) <= _MAX_INLINE_QUERY:
            return Response.success(work(parsed(text)))
        return await self._workers.run(lambda: Response.success(work(parsed(text))))


def query_of(given: Parameters) -> str:
    """The text of the query. The parser refuses an empty one."""
    return given.text("query") or ""


def parsed(text: str, parser: Callable[[str], Expression] = parse) -> Expression:
    """The tree of a query. Raises `BadParameter`."""
    try:
        return parser(text)
    except ParseError as error:
        raise bad_query(error) from error


def bad_query(error: ParseError) -> BadParameter:
    """The error of Prometheus for an invalid query."""
    return BadParameter(f'invalid parameter "query": {error.message}', remedy=error.remedy)
