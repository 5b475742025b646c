"""GET and POST /models: the language models that runs use, and their keys (R-TOOL-22)."""

from decimal import Decimal
from typing import Any, get_args

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from orchestrator.core.approval.errors import ProposalOpen
from orchestrator.core.common.model_profile import Role
from orchestrator.llm.queries import models_now
from orchestrator.tools.actions.change_requests import ask_to_forget_model, ask_to_name_model
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.destinations import outside_before, outside_now, own_models
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from orchestrator.tools.views.destinations import add_form_errors
from orchestrator.tools.views.tool_server_forms import make_reason_field
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member
from traces.core.canonical import format_decimal

ROLES = [(role, role) for role in get_args(Role)]
OWN, RATES = "own", "rates"
PRICES = [
    ("", "as stated before, or as listed"), (OWN, "I run it myself: $0"), (RATES, "as stated here"),
]  # fmt: skip
PROVIDERS = [("openai", "OpenAI, or compatible"), ("anthropic", "Anthropic")]


class ModelForm(forms.Form):
    """A model to configure. It replaces a model of the same name."""

    name = forms.CharField(label="Name", max_length=32, help_text="Small letters, digits and hyphens.")
    provider = forms.ChoiceField(label="Protocol", choices=PROVIDERS)
    model = forms.CharField(label="Model", max_length=100, help_text="As its provider calls it.")
    base_url = forms.CharField(
        label="Address", max_length=2_000, required=False, help_text="Empty: the provider's own."
    )
    secret = forms.CharField(
        label="Secret", max_length=64, required=False, help_text="The name of a key kept for that address."
    )
    roles = forms.MultipleChoiceField(
        label="Plays", choices=ROLES, required=False, widget=forms.CheckboxSelectMultiple
    )
    context_tokens = forms.IntegerField(
        label="Window, tokens", min_value=1_000, max_value=10_000_000, initial=128_000
    )
    max_output_tokens = forms.IntegerField(
        label="Longest answer, tokens", min_value=64, max_value=200_000, initial=2_000
    )
    timeout_ms = forms.IntegerField(label="Patience, ms", min_value=1_000, max_value=600_000, initial=60_000)
    max_retries = forms.IntegerField(label="Attempts after the first", min_value=0, max_value=10, initial=2)
    price = forms.ChoiceField(
        label="Price", choices=PRICES, required=False,
        help_text="A model at an address of your own is asked once its price is stated.",
    )  # fmt: skip
    price_in = forms.DecimalField(
        label="Input, US$ a million tokens", min_value=0, max_value=1_000_000, decimal_places=9,
        required=False, widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )  # fmt: skip
    price_out = forms.DecimalField(
        label="Output, US$ a million tokens", min_value=0, max_value=1_000_000, decimal_places=9,
        required=False, widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )  # fmt: skip
    at_once = forms.IntegerField(
        label="Calls at once", min_value=1, max_value=10_000, required=False,
        help_text="More wait in line. Empty: 1 on this machine or in its network, elsewhere as many as come.",
    )  # fmt: skip
    cheaper = forms.CharField(
        label="Cheaper model", max_length=32, required=False,
        help_text="Another name here: it plays once 80 % of a run's cost is spent.",
    )  # fmt: skip
    failover = forms.CharField(
        label="Takes over", max_length=300, required=False,
        help_text="Names in order, with commas, where this one cannot be asked; house: the operator's.",
    )  # fmt: skip
    streams = forms.BooleanField(label="Show its text while it is written", required=False)
    reason = make_reason_field()
    version = forms.IntegerField(widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        """Return the cleaned data with the two price fields combined into `price`.

        A price with only one of its two rates is an error.
        """
        given = dict(super().clean() or {})
        rates = (given.pop("price_in", None), given.pop("price_out", None))
        chosen = given.pop("price", "")
        if chosen == OWN:
            rates = (Decimal(0), Decimal(0))
        if chosen and None in rates:
            self.add_error("price", "Say what a million tokens cost, in and out.")
        elif chosen:
            into, out = rates
            given["price"] = {
                "input_usd_per_mtok": format_decimal(into),
                "output_usd_per_mtok": format_decimal(out),
            }
        return given


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.INSPECT, asks=(Area.MONEY,))
def show_models_page(request: PageRequest) -> HttpResponse:
    """Render the models for new runs, each with its key and circuit.

    A POST adds, changes or removes a model.
    """
    if request.method != "POST":
        return _render_models_page(request, _build_model_form(request))
    check_scopes(request.member, Scope.ADMIN)
    if request.POST.get("act") == "forget":
        return _remove_model(request)
    form = ModelForm(request.POST)
    if not form.is_valid():
        return _render_models_page(request, form, wrong=True, status=422)
    given = dict(form.cleaned_data)
    reason, version = given.pop("reason"), given.pop("version")
    given["failover"] = [part.strip() for part in given["failover"].split(",") if part.strip()]
    house = request.member.tenant.id
    try:
        found = ask_to_name_model(
            house, given["name"], given, expected=version, who=build_requester(request), reason=reason
        )
    except (InvalidInput, Stale, ProposalOpen) as error:
        add_form_errors(form, error)
        return _render_models_page(request, form, wrong=True, status=422)
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, f"Runs that begin from now on have {given['name']}.")
    return redirect("models")


def _remove_model(request: PageRequest) -> HttpResponse:
    """Remove a model, so that new runs are no longer pinned to it."""
    reason, name = request.POST.get("reason", "").strip()[:500], request.POST.get("name", "")
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
        return _render_models_page(request, _build_model_form(request), status=422)
    house = request.member.tenant.id
    try:
        found = ask_to_forget_model(house, name, expected=None, who=build_requester(request), reason=reason)
    except InvalidInput as error:
        messages.error(request, " ".join(one["detail"] for one in error.data["errors"]))
        return _render_models_page(request, _build_model_form(request), status=422)
    except (Stale, ProposalOpen) as error:
        messages.error(request, str(error))
        return _render_models_page(
            request, _build_model_form(request), status=412 if isinstance(error, Stale) else 409
        )
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, f"No new run asks {name}.")
    return redirect("models")


def _build_model_form(request: PageRequest) -> ModelForm:
    """Return an empty form, or the form of the model that `?change=` names, with its current values.

    Raises: NotFound.
    """
    named = request.GET.get("change", "")
    with tenant_transaction(request.member.tenant.id):
        version, now = outside_now("models").version, own_models().find_model(named)
    if named and now is None:
        raise NotFound
    initial: dict[str, Any] = {"version": version}
    if now is not None:
        initial |= now.model_dump(mode="json") | {"failover": ", ".join(now.failover)}
    return ModelForm(initial=initial)


def _render_models_page(
    request: PageRequest, form: ModelForm, *, wrong: bool = False, status: int = 200
) -> HttpResponse:
    house = request.member.tenant.id
    with tenant_transaction(house):
        before = outside_before("models")
        found = models_now(house, database_now())
        context = {
            "models": found, "unsaid": [one for one in found if one.unsaid], "before": before, "form": form,
            "open": wrong or bool(request.GET.get("change")), "now": outside_now("models"),
            "scripted": bool(before) and settings.INTERLOCK_MODEL == "scripted",
            "may_admin": request.member.may(Scope.ADMIN),
            "names": names_of([one.by for one in before]),
        }  # fmt: skip
        return render(request, "tools/models.html", context, status=status)
