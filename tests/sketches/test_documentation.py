"""The examples in docs/sketches run and print what the pages say."""

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "sketches").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_examples_of_the_page_are_true(page):
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0
