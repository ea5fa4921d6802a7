"""The documentation stays short enough to be read; code, tables and the paper count."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
MOST_WORDS = 61_000


def test_the_pages_have_few_words() -> None:
    words = {path: len(path.read_text(encoding="utf-8").split()) for path in DOCS.rglob("*.md") if "_build" not in path.parts}
    assert len(words) > 50
    longest = sorted(words, key=lambda path: words[path])[-5:]
    assert sum(words.values()) <= MOST_WORDS, [f"{path.relative_to(DOCS)}: {words[path]}" for path in longest]
