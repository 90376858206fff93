"""SQL text to frozen values: statements by lark, SELECT by sqlglot, names and types by a schema; no Spark."""
