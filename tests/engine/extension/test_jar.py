"""The jar is made from its sources alone, the same bytes every time."""

from __future__ import annotations

import shutil
import zipfile

import pytest
from support.extension import FOLDER

from skimql.engine.extension import jar

needs_javac = pytest.mark.skipif(jar.find_javac() is None, reason="there is no Java compiler here")


@needs_javac
def test_equal_sources_make_equal_bytes_of_an_old_class_level(tmp_path):
    one, other = (jar.build(tmp_path / name / jar.NAME, FOLDER) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    assert jar.version_of(one) == jar.version(FOLDER)
    with zipfile.ZipFile(one) as packed:
        classes = [n for n in packed.namelist() if n.endswith(".class")]
        assert all(n.startswith(("skimql/spark/", "skimql/sketch/")) for n in classes), "no stub is in it"
        # Java 8.
        assert {packed.read(n)[6:8] for n in classes} == {(52).to_bytes(2, "big")}


def test_without_a_compiler_the_reason_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(jar.NotBuilt, match="no Java compiler"):
        jar.build(tmp_path / jar.NAME, FOLDER)
    assert not (tmp_path / jar.NAME).exists()


@needs_javac
def test_what_the_compiler_refuses_is_told(tmp_path):
    shutil.copytree(FOLDER / "java", tmp_path / "java")
    (tmp_path / "java" / "src" / "skimql" / "spark" / "Broken.java").write_text("class Broken {")
    with pytest.raises(jar.NotBuilt, match=r"Broken\.java"):
        jar.build(tmp_path / jar.NAME, tmp_path)


def test_what_is_no_jar_of_ours_has_no_version(tmp_path):
    assert jar.version_of(tmp_path / "none.jar") is None
    (tmp_path / "text.jar").write_text("no zip")
    assert jar.version_of(tmp_path / "text.jar") is None


def test_a_jar_of_other_sources_is_not_found(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / jar.NAME, "w") as packed:
        packed.writestr(jar.VERSION, "another")
    monkeypatch.setattr(jar, "HERE", tmp_path)
    monkeypatch.setattr(jar, "own_place", lambda: tmp_path / "none" / jar.NAME)
    assert jar.find() is None
