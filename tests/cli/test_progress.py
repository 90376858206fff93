"""The progress line."""

import io

from rich.console import Console

from skimql import JobProgress
from skimql.cli.progress import ProgressLine


def test_the_line_appears_with_the_first_update_and_goes_when_it_is_done():
    sink = io.StringIO()
    line = ProgressLine(Console(file=sink, force_terminal=True, width=80))
    assert sink.getvalue() == ""
    line.update(progress())
    line.done()
    assert "scan of x" in sink.getvalue()
    line.done()


def progress():
    values = {"name": "scan of x", "label": "scan of x"}
    fields = JobProgress.__dataclass_fields__
    return JobProgress(
        **{n: values.get(n, "scan of x" if "str" in str(f.type) else 1) for n, f in fields.items()}
    )
