"""`%load_ext skimql`: the magics `%skimql` and `%%skimql` of IPython and Jupyter.

    %%skimql [name <<] [-o FORMAT] [--compare]
    SELECT APPROXIMATE COUNT(*) FROM flights f JOIN planes p USING (tailnum) WHERE f.month <= {month}

``{variable}`` stands for a variable of the notebook, as a value and not as text. A notebook with a `spark` is asked
there, one with a `skimql.Session` in a variable `session` is asked by that.
"""

from __future__ import annotations

import io
import re
import string
from typing import Any

from .. import Session, SkimqlError, UnsupportedQuery
from .formats import FORMATS
from .render import render

_HEAD = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*)\s*<<)?\s*(?P<options>(?:(?:-o|--output)[= ]\s*\w+\s*|--compare\b\s*)*)(?P<rest>.*)",
    re.DOTALL,
)
_TAKEN = re.compile(r"\{(self|text)\}")
_FORMAT = re.compile(r"(?:-o|--output)[= ]\s*(\w+)")


def load_ipython_extension(shell: Any) -> None:
    """Register the magics in an IPython shell; called by ``%load_ext skimql``."""
    magics = Magics(shell)
    shell.register_magic_function(magics.run, magic_kind="line_cell", magic_name="skimql")


class Magics:
    """The magics of one shell, and the session that they ask where the notebook has none."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.own: Session | None = None

    def session(self) -> Session:
        """The notebook's session, else one on the notebook's Spark, else one of our own."""
        names = self.shell.user_ns
        if isinstance(names.get("session"), Session):
            found: Session = names["session"]
            return found
        spark = names.get("spark")
        if not hasattr(spark, "sql"):
            spark = None
        if self.own is None or (spark is not None and self.own.spark is not spark):
            self.own = Session(spark)
        return self.own

    def run(self, line: str, cell: str | None = None) -> Any:
        """SQL behind ``%skimql``, or in a cell under ``%%skimql``: the result, or nothing where a name takes it."""
        found = _HEAD.match(line)
        assert found is not None, "everything in it may be missing"
        text = (
            found["rest"] if cell is None else f"{found['rest']}\n{cell}" if found["rest"].strip() else cell
        )
        asked = _FORMAT.search(found["options"])
        output = asked.group(1) if asked else ""
        if output and output not in FORMATS:
            raise SkimqlError(f"there is no format {output!r}", "SKIMQL_BAD_FORMAT", hint=", ".join(FORMATS))
        text, values = self._with_values(text.strip().rstrip(";"))
        session = self.session()
        if "--compare" in found["options"]:
            if values:
                raise UnsupportedQuery(
                    "--compare takes no values of the notebook",
                    "SKIMQL_PARAMETERS",
                    hint="the values themselves in the text",
                )
            result: Any = session.compare(text)
        else:
            result = session.sql(text, **values)
        if found["name"]:
            self.shell.user_ns[found["name"]] = result
            return None
        if not output:
            return result
        sink = io.StringIO()
        render(result, output, sink)
        print(sink.getvalue(), end="")
        return None

    def _with_values(self, text: str) -> tuple[str, dict[str, Any]]:
        """The notebook's values by the names in braces; braces around anything else are text."""
        known = self.shell.user_ns
        try:
            fields = [f for _, f, _, _ in string.Formatter().parse(text) if f is not None]
        except ValueError:
            return text, {}
        names = {f for f in fields if f.isidentifier()}
        for name in sorted(names - set(known)):
            raise UnsupportedQuery(
                f"the notebook has no variable {name}",
                "SKIMQL_BAD_VALUE",
                hint="braces hold the name of a variable",
            )
        # What `Session.sql` calls its own.
        text = _TAKEN.sub(r"{\1_}", text)
        return text, {name + "_" * (name in ("self", "text")): known[name] for name in names}
