"""The pictures in docs/ as a browser draws them: no text leaves its box or covers another text."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = sorted(DOCS.glob("*.svg"))

BOXES = """
selector => [...document.querySelectorAll(selector)].map(element => {
    const box = element.getBoundingClientRect();
    return {text: element.textContent.trim(), left: box.left, right: box.right, top: box.top, bottom: box.bottom};
})
"""


def boxes(page: Page, selector: str) -> list[dict]:
    return page.evaluate(BOXES, selector)


def inside(inner: dict, outer: dict) -> bool:
    return (
        outer["left"] <= inner["left"]
        and inner["right"] <= outer["right"]
        and outer["top"] <= inner["top"]
        and inner["bottom"] <= outer["bottom"]
    )


def overlap(one: dict, other: dict) -> bool:
    return (
        one["left"] < other["right"]
        and other["left"] < one["right"]
        and one["top"] < other["bottom"]
        and other["top"] < one["bottom"]
    )


@pytest.fixture(params=PICTURES, ids=lambda path: path.name)
def picture(request: pytest.FixtureRequest, page: Page) -> Page:
    page.goto(request.param.as_uri())
    assert boxes(page, "svg text"), "the picture has no text: the checks below would have no effect"
    return page


def test_every_text_lies_inside_the_picture(picture: Page) -> None:
    [frame] = boxes(picture, "svg")
    assert [text["text"] for text in boxes(picture, "svg text") if not inside(text, frame)] == []


def test_every_text_of_a_part_lies_inside_its_box(picture: Page) -> None:
    outside = picture.evaluate(
        """() => [...document.querySelectorAll("g.part")].flatMap(part => {
            const box = part.querySelector("rect").getBoundingClientRect();
            return [...part.querySelectorAll("text")].filter(text => {
                const own = text.getBoundingClientRect();
                return own.left < box.left || own.right > box.right || own.top < box.top || own.bottom > box.bottom;
            }).map(text => text.textContent);
        })"""
    )
    assert outside == []


def test_no_two_texts_cover_each_other(picture: Page) -> None:
    texts = boxes(picture, "svg text")
    covering = [
        (text["text"], other["text"])
        for position, text in enumerate(texts)
        for other in texts[position + 1 :]
        if overlap(text, other)
    ]
    assert covering == []
