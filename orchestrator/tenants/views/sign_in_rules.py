"""GET and POST /tenant/sign-in-rules: roles that need a second factor, and when to ask for it (R-SEC-11)."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from orchestrator.core.common.errors import ProposalOpen
from orchestrator.tenants.actions.limit_changes import ask_for_sign_in_rules
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from orchestrator.tools.views.tool_server_forms import make_reason_field
from tenancy.actions.sign_in_rules import read_rules, rules_document
from tenancy.core.errors import Stale
from tenancy.core.roles import Role, Scope
from tenancy.core.sign_in.rules import LONGEST_MINUTES, Area, SignInRules
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.people.sign_in_rules import proof_of, sign_in_rules_now, sign_in_rules_versions
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

AREAS = {
    Area.MONEY: "money: ceilings, budgets, prices, and a yes that moves money or gives a run more",
    Area.KEYS: "keys: API keys, secrets, and the secrets of webhooks",
    Area.INVITATIONS: "invitations: who belongs to the tenant, as what, and first-password links",
}


class RulesForm(forms.Form):
    """All sign-in rules.

    `sure` is the confirmation of an administrator who would be locked out until they have a second factor.
    """

    second_factor = forms.MultipleChoiceField(
        label="Roles that need a second factor", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(role.value, role.value) for role in Role],
    )  # fmt: skip
    ask_again = forms.MultipleChoiceField(
        label="Ask for it again before changes of", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(area.value, word) for area, word in AREAS.items()],
    )  # fmt: skip
    minutes = forms.IntegerField(
        label="Minutes for which a proof counts", min_value=1, max_value=LONGEST_MINUTES,
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
        help_text="Whoever showed their second factor within them is not asked again.",
    )  # fmt: skip
    reason = make_reason_field()
    version = forms.IntegerField(widget=forms.HiddenInput)

    def rules(self) -> SignInRules:
        """Return the rules as parsed by `read_rules`."""
        return read_rules(self.cleaned_data)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(asks=tuple(Area))
def sign_in_rules(request: PageRequest) -> HttpResponse:
    """Render the rules with their versions.

    A POST sets them; weaker rules wait for a second administrator.
    """
    check_scopes(request.member, Scope.ADMIN if request.method == "POST" else Scope.INSPECT)
    if request.method != "POST":
        return _render_sign_in_rules_page(request)
    form = RulesForm(request.POST)
    if not form.is_valid():
        return _render_sign_in_rules_page(request, form, status=422)
    wanted, given = form.rules(), form.cleaned_data
    if "sure" not in request.POST and _keeps_out(request, wanted):
        return _render_sign_in_rules_page(request, form, warned=True, status=409)
    try:
        found = ask_for_sign_in_rules(
            request.member.tenant.id, wanted, expected=given["version"], who=build_requester(request),
            reason=given["reason"],
        )  # fmt: skip
    except (Stale, ProposalOpen) as error:
        form.add_error(None, str(error))
        return _render_sign_in_rules_page(request, form, status=412 if isinstance(error, Stale) else 409)
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, "The rules hold from everybody's next request on.")
    return redirect("sign-in-rules")


def _keeps_out(request: PageRequest, wanted: SignInRules) -> bool:
    """Return whether the rules require a second factor of the member who sets them but has none."""
    if not wanted.concerns(request.member.roles, tuple(Area)):
        return False
    return not proof_of(request.session, request.member.person).enrolled


def _render_sign_in_rules_page(
    request: PageRequest, form: RulesForm | None = None, *, warned: bool = False, status: int = 200
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        now, versions = sign_in_rules_now(), sign_in_rules_versions()
        names = names_of([one.by for one in versions])
    blank = RulesForm(initial={**rules_document(now.rules), "version": now.version})
    context = {
        "now": now,
        "document": rules_document(now.rules),
        "versions": [{"set": one, **rules_document(one.rules)} for one in versions],
        "names": names,
        "form": form or blank,
        "warned": warned,
        "may_admin": request.member.may(Scope.ADMIN),
    }
    return render(request, "tenancy/sign_in_rules.html", context, status=status)
