"""A choice as text: every candidate with what it costs, the exact run with what it puts out."""

from support.column_figures import counted
from support.questions import query
from support.schemas import schema, table

from skimql.optimizer.candidates.enumerate import Objective, choose_method
from skimql.optimizer.describe.choice import describe_choice
from skimql.optimizer.messages import tree_of

SCHEMA = schema(table("a", k="bigint"), table("b", k="bigint", m="bigint"), table("c", m="bigint"))
GRAPH = query("SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m", SCHEMA).graph


def test_every_candidate_tells_its_cpu_and_the_exact_run_what_it_puts_out_on_the_way():
    known = [counted(1e5, 1e2), counted(1e4, 1e2, 1e4), counted(10, 10)]
    choice = choose_method(tree_of(GRAPH), known, Objective(relative_error=0.05))
    lines = describe_choice(choice, GRAPH, known, 0.0).splitlines()
    candidates = lines[lines.index(next(x for x in lines if x.startswith("  candidates"))) + 1 :]
    told = [x for x in candidates if x.startswith("    ") and "message of" not in x]
    assert told
    assert all("CPU" in x for x in told)
    (exact,) = (x for x in told if x.startswith("    exact run"))
    assert "puts out 10,000 tuples, 10,000,000 on the way" in exact
