"""Which questions the event loop asks itself."""

import pytest
from aiohttp.test_utils import make_mocked_request

from strandline.node.http.api.quick_way import QuickWay
from support.fake_queries import FakeQueries

pytestmark = pytest.mark.unit


def suits(path: str, *, method: str = "GET", is_open: bool = True) -> bool:
    way = QuickWay(FakeQueries(), is_open=lambda: is_open)  # type: ignore[arg-type]  # what it would ask is not asked
    return way.suits(make_mocked_request(method, path))


@pytest.mark.parametrize(
    ("path", "quick"),
    [
        ("/api/v1/labels", True),
        ('/api/v1/series?match[]={a="b"}', True),
        ('/api/v1/series?match[]={a="' + 1900 * "b" + '"}', True),
        ('/api/v1/series?match[]={a="' + 2100 * "b" + '"}', False),
        ('/api/v1/series?match[]={a=~"b.*"}', True),
        ('/api/v1/series?match[]={a=~"' + 250 * "b" + '"}', False),
        ("/api/v1/series?match[]=%7Ba%3D%7E%22" + 250 * "b" + "%22%7D", False),
    ],
)
def test_what_takes_long_to_read_is_left_to_a_thread(path: str, quick: bool) -> None:
    assert suits(path) is quick


def test_before_kernels_are_loaded_and_for_forms_threads_ask() -> None:
    assert not suits("/api/v1/labels", is_open=False)
    assert not suits("/api/v1/labels", method="POST")


def test_only_so_many_are_under_way_at_a_time() -> None:
    way = QuickWay(FakeQueries(), most=1)  # type: ignore[arg-type]  # as above
    with way.place() as first:
        with way.place() as second:
            assert (first, second) == (True, False)
        with way.place() as still:
            assert not still
    with way.place() as again:
        assert again
