"""GET and POST /budgets/prices: what models and tools cost, a new version of a price, and the correction of a
wrong one with a look at what it changes (R-BUDGET-15)."""

from decimal import Decimal
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from budgets.actions import state_price
from budgets.core.errors import PriceUnknown
from orchestrator.spending.actions.price_corrections import (
    NAMED,
    Correction,
    apply_price_correction,
    preview_price_correction,
)
from orchestrator.spending.api.prices import PROVIDER, build_stated_price
from orchestrator.spending.queries.mispriced_calls import WrongPrice
from orchestrator.spending.queries.prices import (
    PricedModel,
    model_prices,
    replaced_prices,
    stated_versions,
    tool_prices,
    unknown_policy,
)
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

MILLION: Final = Decimal(1_000_000)
POLICY: Final = {
    "worst": "Where nobody knows a price, calls are charged at the worst case that the operator declared.",
    "free": "Where nobody knows a price, calls are taken as free: the operator said so.",
    "refuse": "Where nobody knows a price, calls are refused.",
}
SOURCES: Final = {
    "genai-prices": "listed by the library", "tenant": "stated as the contract",
    "operator": "stated by the operator", "declared": "declared as the worst case", "scripted": "scripted",
}  # fmt: skip


def _build_rate_field(label: str, *, required: bool = True) -> forms.DecimalField:
    return forms.DecimalField(
        label=label, required=required, min_value=0, max_value=1_000_000, max_digits=15, decimal_places=9,
        help_text="" if required else "Empty: as the input.",
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )  # fmt: skip


class PriceForm(forms.Form):
    """A new version of a model's price."""

    prefix = "price"
    provider = forms.RegexField(label="Provider", regex=PROVIDER, max_length=64, help_text="Such as openai.")
    model = forms.CharField(label="Model", max_length=200, help_text="As the provider calls it.")
    kind = forms.ChoiceField(
        label="What it is", choices=[("contract", "our contract"), ("worst_case", "the worst case")]
    )
    input_usd_per_mtok = _build_rate_field("Input, US$ a million tokens")
    output_usd_per_mtok = _build_rate_field("Output, US$ a million tokens")
    cache_read_usd_per_mtok = _build_rate_field("Cache read, US$ a million tokens", required=False)
    cache_write_usd_per_mtok = _build_rate_field("Cache write, US$ a million tokens", required=False)
    request_usd = _build_rate_field("A request, US$")
    reason = forms.CharField(
        label="Reason", max_length=500, help_text="Saved to the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip


class CorrectionForm(forms.Form):
    """Which price was wrong, and why it is corrected."""

    prefix = "correct"
    wrong = forms.ChoiceField(label="The wrong price")
    reason = forms.CharField(
        label="Reason", max_length=500, help_text="Saved to the audit log and in the runs’ traces.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip

    def __init__(self, known: list[WrongPrice], *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.known = {_format_price_label(wrong): wrong for wrong in known}
        self.fields["wrong"] = forms.ChoiceField(
            label="The wrong price", choices=[(word, word) for word in self.known]
        )

    @property
    def chosen_price(self) -> WrongPrice:
        """The price that is named."""
        return self.known[self.cleaned_data["wrong"]]


def _format_price_label(wrong: WrongPrice) -> str:
    return wrong.version if wrong.tool else f"{wrong.provider} {wrong.model}: {wrong.version}"


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ, asks=(Area.MONEY,))
def show_prices_page(request: PageRequest) -> HttpResponse:
    """Every price. A POST states one, shows what a correction would change, or corrects."""
    if request.method != "POST":
        return _render_prices_page(request)
    check_scopes(request.member, Scope.ADMIN)
    if "state" in request.POST:
        return _submit_price(request)
    return _submit_price_correction(request)


def _submit_price(request: PageRequest) -> HttpResponse:
    form = PriceForm(request.POST)
    if not form.is_valid():
        return _render_prices_page(request, form=form, status=422)
    given = form.cleaned_data
    price = state_price(
        request.member.tenant.id,
        build_stated_price(given),
        by=request.member.principal,
        reason=given["reason"],
    )
    messages.success(request, f"Runs admitted from now on are charged at {price.version}.")
    return redirect("budgets-prices")


def _submit_price_correction(request: PageRequest) -> HttpResponse:
    house = request.member.tenant.id
    with tenant_transaction(house):
        known = replaced_prices(house, database_now())
    form = CorrectionForm(known, request.POST)
    if not form.is_valid():
        return _render_prices_page(request, correction_form=form, status=422)
    try:
        if "apply" not in request.POST:
            return _render_prices_page(
                request, correction_form=form, found=preview_price_correction(house, form.chosen_price)
            )
        done = apply_price_correction(
            house, form.chosen_price, by=request.member.principal, reason=form.cleaned_data["reason"]
        )
    except (InvalidInput, PriceUnknown) as error:
        told = error.data.get("errors", ())
        form.add_error("wrong", told[0]["detail"] if told else str(error))
        return _render_prices_page(request, correction_form=form, status=422)
    messages.success(request, f"{done.calls} calls of {len(done.runs)} runs are corrected.")
    if done.beyond is not None:
        messages.info(request, "There are more runs: manage.py ledger correct takes on all of them.")
    return redirect("budgets-prices")


def _render_prices_page(
    request: PageRequest,
    *,
    form: PriceForm | None = None,
    correction_form: CorrectionForm | None = None,
    found: Correction | None = None,
    status: int = 200,
) -> HttpResponse:
    house, may_admin = request.member.tenant.id, request.member.may(Scope.ADMIN)
    with tenant_transaction(house):
        at = database_now()
        versions, known = stated_versions(), tool_prices(house)
        if correction_form is None and may_admin:
            correction_form = CorrectionForm(replaced_prices(house, at))
        context = {
            "models": [_build_price_row(one) for one in model_prices(house, at)],
            "tools": [tool for tool in known if tool.spec.price_usd != 0],
            "free": [tool for tool in known if tool.spec.price_usd == 0],
            "versions": [{"stated": one, **_build_price_amounts(one.price)} for one in versions],
            "names": names_of([one.by for one in versions]),
            "policy": POLICY[unknown_policy()],
            "form": form or PriceForm(initial={"request_usd": "0"}),
            "correction_form": correction_form,
            "found": found,
            "named": found.runs[:NAMED] if found else (),
            "may_admin": may_admin,
        }
    return render(request, "budgets/prices.html", context, status=status)


def _build_price_row(one: PricedModel) -> dict[str, Any]:
    source = SOURCES.get(one.price.source, "") if one.price is not None else ""
    return {"model": one, "source": source, **_build_price_amounts(one.price)}


def _build_price_amounts(price: Any) -> dict[str, Any]:
    names = ("input", "output", "cache_read", "cache_write")
    rates = {name: getattr(price, name, None) for name in names}
    return {
        "rates": [None if rate is None else rate * MILLION for rate in rates.values()],
        "long": getattr(price, "long", ()),
        "request": getattr(price, "per_request", None),
    }
