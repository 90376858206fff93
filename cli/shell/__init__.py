"""The interactive shell: editing, completion, meta commands, results for people."""
