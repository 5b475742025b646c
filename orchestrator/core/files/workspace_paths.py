"""Validate file paths of a run's workspace: one spelling each, none outside of it (R-TOOL-19)."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.core.files.errors import PathRefused

LONGEST: Final = 240
DEEPEST: Final = 16
LONGEST_PART: Final = 100

# The allowed characters of a path: letters, digits and marks of any script, and these.
_SIGNS = frozenset("._-+@=,()[]# ")
_KINDS = ("L", "N", "M")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\..*)?", re.IGNORECASE)
_SHORT = re.compile(r"~[0-9]")
# Letters of other scripts that look like Latin ones, after case folding.
_LOOKS: Final[Mapping[str, str]] = {
    "a": "аαɑ", "b": "ьƅ", "c": "сϲᴄ", "d": "ԁɗ", "e": "еҽεє", "f": "ғ", "g": "ɡց", "h": "һհ", "i": "іιıɩ",
    "j": "јϳ", "k": "кκ", "l": "ӏɫ", "m": "мᴍ", "n": "пηո", "o": "оοօσ", "p": "рρ", "q": "ԛզ", "r": "гᴦ",
    "s": "ѕꜱ", "t": "тτ", "u": "υսᴜ", "v": "νѵᴠ", "w": "ԝωшա", "x": "хχ", "y": "уγү", "z": "ᴢ",
    "3": "зӡ", "6": "б",
}  # fmt: skip
_LATIN: Final = {ord(char): latin for latin, chars in _LOOKS.items() for char in chars}


def safe_path(path: str) -> str:
    """Return the path unchanged if it is valid.

    Each file has one spelling: forward slashes, no `.` or `..`, composed letters, no invisible character
    and none that another system reads differently.
    Raises: PathRefused with the reason.
    """
    why = _explain_path_error(path)
    if why:
        raise PathRefused(path=format_path(path), detail=why)
    return path


def normalize_confusable_path(path: str) -> str:
    """Return the path as a careless reader, or a system that ignores case, would see it.

    Two files of a workspace never share this form.
    """
    folded = unicodedata.normalize("NFKD", path).casefold().translate(_LATIN)
    return "".join(char for char in folded if not unicodedata.combining(char))


def check_together(paths: Iterable[str]) -> None:
    """Check a set of paths.

    Raises: PathRefused if two files look alike, or if one is the folder of another.
    """
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(normalize_confusable_path(path), path)
        if other != path:
            raise PathRefused(
                path=format_path(path), detail=f"it looks like {format_path(other)}, which is there too"
            )
    for path in seen.values():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            found = seen.get(normalize_confusable_path("/".join(parts[:depth])))
            if found is not None:
                raise PathRefused(
                    path=format_path(path), detail=f"{format_path(found)} is a file, and no folder"
                )


def is_within_folder(path: str, folder: str) -> bool:
    """Return whether a file is in a folder; the empty folder holds all files."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def format_path(path: str) -> str:
    """Format a path for a message: unprintable characters are escaped, and it is cut to the longest path."""
    return path[:LONGEST].encode("unicode_escape").decode() if not path.isprintable() else path[:LONGEST]


def _explain_path_error(path: str) -> str:
    if not path or len(path) > LONGEST:
        return f"a path has 1 to {LONGEST} characters"
    if path.startswith(("/", "~")):
        return "it begins at the workspace, and names no other place"
    if "\\" in path or ":" in path:
        return "folders are parted by /, and there are no drives"
    strange = next((char for char in path if not _is_allowed_character(char)), None)
    if strange is not None:
        return f"U+{ord(strange):04X} is no sign of a path"
    if unicodedata.normalize("NFKC", path) != path:
        return "it is not in the composed form, or holds letters that stand for others"
    parts = path.split("/")
    faults = (
        f"it is deeper than {DEEPEST} folders" if len(parts) > DEEPEST else "",
        *map(_part_fault, parts),
    )
    return next((why for why in faults if why), "")


def _is_allowed_character(char: str) -> bool:
    return char == "/" or char in _SIGNS or unicodedata.category(char)[0] in _KINDS


def _part_fault(part: str) -> str:
    if part in ("", ".", ".."):
        return "a part of it is empty, . or .."
    if len(part) > LONGEST_PART:
        return f"a part of it is longer than {LONGEST_PART} characters"
    if part != part.strip(" ") or part.endswith("."):
        return "a part of it begins or ends with a space, or ends with a dot"
    if _RESERVED.fullmatch(part) or _SHORT.search(part):
        return "a part of it is the name of a device, or a short name, on some systems"
    if unicodedata.combining(part[0]):
        return "a part of it begins with a mark that belongs to a letter"
    return ""
