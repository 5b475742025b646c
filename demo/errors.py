"""The company's refusals of requests."""

from __future__ import annotations


class Refusal(Exception):
    """An HTTP status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail


def not_found(what: str, name: str) -> Refusal:
    """Build the refusal for a thing that does not exist."""
    return Refusal(404, "not_found", f"There is no {what} {name!r}.")
