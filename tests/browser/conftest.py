"""A real Chromium, one for each module of browser tests."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.chromium import chromium
from support.watched_page import WatchedPage


# Not for the whole run: while Playwright is open, its event loop counts as running in this thread, and no other
# test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Callable[..., WatchedPage]]:
    """Open pages with options of a browser context. A page must not log errors or contact another host."""
    made: list[WatchedPage] = []
    expect.set_options(timeout=60_000)

    def make(**options: object) -> WatchedPage:
        made.append(WatchedPage(browser, **options))
        return made[-1]

    yield make
    complaints = [complaint for page_watch in made for complaint in page_watch.complaints()]
    for page_watch in made:
        page_watch.close()
    assert complaints == []
