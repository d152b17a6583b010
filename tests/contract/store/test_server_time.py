"""A store with servers returns their time; one without returns None."""

import pytest

from strandline.clock import SystemClock
from strandline.store.protocol import Store
from strandline.store.sqlite import SqliteStore
from support.store_contract import PRESENT

pytestmark = pytest.mark.contract


def test_a_server_returns_its_own_time_whatever_the_clients_present(store: Store) -> None:
    time = store.server_time()
    if isinstance(store, SqliteStore):
        assert time is None
        return
    assert time is not None
    # The test's own server: its time is close to the machine's, and far from the present with which tests write.
    assert abs(time - SystemClock().now_ms()) < 600_000 < abs(time - PRESENT)
