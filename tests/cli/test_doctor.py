"""`skimql doctor`: the checks as a list."""

import io

from skimql.cli import doctor
from skimql.engine.spark.doctor import Check


def test_a_fault_comes_with_what_to_do_and_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(
        doctor, "checks", lambda: iter([Check("Java", True, "17"), Check("disk", False, "full", "make room")])
    )
    assert doctor.print_doctor() == 1
    assert "do: make room" in capsys.readouterr().out
    monkeypatch.setattr(doctor, "checks", lambda: iter([Check("Java", True, "17")]))
    assert doctor.print_doctor() == 0
    assert "all well" in capsys.readouterr().out
    # In the shell nothing is printed before all is checked: the waiting line stands there.
    told = io.StringIO()
    assert doctor.print_doctor(told) == 0
    assert "all well" in told.getvalue()
    assert capsys.readouterr().out == ""
