"""A real Chromium, and pages that remember every request and every complaint."""

import os
import shutil
from dataclasses import dataclass, field

import pytest

from shown_runs import Shown, write_shown

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REQUIRED = "LABELCLEAN_REQUIRE_BROWSER"


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium without a window; skips where there is none, unless one is required."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = f"none of {', '.join(NAMES)} is installed"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"{REQUIRED}=1, and {reason}")
        pytest.skip(f"{reason}; install one to test the page")
    from playwright.sync_api import sync_playwright

    # A container has no user namespaces to build the sandbox from; the pages are our own.
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Watch:
    """What a page asked for and complained about."""

    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def strangers(self, *allowed: str) -> list[str]:
        """Requests that do not begin with one of `allowed`."""
        return [url for url in self.requests if not url.startswith(allowed)]


@pytest.fixture
def visit(browser):
    """Open an address in a fresh profile and wait until the page is drawn; gives page and watch."""
    contexts = []

    def open_page(url: str, **options):
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 860}, "accept_downloads": True, **options}
        )
        contexts.append(context)
        page, watch = context.new_page(), Watch()
        page.set_default_timeout(15_000)
        context.on("request", lambda request: watch.requests.append(request.url))
        page.on("pageerror", lambda error: watch.faults.append(str(error)))
        page.on(
            "console",
            lambda said: watch.faults.append(said.text) if said.type == "error" else None,
        )
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        return page, watch

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Shown:
    """A run whose every name is an attempt at something."""
    return write_shown(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def grave():
    """Find accessibility violations of a page that are serious or critical, by axe-core."""
    from axe_playwright_python.sync_playwright import Axe

    def check(page):
        return [
            (item["id"], item["nodes"][0]["html"][:200])
            for item in Axe().run(page).response["violations"]
            if item["impact"] in {"serious", "critical"}
        ]

    return check
