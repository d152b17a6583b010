"""`/api/v1/format_query` and `/api/v1/parse_query`: nothing is asked of the shards for them."""

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

# Longer ones are read in a worker thread.
_SHORT = 2000


class LanguageApi:
    """Queries as text and as trees."""

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
        """The query, broken into lines."""
        return await self._answered(request, lambda expression: as_utf8(format_query(expression)))

    async def parse(self, request: Request) -> AnyResponse:
        """The tree of the query."""
        return await self._answered(request, tree_of)

    async def _answered(self, request: Request, work: Callable[[Expression], object]) -> AnyResponse:
        text = query_of(await parameters_of(request))
        if len(text) <= _SHORT:
            return Response.success(work(parsed(text)))
        return await self._workers.run(lambda: Response.success(work(parsed(text))))


def query_of(given: Parameters) -> str:
    """The text of the query: an empty one is for the parser to refuse."""
    return given.text("query") or ""


def parsed(text: str, parser: Callable[[str], Expression] = parse) -> Expression:
    """The tree of a query. Raises `BadParameter`."""
    try:
        return parser(text)
    except ParseError as error:
        raise bad_query(error) from error


def bad_query(error: ParseError) -> BadParameter:
    """As Prometheus answers it."""
    return BadParameter(f'invalid parameter "query": {error.message}', remedy=error.remedy)
