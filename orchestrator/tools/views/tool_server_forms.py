"""The forms of tool servers, private hosts and secrets."""

from typing import Any

from django import forms

from orchestrator.tools.queries.tool_servers import (
    list_server_commands,
)


def make_reason_field() -> forms.CharField:
    """The field of a reason."""
    return forms.CharField(
        label="Reason", max_length=500, help_text="Saved to the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip


class ServerForm(forms.Form):
    """A server to add."""

    slug = forms.CharField(
        label="Name",
        max_length=31,
        help_text="Its tools are called name.tool: lower-case letters, digits, _.",
    )
    kind = forms.ChoiceField(label="Reached by", choices=[("http", "an address (HTTP)")], initial="http")
    address = forms.CharField(label="Address", max_length=2_000)
    secret = forms.CharField(
        label="Secret", max_length=64, required=False, help_text="The name of one below."
    )
    secret_header = forms.CharField(
        label="Sent as", max_length=64, required=False, initial="Authorization",
        help_text="A header; with a command, a variable.",
    )  # fmt: skip
    reason = make_reason_field()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if list_server_commands():
            kinds = [("http", "an address (HTTP)"), ("stdio", "a command of the operator's")]
            self.fields["kind"].choices = kinds  # type: ignore[attr-defined]
            self.fields["address"].help_text = f"Or one of the commands {', '.join(list_server_commands())}."


class PlacesForm(forms.Form):
    """The private places."""

    places = forms.CharField(
        label="Private places", required=False, max_length=30_000, widget=forms.Textarea(attrs={"rows": 4}),
        help_text="One host:port a line. Nothing else that is not public can be reached by tools.",
    )  # fmt: skip
    reason = make_reason_field()
    version = forms.IntegerField(widget=forms.HiddenInput)


class SecretForm(forms.Form):
    """A secret to keep."""

    name = forms.CharField(label="Name", max_length=64)
    origin = forms.CharField(
        label="Origin", max_length=300, help_text="The one place it is sent to, such as https://api.example"
    )
    value = forms.CharField(
        label="Value", max_length=8_192, strip=False, help_text="It is sealed and never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )  # fmt: skip
    reason = make_reason_field()
