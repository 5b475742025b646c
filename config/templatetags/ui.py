"""The console's components as tags: `{% load ui %}`. Each is one template in `templates/components/`.

Text from outside goes through `{% hostile %}`; any other value is escaped as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache, wraps
from typing import Any, TypeVar
from uuid import UUID

from django import template
from django.conf import settings
from django.forms import BoundField
from django.forms.widgets import CheckboxInput, CheckboxSelectMultiple, ChoiceWidget, RadioSelect
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from config.site.static_files import import_map
from config.ui import charts, number_format
from config.ui import diff as differences
from config.ui.json_tree import build_json_tree
from config.ui.status_styles import class_look, state_look
from config.ui.untrusted_text import Piece, mark_untrusted_text

register = template.Library()
Context = dict[str, Any]
LONG = 2_000
KEPT = 2_000
HOSTILE = '<span class="hostile" dir="auto">{}</span>'
FOLDED = '<details class="fold"><summary>Show all {} characters</summary>{}</details>'
LINE = '<bdi class="hostile">{}</bdi>'
CLOCK = '<time class="{}" datetime="{}" title="{}">{}</time>'
CUT = '<span class="muted" title="{} more characters">…</span>'
HANDLES_ITSELF = (CheckboxInput, RadioSelect, CheckboxSelectMultiple)


Tag = TypeVar("Tag", bound=Callable[..., Context])


def component(name: str) -> Callable[[Tag], Tag]:
    """Return a decorator that registers an inclusion tag for `templates/components/<name>.html`."""
    decorate: Callable[[Tag], Tag] = register.inclusion_tag(f"components/{name}.html", name=name)
    return decorate


def kept(name: str) -> Callable[[Tag], Tag]:
    """Return a decorator for a component whose output depends on its arguments only.

    The rendered `templates/components/<name>.html` is cached, because a list asks for it a hundred times.
    """

    def decorate(tag: Tag) -> Tag:
        def render_component(*given: Any, **named: Any) -> SafeString:
            return render_to_string(f"components/{name}.html", tag(*given, **named))

        # `typed`: an escaped text equals the same text before escaping.
        once = lru_cache(maxsize=KEPT, typed=True)(render_component)

        @wraps(tag)
        def draw(*given: Any, **named: Any) -> SafeString:
            return (render_component if settings.DEBUG else once)(*given, **named)

        register.simple_tag(draw, name=name)
        return tag

    return decorate


@kept("state_chip")
def state_chip(status: str, terminal_code: str = "") -> Context:
    """Return icon, label and colour of the state of a run or a request."""
    return {"look": state_look(str(status), str(terminal_code or "")), "status": status}


@kept("class_chip")
def class_chip(risk: str) -> Context:
    """Return letter and label of a risk class."""
    tone, letter, word = class_look(str(risk))
    return {"tone": tone, "letter": letter, "word": word}


@register.filter
def risk_word(risk: str) -> str:
    """Format a risk class like its chip, for places without markup."""
    return " ".join(class_look(str(risk))[1:])


@register.filter
def state_word(status: str) -> str:
    """Return the label of a state."""
    return state_look(str(status)).word


@register.filter
def unit_word(name: str) -> str:
    """Return the label of a budget dimension."""
    return str(name).replace("_", " ").replace("usd", "(US$)")


@kept("meter")
def meter(label: str, used: Any, reserved: Any, limit: Any, unit: str = "", soft: Any = None) -> Context:
    """Show used, reserved and free parts of a limit, with a tick at the warning threshold.

    Without a limit, only the amount is shown.
    """
    share = number_format.compute_percentage(used, limit)
    held = min(number_format.compute_percentage(reserved, limit), Decimal(100) - share)
    warned = None if soft is None else number_format.compute_percentage(soft, limit)
    tone = "limit" if share + held >= 100 else "soft" if warned is not None and share >= warned else ""
    return {
        "label": label, "text": number_format.used_of(used, reserved, limit, unit), "used": share,
        "reserved": held, "tone": tone, "limited": limit is not None, "soft": warned,
    }  # fmt: skip


@register.simple_tag
def money(amount: Any) -> SafeString:
    """Format an amount of dollars."""
    exact = "" if amount in (None, "") else str(amount)
    return format_html('<data class="num" value="{}">{}</data>', exact, number_format.format_money(amount))


@register.simple_tag
def duration(seconds: Any) -> SafeString:
    """Format a duration."""
    return format_html('<span class="num">{}</span>', number_format.format_duration(seconds))


@register.simple_tag
def quantity(amount: Any, unit: str = "") -> SafeString:
    """Format an amount with its unit."""
    return format_html('<span class="num">{}</span>', number_format.format_quantity(amount, unit))


@register.simple_tag
def when(at: datetime | None, prefix: str = "") -> SafeString:
    """Format a moment in the reader's time zone; `time.js` turns the text to "4 min ago"."""
    if at is None:
        return mark_safe("–")
    local = timezone.localtime(at)
    text = f"{local:%d %b %Y, %H:%M:%S} {local:%Z}"
    return format_html(
        '<time datetime="{}" title="{}" data-time>{}{}</time>', at.isoformat(), text, prefix, text
    )


@register.simple_tag
def clock(at: datetime, classes: str) -> SafeString:
    """Format the time of day in the reader's time zone, with the full moment in the title."""
    local = timezone.localtime(at)
    return format_html(
        CLOCK, classes, at.isoformat(), f"{local:%Y-%m-%d %H:%M:%S.%f %Z}", f"{local:%H:%M:%S}"
    )


@component("empty")
def empty(
    title: str, text: str = "", action_url: str = "", action_text: str = "", icon: str = "inbox"
) -> Context:
    """Show an empty state: the content that will appear, and the one action that creates it."""
    return {"title": title, "text": text, "action_url": action_url, "action_text": action_text, "icon": icon}


@component("notice")
def notice(tone: str, title: str, text: str = "", code: str = "") -> Context:
    """Show a region's error, stale or forbidden state. `tone`: error, stale, forbidden, loading or info."""
    icons = {"error": "alert", "stale": "hourglass", "forbidden": "lock", "loading": "loop", "info": "info"}
    return {"tone": tone, "title": title, "text": text, "code": code, "icon": icons.get(tone, "info")}


@kept("icon")
def icon(name: str, label: str = "") -> Context:
    """Show a symbol of the sprite; it is decorative unless it has a label."""
    return {"name": name, "label": label}


@register.simple_tag
def hostile(text: Any, limit: int = LONG) -> SafeString:
    """Show a whole text from outside: escaped, hidden characters marked, folded beyond `limit`."""
    whole = "" if text is None else str(text)
    head, rest = format_html(HOSTILE, _mark_text(whole[:limit])), whole[limit:]
    return head + format_html(FOLDED, len(whole), format_html(HOSTILE, _mark_text(rest))) if rest else head


@register.simple_tag
def hostile_line(text: Any, limit: int = 120) -> SafeString:
    """Show a text from outside on one line (a list's row, a link); a cut at `limit` is marked."""
    whole = " ".join(str("" if text is None else text).split(maxsplit=400))
    head, left = format_html(LINE, _mark_text(whole[:limit])), len(whole) - limit
    return head + format_html(CUT, left) if left > 0 else head


def _mark_text(text: str) -> SafeString:
    """Return the text with its marks. A long page has a thousand of these, so no template is used."""
    return SafeString(
        "".join(_mark(one) if one.mark else escape(one.text) for one in mark_untrusted_text(text))
    )


def _mark(one: Piece) -> SafeString:
    title = format_html(' title="{}"', one.title) if one.title else ""
    return format_html('<span class="mark"{}>{}</span>', title, one.text)


@register.filter
def hides(text: Any) -> bool:
    """Return whether characters of the text hide or rearrange others.

    The text of such a field is also shown with marks.
    """
    return any(piece.mark and piece.title != "shortened" for piece in mark_untrusted_text(str(text)))


@register.filter
def marked(text: Any) -> str:
    """Return the text for a place without markup (a choice), with hidden characters named in brackets."""
    return "".join(
        f"[{piece.text}]" if piece.mark else piece.text for piece in mark_untrusted_text(str(text))
    )


@register.inclusion_tag("components/json.html", name="json")
def json_viewer(value: Any, label: str = "") -> Context:
    """Show a JSON value that can be folded without JavaScript."""
    return {"node": build_json_tree(value), "label": label}


@component("diff")
def diff(before: Any, after: Any) -> Context:
    """Show the difference: lines of two texts, or entries of two values."""
    if isinstance(before, str) and isinstance(after, str):
        return {"lines": differences.diff_text_lines(before, after)}
    return {"entries": differences.diff_json_entries(before, after)}


@register.simple_tag
def kbd(keys: str) -> SafeString:
    """Show the keys of a shortcut.

    They are hidden from screen readers, since the control names them by `aria-keyshortcuts`.
    """
    several = [format_html("<kbd>{}</kbd>", key) for key in keys.split(" ")]
    return format_html('<span class="kbd" aria-hidden="true">{}</span>', mark_safe("".join(several)))  # noqa: S308 - joined from format_html


@component("copy")
def copy(text: Any, label: str = "Copy") -> Context:
    """Show a button that copies a text; without JavaScript the text itself can be selected."""
    return {"text": str(text), "label": label}


@component("field")
def field(form_field: BoundField) -> Context:
    """Show a form field: label, control, help and errors, linked for assistive technology."""
    described = [
        f"{form_field.auto_id}_{part}"
        for part, there in (("help", form_field.help_text), ("error", form_field.errors))
        if there
    ]
    widget = form_field.field.widget
    if isinstance(widget, ChoiceWidget):
        widget.choices = _legible(widget.choices)
    attrs: dict[str, Any] = {"autofocus": False}
    if described:
        attrs["aria-describedby"] = " ".join(described)
    if form_field.errors:
        attrs["aria-invalid"] = "true"
    grouped = isinstance(widget, RadioSelect | CheckboxSelectMultiple)
    return {
        "field": form_field, "control": form_field.as_widget(attrs=attrs), "grouped": grouped,
        "box": isinstance(widget, CheckboxInput), "hidden": form_field.is_hidden,
    }  # fmt: skip


def _legible(choices: Any) -> list[tuple[Any, Any]]:
    """Return the choices with hidden characters named in brackets, since an option cannot hold markup."""
    return [
        (value, _legible(label) if isinstance(label, list | tuple) else marked(label))
        for value, label in choices
    ]


@register.inclusion_tag("components/errors.html", name="form_errors")
def form_errors(form: Any) -> Context:
    """Show the error summary above a refused form: each error links to its field."""
    named = [(found, found.errors) for found in form if found.errors]
    return {"general": form.non_field_errors(), "named": named, "any": bool(form.errors)}


@component("sparkline")
def sparkline(values: Sequence[Any], label: str) -> Context:
    """Show a small line; `label` describes its content."""
    return {
        "points": charts.build_sparkline_points(values),
        "label": label,
        "width": charts.WIDTH,
        "height": charts.HEIGHT,
    }


@component("bars")
def bar_chart(rows: Sequence[tuple[str, Any, str]], label: str) -> Context:
    """Show bars with direct labels, as a table: (label, value, text) each."""
    return {"bars": charts.build_bars(rows), "label": label}


@register.simple_tag
def short_id(value: UUID | str) -> SafeString:
    """Show the last eight digits of an id, with the whole id on hover.

    The first digits are a time and therefore similar.
    """
    return format_html('<span class="mono" title="{}">…{}</span>', value, str(value)[-8:])


@register.simple_tag(takes_context=True)
def modules(context: Context) -> SafeString:
    """Return the import map of every page (config.static)."""
    nonce = getattr(context.get("request"), "csp_nonce", "")
    return format_html(
        '<script type="importmap" nonce="{}">{}</script>',
        nonce,
        mark_safe(import_map()),  # noqa: S308 - our own file names
    )


@register.simple_tag
def version() -> str:
    """Return the version of this build."""
    return str(settings.INTERLOCK_VERSION)
