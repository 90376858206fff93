"""What the command says beside its results."""

from skimql.cli.talk import Talk


def test_lines_go_to_stderr_as_they_stand(capsys):
    Talk().print("error: [bold] is no markup")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "error: [bold] is no markup\n")


def test_where_stderr_takes_nothing_nobody_is_told(monkeypatch):
    class Full:
        encoding = "utf-8"

        def isatty(self):
            return False

        def write(self, _):
            raise OSError

        def flush(self):
            raise OSError

    monkeypatch.setattr("sys.stderr", Full())
    Talk().print("nothing")
