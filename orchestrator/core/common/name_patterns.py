"""Allow-lists: names of tools, or whole families of them (`payments.*`)."""

from functools import lru_cache

KEPT = 65_536
EVERY = "*"


@lru_cache(KEPT)
def is_name_match(pattern: str, tool: str) -> bool:
    """Return whether an allow-list entry, which may end in ``.*``, matches the tool."""
    return tool == pattern or (pattern.endswith(".*") and tool.startswith(pattern[:-1]))


@lru_cache(KEPT)
def first_naming(patterns: tuple[str, ...], tool: str) -> int | None:
    """Return the index of the first entry that matches the tool, or None."""
    return next((place for place, pattern in enumerate(patterns) if is_name_match(pattern, tool)), None)


@lru_cache(KEPT)
def named_by(patterns: tuple[str, ...], tool: str) -> bool:
    """Return whether any entry of the list matches the tool."""
    return any(is_name_match(pattern, tool) for pattern in patterns)


def is_listed(patterns: tuple[str, ...], tool: str) -> bool:
    """Return whether a workflow's allow-list holds the tool; `*` is every tool that the boundary allows."""
    return EVERY in patterns or named_by(patterns, tool)
