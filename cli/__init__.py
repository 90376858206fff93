"""The `skimql` command: arguments, rendering and exit codes over the public API."""
