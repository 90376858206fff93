"""How blocks of documentation are read, and what may differ between a page and what came."""

from __future__ import annotations

import pytest
from support.blocks import blocks, difference

PAGE = """# A page

```console
$ first "of
two lines" # a comment
said
$ second \\
  --option
```

*Not run: needs a cluster; elsewhere.*

```python
x = 1
```

*Run by `make test-docs` alone: takes
minutes.*

```pycon
>>> 1 + 1
2
```

```sql
SELECT 1
```

<!-- before:
y = 2
-->
"""


def test_blocks_are_read_in_order_with_their_markers():
    found = blocks(PAGE)
    assert [b.language for b in found] == ["console", "python", "pycon", "before"]
    assert [(s.text, s.expected) for s in found[0].steps] == [
        ('first "of\ntwo lines" # a comment', "said"),
        ("second \\\n  --option", ""),
    ]
    assert (found[1].reason, found[1].never) == ("needs a cluster; elsewhere.", True)
    assert (found[2].reason, found[2].never) == ("takes minutes.", False)
    assert found[3].steps[0].text == "y = 2\n"
    assert [b.line for b in found] == [4, 14, 21, 30]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("a   b\n───────", "a b\n──"),
        ("built in 1.8 s", "built in 12.0 s"),
        ("as of 2026-11-28T03:44:53Z", "as of 2027-01-01T00:00:00Z"),
        ("24   2026-11-28T03:44:53.171Z", "24   2027-01-01T00:00:00.641Z"),
        ("one\n...\nfour", "one\ntwo\nthree\nfour"),
        ("3 sketches ... KB", "3 sketches (hash); 4 KB"),
        ("n = 283,400 ± 7,300", "n = 280,000 ± 5,000"),
        ('{"n": 5, "n_low": 4.0, "n_high": 6.0, "k": 1}', '{"n": 7, "n_low": 5.5, "n_high": 8.0, "k": 1}'),
    ],
)
def test_what_may_vary_does(expected, actual):
    assert difference(expected, actual) == ""


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("284,170", "284,171"),
        ("n = 283,400 ± 7,300", "n = 300,000 ± 5,000"),
        ("n = 283,400 ± 7,300", "m = 283,400 ± 7,300"),
        ('{"n": 5, "n_low": 4.0, "n_high": 6.0, "k": 1}', '{"n": 7, "n_low": 5.5, "n_high": 8.0, "k": 2}'),
        ('{"n": 5, "n_low": 4.0, "n_high": 6.0}', '{"n": 9, "n_low": 8.0, "n_high": 9.0}'),
        ("one\ntwo", "one"),
        ("one", "one\ntwo"),
        ("", "a warning"),
        ("yes", "no"),
    ],
)
def test_what_may_not_is_told(expected, actual):
    assert difference(expected, actual)


def test_output_without_a_command_is_refused():
    with pytest.raises(ValueError, match="without a command"):
        blocks("```console\nsaid\n```\n")
