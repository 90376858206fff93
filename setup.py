"""The build of the package: the jar beside the Python, where there is a Java compiler."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDER = Path(__file__).parent / "engine" / "extension"


class BuildWithJar(build_py):
    """Builds the jar that `engine/extension/jar.py` describes; without a compiler the package goes without."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """The modules of a package; the top folder has this file beside them."""
        return [m for m in super().find_package_modules(package, package_dir) if m[1] != "setup"]

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        described = importlib.util.spec_from_file_location("jar", FOLDER / "jar.py")
        assert described is not None
        assert described.loader is not None
        jar = importlib.util.module_from_spec(described)
        described.loader.exec_module(jar)
        target = Path(self.build_lib) / "skimql" / "engine" / "extension" / jar.NAME
        try:
            jar.build(target, FOLDER)
        except jar.NotBuilt as fault:
            self.warn(f"without the Spark SQL extension: {fault}; to have it: {jar.JDK_HINT}")


setup(cmdclass={"build_py": BuildWithJar})
