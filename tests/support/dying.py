"""A folder of a catalog whose writer is killed at its n-th step: that step and all after it do not happen."""

from __future__ import annotations

from typing import Any

from skimql.engine.catalog.folder import Folder

STEPS = ("write", "replace", "delete")


class Killed(BaseException):
    """The writer is gone."""


class DyingFolder:
    """A folder for a writer that is killed before (or, with `after`, just behind) its n-th change of the folder."""

    def __init__(self, folder: Folder, steps: int, *, after: bool = False) -> None:
        self.folder = folder
        self.left = steps
        self.after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.folder, name)
        return self._step(found) if name in STEPS else found

    def _step(self, call: Any) -> Any:
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
