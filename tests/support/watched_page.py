"""A page in a browser, and all errors that it reports."""

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response

_NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", event => {
    violations.push(`${event.violatedDirective}: ${event.blockedURI}`);
});
"""


class WatchedPage:
    """Records errors of the console and of scripts, violations of the page's policy, and requests to other hosts.

    `expected` are patterns of errors that a test causes. `sizes` has the bytes of each answer of the API by its path.
    """

    def __init__(self, browser: Browser, **options: Any) -> None:
        self._context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.add_init_script(_NOTE_VIOLATIONS)
        self.expected: list[str] = []
        self.sizes: dict[str, int] = {}
        self._host = ""
        self._noted: list[str] = []
        self._requests: list[Request] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self._noted.append(f"a script failed: {error}"))
        self.page.on("request", self._ask)
        self.page.on("response", self._measure)

    def open(self, url: str, view: str = "") -> Page:
        """Open the page, and wait until the shards are shown."""
        self._host = urlsplit(url).netloc
        self.page.goto(f"{url}/{view}")
        self.page.locator("#shards > li").first.wait_for()
        return self.page

    def complaints(self) -> list[str]:
        """The errors that were not expected."""
        elsewhere = [
            f"asked another host: {request.url}"
            for request in self._requests
            if urlsplit(request.url).scheme != "data" and urlsplit(request.url).netloc != self._host
        ]
        refused = [f"refused by the policy: {violation}" for violation in self.page.evaluate("window.violations ?? []")]
        noted = [
            complaint
            for complaint in self._noted
            if not any(re.search(pattern, complaint) for pattern in self.expected)
        ]
        return [*elsewhere, *refused, *noted]

    def requests_to(self, path: str) -> list[Request]:
        """The requests to a path, in order."""
        return [request for request in self._requests if urlsplit(request.url).path == path]

    def close(self) -> None:
        """Close the page and its context."""
        self._context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._noted.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def _ask(self, request: Request) -> None:
        self._requests.append(request)

    def _measure(self, response: Response) -> None:
        path = urlsplit(response.url).path
        if path.startswith("/api/"):
            length = response.headers.get("content-length")
            self.sizes[path] = max(self.sizes.get(path, 0), int(length) if length is not None else 10**9)
