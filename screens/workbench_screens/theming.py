"""Our own words as theme variables, and style words as terminal styles of the theme in use."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme

WORDS = ("faster", "slower", "pending", "rejected", "cheating")

DEFAULTS = {
    "faster": "#5fd787",
    "slower": "#d7af5f",
    "pending": "#87afd7",
    "rejected": "#d7706f",
    "cheating": "#d787d7",
}
"""Used where a theme does not name a word. Apart in lightness too, and never without a glyph or word."""

CODE = {
    "code-keyword": "#c792ea",
    "code-directive": "#89b4c4",
    "code-comment": "#7f8c98",
    "code-string": "#a5c281",
    "code-number": "#e0a46c",
    "code-name": "#7fb3e6",
}

WORKBENCH = Theme(
    name="workbench",
    primary="#5f9fd7",
    secondary="#3b5b7a",
    accent="#e0b060",
    warning="#d7af5f",
    error="#d7706f",
    success="#5fd787",
    foreground="#d8dee6",
    background="#12161c",
    surface="#171c24",
    panel="#1f2630",
    dark=True,
    variables=dict(DEFAULTS),
)
PAPER = Theme(
    name="workbench-light",
    primary="#1f5f9f",
    secondary="#a9c3dd",
    accent="#8a5a00",
    warning="#8a6100",
    error="#a8322f",
    success="#1c7a3c",
    foreground="#20262e",
    background="#f6f5f1",
    surface="#eeede8",
    panel="#e2e1da",
    dark=False,
    variables={
        "faster": "#1c7a3c",
        "slower": "#8a6100",
        "pending": "#1f5f9f",
        "rejected": "#a8322f",
        "cheating": "#8a2a8a",
    },
)
THEMES = (WORKBENCH, PAPER)


class Theming:
    """Style words → `rich.style.Style`. A word may be several: "faster bold". Unknown words are plain text."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._styles: dict[str, Style] = {}
        self._foreground = self._color("foreground", "#d8dee6")
        self._background = self._color("background", "#12161c")
        light = self._background.brightness > 0.5
        self._code = {
            name: Color.parse(value).blend(Color.parse("black"), 0.45) if light else Color.parse(value)
            for name, value in CODE.items()
        }

    def style(self, words: str) -> Style:
        """Cached: a pane asks for the same few words thousands of times."""
        found = self._styles.get(words)
        if found is None:
            found = self._styles[words] = self._make(words.split())
        return found

    def _make(self, words: list[str]) -> Style:
        color, background = self._foreground, None
        flags: dict[str, bool] = {}
        for word in words:
            if word in ("bold", "underline", "italic", "reverse", "dim", "strike"):
                flags[word] = True
            elif word == "cursor":
                background = self._color("primary", "#5f9fd7").blend(self._background, 0.55)
                flags["bold"] = True
            elif word in ("removed-line", "added-line", "removed-word", "added-word"):
                hue = self._color("rejected" if word.startswith("removed") else "faster", "#888888")
                background = self._background.blend(hue, 0.16 if word.endswith("line") else 0.42)
            elif word == "muted":
                color = self._foreground.blend(self._background, 0.45)
            elif word == "faint":
                color = self._foreground.blend(self._background, 0.72)
            elif word in self._code:
                color = self._code[word]
            elif word in WORDS or word in ("primary", "accent", "secondary", "warning", "error", "success"):
                color = self._color(word, DEFAULTS.get(word, "#d8dee6"))
            elif word == "panel":
                background = self._color("panel", "#1f2630")
        return Style(
            color=color.rich_color,
            bgcolor=background.rich_color if background is not None else None,
            bold=flags.get("bold"),
            underline=flags.get("underline"),
            italic=flags.get("italic"),
            reverse=flags.get("reverse"),
            dim=flags.get("dim"),
            strike=flags.get("strike"),
        )

    def _color(self, name: str, fallback: str) -> Color:
        try:
            parsed = Color.parse(self._variables.get(name) or fallback)
        except ColorParseError:
            return Color.parse(fallback)
        # ANSI themes name terminal colours, which cannot be blended; "auto" ones depend on what is below.
        return Color.parse(fallback) if parsed.ansi is not None or parsed.auto else parsed
