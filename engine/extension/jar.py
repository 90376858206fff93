"""The jar that makes Spark's parser know our statements: where it lies, and how it is made from its sources.

It is built with the package, where there is a Java compiler, and by ``skimql jar --build`` later. Equal sources make
equal bytes. Nothing here needs the rest of the package: the package's own build runs this file by itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

NAME = "skimql-spark.jar"
# Java classes of this level run in every Java from 8 on, so that one jar serves every Spark.
LEVEL = "8"
JDK_HINT = "a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless), then: skimql jar --build"
# Of every file in the archive.
MADE = (1980, 1, 1, 0, 0, 0)
VERSION, CLASSES = "skimql/spark/version.txt", "skimql/spark/classes.txt"

HERE = Path(__file__).parent


class NotBuilt(Exception):
    """The jar could not be made; the text says why."""


def version(folder: Path = HERE) -> str:
    """What tells jars of different sources apart: the beginning of a hash of the Java sources."""
    digest = hashlib.sha256()
    for source in sources(folder):
        digest.update(source.name.encode() + b"\0" + source.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def sources(folder: Path = HERE) -> list[Path]:
    """Our classes, in an order that is the same everywhere."""
    return sorted((folder / "java" / "src").rglob("*.java"), key=lambda p: p.as_posix())


def find_javac() -> str | None:
    """The compiler of JAVA_HOME, else that on PATH; None without any."""
    home = os.environ.get("JAVA_HOME")
    inside = Path(home) / "bin" / "javac" if home else None
    return str(inside) if inside is not None and inside.exists() else shutil.which("javac")


def build(target: Path, folder: Path = HERE) -> Path:
    """Compile the classes in `folder` and put them into the jar `target`.

    Raises
    ------
    NotBuilt
        Without a Java compiler, or where it refuses.
    """
    javac = find_javac()
    if javac is None:
        raise NotBuilt("there is no Java compiler (javac) in JAVA_HOME or on PATH")
    files = sources(folder)
    if not files:
        raise NotBuilt(f"there are no Java sources in {folder}")
    with tempfile.TemporaryDirectory() as made:
        command = [javac, "--release", LEVEL, "-encoding", "UTF-8", "-g:none", "-proc:none", "-implicit:none"]
        stubs = ["-Xlint:-options", "-sourcepath", str(folder / "java" / "stubs"), "-d", made]
        try:
            told = subprocess.run(
                [*command, *stubs, *map(str, files)], capture_output=True, text=True, check=False
            )
        except OSError as fault:
            raise NotBuilt(f"{javac} does not run: {fault}") from fault
        if told.returncode != 0:
            raise NotBuilt(f"{javac} refuses the sources: {(told.stderr or told.stdout).strip()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        _pack(Path(made), target, version(folder))
    return target


def _pack(classes: Path, target: Path, text: str) -> None:
    """Write the jar beside its place first: whoever looks sees a whole one or none."""
    entries = {p.relative_to(classes).as_posix(): p.read_bytes() for p in classes.rglob("*.class")}
    entries[CLASSES] = "".join(f"{e[:-6].replace('/', '.')}\n" for e in sorted(entries)).encode()
    entries["META-INF/MANIFEST.MF"] = b"Manifest-Version: 1.0\r\nCreated-By: skimql\r\n\r\n"
    entries[VERSION] = text.encode()
    handle, name = tempfile.mkstemp(prefix=f".{NAME}-", dir=target.parent)
    os.close(handle)
    beside = Path(name)
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as packed:
            # A reader of jars wants the manifest in front.
            for entry in sorted(entries, key=lambda e: (not e.startswith("META-INF"), e)):
                info = zipfile.ZipInfo(entry, MADE)
                info.create_system = 3
                info.external_attr = 0o644 << 16
                packed.writestr(info, entries[entry], zipfile.ZIP_DEFLATED)
        beside.chmod(0o644)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def version_of(jar: Path) -> str | None:
    """The version of a jar of ours; None of what is none."""
    try:
        with zipfile.ZipFile(jar) as packed:
            return packed.read(VERSION).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def find() -> Path | None:
    """The jar of this package: built with it, or by ``skimql jar --build``; None where there is none."""
    wanted = version()
    return next((p for p in (HERE / NAME, own_place()) if version_of(p) == wanted), None)


def own_place() -> Path:
    """Where a jar that is built later lies: in the user's folder, as that of the package may not be writable."""
    import platformdirs

    return Path(platformdirs.user_data_dir("skimql")) / version() / NAME
