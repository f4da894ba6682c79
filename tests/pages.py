"""What tests of the page ask it: which rows are shown, and has it got there yet."""

import time

CARD = "#gallery [role=option]"
PATIENCE = 15


def shown_rows(page) -> list[int]:
    """Rows of the cards in the gallery, in order."""
    names = page.eval_on_selector_all(CARD, "cards => cards.map(card => card.id)")
    return [int(name.removeprefix("row-")) for name in names]


def wait_for_rows(page, expected: list[int]) -> None:
    """Wait until the gallery shows these rows, in this order."""
    end = time.monotonic() + PATIENCE
    while shown_rows(page) != expected and time.monotonic() < end:
        page.wait_for_timeout(20)
    assert shown_rows(page) == expected


def wait_for_text(page, selector: str, words: str) -> None:
    """Wait until an element says something."""
    page.locator(selector, has_text=words).wait_for()
