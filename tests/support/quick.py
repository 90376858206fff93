"""Settings of Spark's for thousands of tiny queries, and the way back to Spark's own.

A plan stays as it is, is told briefly, and is interpreted. Making plans anew between stages, compiling each operator and
writing all of it down takes a quarter of Spark's time in the suite, and changes no answer. Where generated code or
another plan might change something, and where there are many tuples (interpreted, a join of a million takes half a
minute), tests have Spark's own settings: the fixture `as_users_have_it`.
"""

QUICK_PLANS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
}


def as_spark_has_it(spark):
    """Give a session Spark's own settings."""
    for name in QUICK_PLANS:
        spark.conf.unset(name)
