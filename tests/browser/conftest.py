"""A real Chromium, one for each module of browser tests."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from support.watched_page import WatchedPage

# Of two lists of features the last one counts, so Playwright's are repeated here. Ours are the suggestions of the
# address bar, two pages of Chromium's own in every window: they took twice the processor time of the tested pages.
DISABLED_FEATURES = (
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
)
# As root Chromium wants no sandbox; most of the rest keeps it from calling home.
FLAGS = [
    f"--disable-features={','.join(DISABLED_FEATURES)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


# Not for the whole run: while Playwright is open its event loop counts as running in this thread, and no other
# test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium")
    assert executable, "chromium is missing: `make setup-test` installs it"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Callable[..., WatchedPage]]:
    """Makes pages, with the options of a browser's context, that may neither complain nor ask another host."""
    made: list[WatchedPage] = []
    expect.set_options(timeout=60_000)

    def make(**options: object) -> WatchedPage:
        made.append(WatchedPage(browser, **options))
        return made[-1]

    yield make
    complaints = [complaint for one in made for complaint in one.complaints()]
    for one in made:
        one.close()
    assert complaints == []
