"""Allow-lists: names of tools, or whole families of them (`payments.*`)."""

from functools import lru_cache

KEPT = 65_536
EVERY = "*"


@lru_cache(KEPT)
def is_name_match(pattern: str, tool: str) -> bool:
    """Whether an allow-list entry, which may end in ``.*``, names the tool."""
    return tool == pattern or (pattern.endswith(".*") and tool.startswith(pattern[:-1]))


@lru_cache(KEPT)
def first_naming(patterns: tuple[str, ...], tool: str) -> int | None:
    """The place of the first entry that names the tool."""
    return next((place for place, pattern in enumerate(patterns) if is_name_match(pattern, tool)), None)


@lru_cache(KEPT)
def named_by(patterns: tuple[str, ...], tool: str) -> bool:
    """Whether any entry of the list names the tool."""
    return any(is_name_match(pattern, tool) for pattern in patterns)


def is_listed(patterns: tuple[str, ...], tool: str) -> bool:
    """Whether a workflow's allow-list holds the tool; `*` stands for every tool that the boundary allows."""
    return EVERY in patterns or named_by(patterns, tool)
