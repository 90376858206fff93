"""What a machine needs for SkimQL."""

from skimql.engine.spark import doctor


def test_every_check_says_what_it_found_and_a_fault_what_to_do():
    found = list(doctor.checks(start_spark_too=False))
    assert {"Python", *doctor.PACKAGES, "Java", "workers' Python"} < {c.name for c in found}
    assert all(c.found for c in found)
    assert all(c.advice for c in found if not c.ok)


def test_a_machine_without_java_is_told(monkeypatch):
    monkeypatch.setattr("skimql.engine.spark.session.find_java", lambda: None)
    (java,) = (c for c in doctor.checks(start_spark_too=False) if c.name == "Java")
    assert not java.ok
    assert "JAVA_HOME" in java.advice
