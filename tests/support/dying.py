"""A folder of a catalog whose writer is killed at its n-th step: that step and all after it do not happen."""

from __future__ import annotations

from pathlib import Path

from skimql.engine.catalog.folder import LocalFolder

STEPS = ("write", "replace", "delete")


class Killed(BaseException):
    """The writer is gone."""


class DyingFolder(LocalFolder):
    """A local folder for a writer that is killed before (or, with `after`, just behind) its n-th change of the folder."""

    def __init__(self, path: Path, steps: int, *, after: bool = False) -> None:
        super().__init__(path)
        self.left = steps
        self.after = after

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        return self._step(found) if name in STEPS else found

    def _step(self, call):
        def counted(*arguments):
            if self.left < 0 or (self.left == 0 and not self.after):
                self.left = -1
                raise Killed
            self.left -= 1
            result = call(*arguments)
            if self.left < 0:
                raise Killed
            return result

        return counted
