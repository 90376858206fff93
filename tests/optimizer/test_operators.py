"""Operators: predictions and runs matched by name, runs of one added up, unknown figures unknown."""

from skimql.optimizer.operators import MESSAGE, SCAN, Figures, Operator, beside, relation_name, total


def ran(kind, of="", inputs=(), **figures):
    return Operator(kind, of, actual=Figures(**figures), runs=1, inputs=inputs)


def test_sums_of_unknown_figures_are_what_is_known_and_the_wider_interval_counts():
    first, second = Figures(rows=1, half_width=0.5), Figures(rows=2, bytes_held=8, half_width=0.0)
    assert first.plus(second) == Figures(rows=3, bytes_held=8, half_width=0.5)
    assert Figures().plus(Figures()) == Figures()


def test_what_ran_stands_beside_what_was_predicted_of_it_at_every_depth():
    planned = [
        Operator(SCAN, "a", Figures(rows=10), inputs=(Operator(MESSAGE, "b", Figures(rows=3)),)),
        Operator(SCAN, "c", Figures(rows=5)),
    ]
    runs = [ran(SCAN, "d", rows=1), ran(SCAN, "a", inputs=(ran(MESSAGE, "b", rows=4),), rows=9)]
    a, c, d = beside(planned, runs)
    assert (a.predicted.rows, a.actual.rows, a.inputs[0].predicted.rows, a.inputs[0].actual.rows) == (
        10,
        9,
        3,
        4,
    )
    assert (c.of, c.actual, c.runs) == ("c", None, 0)
    assert (d.of, d.predicted) == ("d", Figures())


def test_runs_of_one_operator_are_added_up():
    first = ran(SCAN, "a", rows=4, cpu_seconds=1.0)
    second = Operator(SCAN, "a", actual=Figures(rows=5, cpu_seconds=2.0), runs=1, whole_cpu=False)
    (a,) = beside([Operator(SCAN, "a", Figures(rows=8))], [first, second])
    assert (a.runs, a.actual.rows, a.actual.cpu_seconds, a.whole_cpu, a.predicted.rows) == (
        2,
        9,
        3.0,
        False,
        8,
    )


def test_a_total_has_the_cost_of_all_inputs_and_no_rows():
    tree = ran(
        SCAN, "a", inputs=(ran(MESSAGE, "b", rows=4, cpu_seconds=0.5, bytes_read=7),), rows=9, cpu_seconds=1.0
    )
    assert total([tree]) == Figures(cpu_seconds=1.5, bytes_read=7)


def test_relations_are_named_as_queries_name_them():
    assert relation_name("t", None) == relation_name("t", None, "t") == "t"
    assert relation_name("t", "x > 1", "u") == "t u where x > 1"
