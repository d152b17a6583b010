"""Links between the documents of the repository."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SOURCES = [str(path.relative_to(ROOT)) for path in ROOT.glob("[a-z]*/**/*.*") if "__pycache__" not in path.parts]
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", CODE.sub("", document.read_text(encoding="utf-8")), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        repeated = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in found)
        found.append(f"{slug}-{repeated}" if repeated else slug)
    return set(found)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    broken = []
    for target in LINK.findall(CODE.sub("", document.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_contents_of_the_decisions_list_every_section() -> None:
    document = ROOT / "docs" / "decisions.md"
    text = document.read_text(encoding="utf-8")
    contents = text.partition("## Contents")[2].partition("\n## ")[0]
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert len(LINK.findall(contents)) == len(sections) - 1, "each once, and not the contents themselves"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_source_file_that_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)*\.(?:py|java|cql|service))`", document.read_text(encoding="utf-8")))
    assert {name for name in named if not any(f"/{source}".endswith(f"/{name}") for source in SOURCES)} == set()
