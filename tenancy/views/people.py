"""GET /tenant/people; inviting, limiting and removing (R-UI-9, R-SEC-1)."""

from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from tenancy.actions.people import Limits, change_limits, may_get_link, note_link, remove_role
from tenancy.actions.people import invite as invite_person
from tenancy.context import tenant
from tenancy.core.errors import InterlockError, InvalidInput, NotFound
from tenancy.core.roles import SCOPES, Role, Scope
from tenancy.directory import admins
from tenancy.directory import people as found_people
from tenancy.models import Membership, Person
from tenancy.pages import PageRequest, page, posted, problem

ROLES = {
    Role.OPERATOR: "operator: submits, pauses, resumes and cancels",
    Role.REVIEWER: "reviewer: decides what runs ask",
    Role.ADMIN: "admin: everything, and who may do what",
    Role.AUDITOR: "auditor: only looks",
    Role.CLIENT: "client: submits and reads",
}
RISKS = (
    ("", "No limit"),
    ("read_only", "reads only"),
    ("local_write", "changes what can be undone here"),
    ("network", "has an effect outside"),
    ("delegated", "acts in somebody's name"),
    ("destructive", "moves money or cannot be taken back"),
)


class LimitsForm(forms.Form):
    """How far a reviewer's word reaches."""

    queues = forms.CharField(
        label="Queues", required=False, max_length=400, help_text="Names with commas; none: every queue."
    )
    max_amount = forms.DecimalField(
        label="Up to the amount", required=False, min_value=0, max_digits=18, decimal_places=2,
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )  # fmt: skip
    max_risk = forms.ChoiceField(label="Up to the risk class", required=False, choices=RISKS)

    def clean_queues(self) -> str:
        """Each name at most 64 characters."""
        text: str = self.cleaned_data["queues"]
        if any(len(name.strip()) > 64 for name in text.split(",")):
            raise forms.ValidationError("A queue's name has at most 64 characters.")
        return text

    def limits(self) -> Limits:
        """As the verbs take them."""
        names = tuple(name.strip() for name in self.cleaned_data["queues"].split(",") if name.strip())
        amount: Decimal | None = self.cleaned_data["max_amount"]
        return Limits(queues=names, max_amount=amount, max_risk=self.cleaned_data["max_risk"])


class InviteForm(LimitsForm):
    """Who, as what, and how far."""

    email = forms.EmailField(label="E-mail address", max_length=254)
    name = forms.CharField(label="Name", max_length=200)
    role = forms.ChoiceField(label="Role", choices=[(role.value, word) for role, word in ROLES.items()])
    field_order = ["email", "name", "role", "queues", "max_amount", "max_risk"]


@require_safe
@page(Scope.INSPECT)
def people(request: PageRequest) -> HttpResponse:
    """Who belongs to the tenant, and as what."""
    return _shown(request)


@posted("people")
@page(Scope.ADMIN)
def invite(request: PageRequest) -> HttpResponse:
    """Add somebody; who is new gets a link, shown once, that sets their password."""
    form, house = InviteForm(request.POST), request.member.tenant.id
    if not form.is_valid():
        return _shown(request, form=form, status=422)
    given = form.cleaned_data
    try:
        invited = invite_person(
            house, given["email"], given["name"], Role(given["role"]), form.limits(),
            by=request.member.principal,
        )  # fmt: skip
    except InvalidInput as error:
        fault = error.data["errors"][0]
        form.add_error(fault["pointer"].removeprefix("/"), fault["detail"])
        return _shown(request, form=form, status=422)
    messages.success(request, f"{invited.person.name} is {given['role']} now.")
    if invited.new:
        return _linked(request, invited.person)
    return redirect("people")


@posted("people")
@page(Scope.ADMIN)
def link(request: PageRequest, person_id: UUID) -> HttpResponse:
    """A new link for somebody who never used theirs."""
    house = request.member.tenant.id
    with tenant(house):
        found = Person.objects.filter(id=person_id, memberships__tenant_id=house).distinct().first()
    if found is None or not may_get_link(house, found):
        raise NotFound
    return _linked(request, found)


@posted("people")
@page(Scope.ADMIN)
def limits(request: PageRequest, member_id: UUID) -> HttpResponse:
    """Set how far one membership reaches."""
    form = LimitsForm(request.POST)
    if not form.is_valid():
        return _shown(request, faults={member_id: form}, status=422)
    change_limits(
        request.member.tenant.id,
        member_id,
        form.limits(),
        by=request.member.principal,
        reason=_reason(request),
    )
    messages.success(request, "The limits are set. They hold from the next decision on.")
    return redirect("people")


@posted("people")
@page(Scope.ADMIN)
def remove(request: PageRequest, member_id: UUID) -> HttpResponse:
    """Take a role from somebody."""
    try:
        person = remove_role(
            request.member.tenant.id, member_id, by=request.member.principal, reason=_reason(request)
        )
    except InterlockError as error:
        if error.code != "last-admin":
            raise
        return problem(request, error)
    messages.success(request, f"{person.name} has lost the role.")
    return redirect("people")


def _reason(request: PageRequest) -> str:
    return request.POST.get("reason", "").strip()[:500]


def _linked(request: PageRequest, person: Person) -> HttpResponse:
    note_link(request.member.tenant.id, person, by=request.member.principal)
    key = {"uidb36": user_pk_to_url_str(person), "key": default_token_generator.make_token(person)}
    address = request.build_absolute_uri(reverse("account_reset_password_from_key", kwargs=key))
    return _shown(request, shown={"person": person, "address": address})


def _shown(
    request: PageRequest,
    *,
    form: InviteForm | None = None,
    faults: Mapping[UUID, LimitsForm] | None = None,
    shown: Mapping[str, object] | None = None,
    status: int = 200,
) -> HttpResponse:
    house = request.member.tenant.id
    with tenant(house):
        rows = found_people()
        context = {
            "rows": [
                {
                    "named": row,
                    "members": [
                        {
                            "row": member,
                            "form": (faults or {}).get(member.id) or _form(member),
                            "decides": decides,
                            "opened": member.id in (faults or {}),
                        }
                        for member in row.members
                        for decides in [Scope.DECIDE in SCOPES[Role(member.role)]]
                    ],
                    "link": row.invited and may_get_link(house, row.person),
                }
                for row in rows
            ],
            "last": admins() == 1,
            "form": form or InviteForm(),
            "roles": ROLES,
            "shown": shown,
            "may_admin": request.member.may(Scope.ADMIN),
            "me": request.member.person.id,
        }
        return render(request, "tenancy/people.html", context, status=status)


def _form(member: Membership) -> LimitsForm:
    given = {"queues": ", ".join(member.queues), "max_amount": member.max_amount, "max_risk": member.max_risk}
    return LimitsForm(initial=given, auto_id=f"id_{member.id}_%s")
