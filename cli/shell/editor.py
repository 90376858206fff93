"""The line editor: keys, colours, completion, history; a plain one for terminals that move no cursor."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Protocol

from ... import Token, is_complete, tokens
from .interrupts import INTERRUPTS
from .keyboard import typed_lines
from .mistakes import unknown_names
from .names import Names
from .theme import colours, has_all, has_sixteen, is_dumb, theme_of

# Characters; beyond this a text is not coloured, each key would cost too much.
MOST_COLOURED = 40_000
# Seconds.
JUST_NOW = 0.5
PROMPT, MORE = "skimql> ", "   ...> "


class Surroundings(Protocol):
    """What the editor looks at while somebody types."""

    @property
    def names(self) -> Names:
        """What there is."""

    @property
    def theme(self) -> str:
        """The theme that is set."""

    @property
    def correction(self) -> str | None:
        """The last statement as it was probably meant."""

    def option(self, name: str) -> Any:
        """The value of a setting of the shell."""

    def toolbar(self) -> str:
        """The line at the bottom."""

    def candidates(self, text: str, cursor: int) -> Iterable[tuple[str, int, str]]:
        """Completions: text, where it starts, what it is."""


class Editor(Protocol):
    """Reads statements."""

    def read(self, text: str = "") -> str:
        """A statement; `text` stands there already. EOFError at the end, KeyboardInterrupt at Ctrl-C."""

    def invalidate(self) -> None:
        """Draw the toolbar anew, from any thread."""


class PlainEditor:
    """Lines from stdin, until they make a statement: for ``TERM=dumb``."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def read(self, text: str = "") -> str:
        """A statement."""
        lines: list[str] = []
        while True:
            with typed_lines(), INTERRUPTS.raised():
                sys.stdout.write(MORE if lines else PROMPT)
                sys.stdout.flush()
                line = sys.stdin.readline()
            if not line:
                if lines:
                    return "\n".join(lines)
                raise EOFError
            lines.append(line.rstrip("\n"))
            typed = "\n".join(lines)
            if not typed.strip() and self._around.correction:
                return self._around.correction
            if ends(typed, self._around.option("enter")):
                return typed

    def invalidate(self) -> None:
        """There is no toolbar."""


def ends(text: str, enter: str) -> bool:
    """Whether Enter runs the text."""
    stripped = text.strip()
    if stripped.startswith("\\") or not stripped or stripped.lower().rstrip(";") in ("help", "quit", "exit"):
        return True
    if enter == "semicolon":
        return stripped.endswith(";") and is_complete(text)
    return is_complete(text)


def make_editor(around: Surroundings, history: Any) -> Editor:
    """The editor for this terminal."""
    return PlainEditor(around) if is_dumb() else FullEditor(around, history)


class FullEditor:
    """prompt_toolkit, set up."""

    def __init__(self, around: Surroundings, history: Any) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.layout.processors import ConditionalProcessor, HighlightMatchingBracketProcessor
        from prompt_toolkit.styles import DynamicStyle

        self._around = around
        self._session: PromptSession[str] = PromptSession(
            message=[("class:prompt", PROMPT)],
            multiline=True,
            prompt_continuation=lambda width, number, wrapped: [
                ("class:dim", " " * width if wrapped else MORE)
            ],
            history=history,
            auto_suggest=AutoSuggestFromHistory(),
            completer=_completer(around),
            complete_while_typing=True,
            lexer=_lexer(around),
            style=DynamicStyle(lambda: _style(theme_of(around.theme))),
            include_default_pygments_style=False,
            input_processors=[
                ConditionalProcessor(HighlightMatchingBracketProcessor(chars="()"), filter=_short_text())
            ],
            key_bindings=_keys(around),
            bottom_toolbar=lambda: [("class:toolbar", around.toolbar())],
            placeholder=lambda: _placeholder(around),
            search_ignore_case=True,
            enable_open_in_editor=True,
            enable_suspend=True,
            tempfile_suffix=".sql",
            mouse_support=False,
            reserve_space_for_menu=6,
            refresh_interval=0.5,
        )

    def read(self, text: str = "") -> str:
        """A statement."""
        from prompt_toolkit.enums import EditingMode
        from prompt_toolkit.output.color_depth import ColorDepth
        from prompt_toolkit.patch_stdout import patch_stdout

        # As they are set now.
        vi = self._around.option("editing") == "vi"
        self._session.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
        plain = theme_of(self._around.theme) == "none"
        depth = ColorDepth.DEPTH_4_BIT if has_sixteen() else ColorDepth.DEPTH_24_BIT if has_all() else None
        self._session.color_depth = ColorDepth.DEPTH_1_BIT if plain else depth
        INTERRUPTS.take()
        # What is told meanwhile by other threads stands above the prompt.
        with patch_stdout(raw=True):
            # Here Ctrl-C is a key; the signal comes only while that begins or ends.
            typed = str(self._session.prompt(default=text, handle_sigint=False))
        if INTERRUPTS.take(JUST_NOW):
            # Behind Enter: it is for the statement.
            INTERRUPTS.put_back()
        return typed

    def invalidate(self) -> None:
        """Draw the toolbar anew."""
        self._session.app.invalidate()


def _placeholder(around: Surroundings) -> Any:
    if not around.correction:
        return ""
    first, *rest = around.correction.strip().splitlines()
    return [("class:dim", f"Enter: {first}{' ...' if rest else ''}")]


def _short_text() -> Any:
    from prompt_toolkit.application.current import get_app
    from prompt_toolkit.filters import Condition

    return Condition(lambda: len(get_app().current_buffer.text) <= MOST_COLOURED)


@cache
def _style(theme: str) -> Any:
    """The style of a theme; ever the same one, since with another all rules are read anew at every key."""
    from prompt_toolkit.styles import Style

    styles = {name: _as_prompt_toolkit(value) for name, value in colours(theme).items()}
    return Style.from_dict(
        {
            **{name: value for name, value in styles.items() if name != "toolbar"},
            "bottom-toolbar": "noreverse",
            "toolbar": styles.get("toolbar", ""),
            # These come in grey by themselves, too pale for one background or the other.
            **dict.fromkeys(("auto-suggestion", "aborting", "exiting"), styles.get("dim", "")),
            **(_MENU if styles else {}),
            "matching-bracket.cursor": "bold",
            "matching-bracket.other": "bold underline",
        }
    )


_MENU = {
    "completion-menu.completion": "bg:#bbbbbb #000000",
    "completion-menu.completion.current": "bg:#303030 #ffffff",
    "completion-menu.meta.completion": "bg:#999999 #000000",
    "completion-menu.meta.completion.current": "bg:#505050 #ffffff",
}


def _as_prompt_toolkit(style: str) -> str:
    """A style with the names that prompt_toolkit has for the 16 colours."""
    words = {"white": "ansigray", "bright_white": "ansiwhite", "black": "ansiblack"}
    names = ("red", "green", "yellow", "blue", "magenta", "cyan")
    words |= {n: f"ansi{n}" for n in names} | {f"bright_{n}": f"ansibright{n}" for n in names}
    return " ".join(words.get(word, word) for word in style.split())


def _completer(around: Surroundings) -> Any:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class Words(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            text, cursor = document.text, document.cursor_position
            if not complete_event.completion_requested and text[cursor - 1 : cursor] in (
                "",
                " ",
                "\n",
                ";",
                ")",
            ):
                # Nothing begins here: who wants to see what may, asks with Tab.
                return
            for word, start, about in around.candidates(text, cursor):
                yield Completion(word, start_position=start - cursor, display_meta=about)

    return Words()


def _lexer(around: Surroundings) -> Any:
    from prompt_toolkit.document import Document
    from prompt_toolkit.lexers import Lexer

    class Colours(Lexer):
        _text, _lines = "", [[("", "")]]

        def lex_document(self, document: Document) -> Callable[[int], Any]:
            text = document.text
            if len(text) > MOST_COLOURED or text.startswith("\\"):
                lines = text.split("\n")
                return lambda number: [("", lines[number])] if number < len(lines) else []
            if text != self._text:
                self._text, self._lines = text, coloured(text, around.names)
            found = self._lines
            return lambda number: found[number] if number < len(found) else []

    return Colours()


def coloured(text: str, names: Names) -> list[list[tuple[str, str]]]:
    """The lines of a text as pieces with their classes."""
    lines: list[list[tuple[str, str]]] = [[]]
    found = tokens(text)
    unknown = unknown_names(found, names)
    at = 0
    for number, token in enumerate(found):
        _add(lines, "", text[at : token.start])
        # What may be typed on is no mistake yet.
        _add(lines, _class_of(token, number in unknown and token.end < len(text)), token.text)
        at = token.end
    _add(lines, "", text[at:])
    return lines


def _add(lines: list[list[tuple[str, str]]], style: str, piece: str) -> None:
    first, *rest = piece.split("\n")
    lines[-1].append((style, first))
    lines.extend([(style, line)] for line in rest)


def _class_of(token: Token, unknown: bool) -> str:
    if unknown:
        return "class:unknown"
    return "" if token.kind in ("name", "symbol") else f"class:{token.kind}"


def _keys(around: Surroundings) -> Any:
    from prompt_toolkit.application.current import get_app
    from prompt_toolkit.filters import Condition, completion_is_selected, has_focus, is_searching
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()
    in_text = has_focus("DEFAULT_BUFFER") & ~is_searching

    @keys.add("enter", filter=in_text & ~completion_is_selected)
    def _run(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not buffer.text.strip() and around.correction:
            buffer.text = around.correction
            buffer.validate_and_handle()
        elif ends(buffer.text, around.option("enter")):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=in_text & completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    # Behind Alt a line feed is what Enter was while no prompt was there.
    @keys.add("escape", "c-j", filter=in_text)
    @keys.add("escape", "enter", filter=in_text)
    def _line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("tab", filter=in_text & ~completion_is_selected & Condition(lambda: _begins_line(get_app())))
    def _indent(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("    ")

    return keys


def _begins_line(app: Any) -> bool:
    document = app.current_buffer.document
    return document.cursor_position_row > 0 and not document.current_line_before_cursor.strip()
