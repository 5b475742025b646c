"""Form fields for the compensation of a tool's change (R-TOOL-3, R-TOOL-15)."""

from typing import Any

from django import forms

from orchestrator.core.domain.tool_spec import ToolSpec


class WayBack(forms.Form):
    """The fields of a compensation. Without a tool there is no compensation."""

    back_tool = forms.CharField(label="Taken back by: tool", max_length=64, required=False)
    back_wanted = forms.CharField(
        label="Taken back: what then is wanted", max_length=300, required=False,
        help_text="A sentence for people: The note {id} is gone.",
    )  # fmt: skip
    back_arguments = forms.CharField(
        label="Taken back: arguments", required=False, max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono"}),
        help_text="One argument=pointer a line, into the call: id=/result/id or to=/arguments/to.",
    )  # fmt: skip

    def clean_back_arguments(self) -> dict[str, str]:
        """Parse the arguments of the compensating tool, each with its pointer."""
        lines = [line.strip() for line in self.cleaned_data["back_arguments"].splitlines() if line.strip()]
        if any("=" not in line for line in lines):
            raise forms.ValidationError("One argument=pointer a line.")
        pairs = (line.partition("=") for line in lines)
        return {name.strip(): pointer.strip() for name, _, pointer in pairs}

    def way_back(self) -> dict[str, Any]:
        """Return the `compensation` entry of an admission or a declaration, or {} if no tool is given."""
        given = self.cleaned_data
        if not given["back_tool"]:
            return {}
        wanted = given["back_wanted"] or f"What was done is taken back by {given['back_tool']}."
        said = {"tool": given["back_tool"], "wanted": wanted, "arguments": given["back_arguments"]}
        return {"compensation": said}


def initial_of(spec: ToolSpec) -> dict[str, str]:
    """Return the initial field values of a tool's compensation."""
    back = spec.compensation
    if back is None:
        return {}
    lines = "\n".join(f"{name}={pointer}" for name, pointer in back.arguments.items())
    return {"back_tool": back.tool, "back_wanted": back.wanted, "back_arguments": lines}
