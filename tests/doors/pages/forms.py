"""The forms of a page, as a browser without script would send them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.test import Client

Attributes = list[tuple[str, str | None]]


@dataclass
class Form:
    """A form: where it goes, what it sends untouched, and its buttons as (name, value)."""

    action: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)

    def send(self, client: Client, button: str, **typed: str) -> Any:
        """Send it by the button of this value, with some fields typed over (by name, `__` for what no name
        can hold is not needed: give them in a dictionary)."""
        name = next(name for name, value in self.buttons if value == button)
        return client.post(self.action, {**self.fields, **typed, name: button})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._open: Form | None = None
        self._area: str | None = None
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        got = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(action=got.get("action", ""))
            self.forms.append(self._open)
        elif self._open is None or "disabled" in got:
            return
        elif tag == "button" and got.get("type", "submit") == "submit":
            self._open.buttons.append((got.get("name", ""), got.get("value", "")))
        elif tag == "input" and got.get("name") and (got.get("type") != "checkbox" or "checked" in got):
            self._open.fields[got["name"]] = got.get("value", "on" if got.get("type") == "checkbox" else "")
        elif tag == "textarea":
            self._area = got["name"]
            self._open.fields[self._area] = ""
        elif tag == "select":
            self._select = got["name"]
            self._open.fields.setdefault(self._select, "")
        elif tag == "option" and self._select is not None and "selected" in got:
            self._open.fields[self._select] = got["value"]

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "textarea" and self._open is not None and self._area is not None:
            text = self._open.fields[self._area]
            # A browser leaves out the first line's end, and sends every other one as two characters.
            self._open.fields[self._area] = text.removeprefix("\n").replace("\n", "\r\n")
            self._area = None
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._area is not None and self._open is not None:
            self._open.fields[self._area] += data


def forms_of(answer: Any) -> list[Form]:
    """Every form of a page, in order."""
    reader = _Reader()
    reader.feed(answer.content.decode())
    return reader.forms


def form_with(answer: Any, button: str) -> Form:
    """The form that has a button of this value. Raises StopIteration."""
    return next(form for form in forms_of(answer) if any(value == button for _, value in form.buttons))
