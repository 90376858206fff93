"""What runs, each statement by itself."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

from skimql.engine.sources.running import running_on, statement_on


def test_between_statements_nothing_runs():
    tables = object()
    assert running_on(tables) is None
    failing = contextlib.ExitStack()
    failing.enter_context(statement_on(tables, "SELECT 1"))
    assert running_on(tables).text == "SELECT 1"
    failing.__exit__(ValueError, ValueError("fails"), None)
    assert running_on(tables) is None


def test_a_statement_within_another_of_other_tables_leaves_that_alone():
    one, other = object(), object()
    with statement_on(one, "a"):
        running_on(one).looked["k"] = 1
        with statement_on(other, "b"):
            assert (running_on(one).looked, running_on(other).looked) == ({"k": 1}, {})
        assert running_on(other) is None


def test_threads_do_not_see_each_others_statements():
    tables = object()
    with statement_on(tables, "a"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(running_on, tables).result() is None
