"""Pages opened in a real browser."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize

from patience import PATIENCE

WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


class Visit:
    """A page that notes what goes wrong and what it asks for."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)


def draw_all(page: Page) -> None:
    """Wait until every chart is drawn in the width there is."""
    drawn = """() => [...document.querySelectorAll("figure.chart")].every(
        (figure) => Number(figure.dataset.drawn) === figure.querySelector(".drawing").clientWidth)"""
    page.wait_for_function(drawn, timeout=180_000)


def overflow(page: Page) -> float:
    return float(page.evaluate("document.scrollingElement.scrollWidth - innerWidth"))
