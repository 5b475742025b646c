"""GET /tenant/people; inviting people, changing their limits and removing them (R-UI-9, R-SEC-1)."""

from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from tenancy.actions.confirmation import NothingToConfirm, NotSignedIn, RelatedToPerson, confirm_person
from tenancy.actions.people import (
    LastAdmin,
    Limits,
    change_limits,
    deactivate_person,
    hand_over_link,
    has_decide_scope,
    may_get_link,
    remove_role,
)
from tenancy.actions.people import invite_member as invite_person
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.core.roles import Role, Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Person
from tenancy.people.member_queries import count_admins
from tenancy.people.member_queries import list_people as found_people
from tenancy.people.relations import find_kinship
from tenancy.web.page_auth import PageRequest, redirect_unless_post, require_member, respond_with_problem

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
    """Form for the limits of a reviewer's decisions."""

    queues = forms.CharField(
        label="Queues",
        required=False,
        max_length=400,
        initial="*",
        help_text="Names with commas, or * for every queue. Without a name they decide in none.",
    )
    max_amount = forms.DecimalField(
        label="Up to the amount", required=False, min_value=0, max_digits=18, decimal_places=2,
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )  # fmt: skip
    max_risk = forms.ChoiceField(label="Up to the risk class", required=False, choices=RISKS)

    def clean_queues(self) -> str:
        """Check that each name has at most 64 characters and that `*` is the only name if given."""
        text: str = self.cleaned_data["queues"]
        names = [name.strip() for name in text.split(",") if name.strip()]
        if any("*" in name for name in names) and names != ["*"]:
            raise forms.ValidationError("* is every queue and stands alone.")
        if any(len(name.strip()) > 64 for name in text.split(",")):
            raise forms.ValidationError("A queue's name has at most 64 characters.")
        return text

    def limits(self) -> Limits:
        """Return the limits as the actions take them."""
        names = tuple(name.strip() for name in self.cleaned_data["queues"].split(",") if name.strip())
        amount: Decimal | None = self.cleaned_data["max_amount"]
        return Limits(queues=names, max_amount=amount, max_risk=self.cleaned_data["max_risk"])


class InviteForm(LimitsForm):
    """Form for an invitation: the person, the role and its limits."""

    email = forms.EmailField(label="E-mail address", max_length=254)
    name = forms.CharField(label="Name", max_length=200)
    role = forms.ChoiceField(label="Role", choices=[(role.value, word) for role, word in ROLES.items()])
    field_order = ["email", "name", "role", "queues", "max_amount", "max_risk"]


@require_safe
@require_member(Scope.INSPECT)
def show_people_page(request: PageRequest) -> HttpResponse:
    """Show the people of the tenant with their roles."""
    return _render_people_page(request)


@redirect_unless_post("people")
@require_member(Scope.ADMIN, asks=(Area.INVITATIONS,))
def submit_invitation(request: PageRequest) -> HttpResponse:
    """Add a person; a new person gets a link, shown once, that sets the password."""
    form, house = InviteForm(request.POST), request.member.tenant.id
    if not form.is_valid():
        return _render_people_page(request, form=form, status=422)
    given = form.cleaned_data
    try:
        invited = invite_person(
            house, given["email"], given["name"], Role(given["role"]), form.limits(),
            by=request.member.principal,
        )  # fmt: skip
    except InvalidInput as error:
        _add_faults(form, error)
        return _render_people_page(request, form=form, status=422)
    messages.success(request, f"{invited.person.name} is {given['role']} now.")
    if invited.member.awaits_confirmation:
        messages.warning(
            request,
            f"Somebody saw {invited.person.name}'s first-password link in another tenant: they do nothing "
            "here before you or another administrator confirm them.",
        )
    if invited.new:
        return _deliver_password_link(request, invited.person)
    return redirect("people")


@redirect_unless_post("people")
@require_member(Scope.ADMIN, asks=(Area.INVITATIONS,))
def submit_password_link(request: PageRequest, person_id: UUID) -> HttpResponse:
    """Issue a new link to a person who never used the previous one."""
    house = request.member.tenant.id
    with tenant_transaction(house):
        found = Person.objects.filter(id=person_id, memberships__tenant_id=house).distinct().first()
    if found is None or not may_get_link(house, found):
        raise NotFound
    return _deliver_password_link(request, found)


@redirect_unless_post("people")
@require_member(Scope.ADMIN, asks=(Area.INVITATIONS,))
def update_member_limits(request: PageRequest, member_id: UUID) -> HttpResponse:
    """Set the limits of one membership."""
    form = LimitsForm(request.POST)
    if not form.is_valid():
        return _render_people_page(request, faults={member_id: form}, status=422)
    try:
        change_limits(
            request.member.tenant.id,
            member_id,
            form.limits(),
            by=request.member.principal,
            reason=_read_reason(request),
        )
    except InvalidInput as error:
        _add_faults(form, error)
        return _render_people_page(request, faults={member_id: form}, status=422)
    messages.success(request, "The limits are set. They hold from the next decision on.")
    return redirect("people")


@redirect_unless_post("people")
@require_member(Scope.ADMIN, asks=(Area.INVITATIONS,))
def submit_role_removal(request: PageRequest, member_id: UUID) -> HttpResponse:
    """Remove one role from a person."""
    try:
        person = remove_role(
            request.member.tenant.id, member_id, by=request.member.principal, reason=_read_reason(request)
        )
    except LastAdmin as error:
        return respond_with_problem(request, error)
    messages.success(request, f"{person.name} has lost the role.")
    return redirect("people")


@redirect_unless_post("people")
@require_member(Scope.ADMIN, asks=(Area.INVITATIONS,))
def submit_person_deactivation(request: PageRequest, person_id: UUID) -> HttpResponse:
    """Remove every role from a person."""
    try:
        person = deactivate_person(
            request.member.tenant.id, person_id, by=request.member.principal, reason=_read_reason(request)
        )
    except LastAdmin as error:
        return respond_with_problem(request, error)
    messages.success(request, f"{person.name} has no role here any more.")
    return redirect("people")


@redirect_unless_post("people")
@require_member(Scope.ADMIN, asks=(Area.INVITATIONS,))
def submit_person_confirmation(request: PageRequest, person_id: UUID) -> HttpResponse:
    """Confirm that a person whose link was seen controls their account."""
    try:
        confirm_person(
            request.member.tenant.id, person_id, by=request.member.principal, reason=_read_reason(request)
        )
    except (RelatedToPerson, NotSignedIn, NothingToConfirm) as error:
        return respond_with_problem(request, error)
    messages.success(request, "The person is confirmed.")
    return redirect("people")


def _add_faults(form: LimitsForm, error: InvalidInput) -> None:
    for fault in error.data["errors"]:
        form.add_error(fault["pointer"].split("/")[1], fault["detail"])


def _read_reason(request: PageRequest) -> str:
    return request.POST.get("reason", "").strip()[:500]


def _deliver_password_link(request: PageRequest, person: Person) -> HttpResponse:
    """Mail the link to the person's own address where mail is set up; otherwise show it, with a record."""
    house, by = request.member.tenant.id, request.member.principal
    path = hand_over_link(house, person, by=by, origin=request.build_absolute_uri("/").rstrip("/"))
    if not path:
        messages.success(request, f"A link that sets the password is on its way to {person.email}.")
        return redirect("people")
    return _render_people_page(request, shown={"person": person, "address": request.build_absolute_uri(path)})


def _render_people_page(
    request: PageRequest,
    *,
    form: InviteForm | None = None,
    faults: Mapping[UUID, LimitsForm] | None = None,
    shown: Mapping[str, object] | None = None,
    status: int = 200,
) -> HttpResponse:
    house = request.member.tenant.id
    with tenant_transaction(house):
        rows = found_people()
        me, alone = request.member, count_admins() == 1
        kinship = find_kinship(me.principal, me.owner, [row.person.id for row in rows])
        context = {
            "rows": [
                {
                    "named": row,
                    "members": [
                        {
                            "row": member,
                            "form": (faults or {}).get(member.id) or _build_limits_form(member),
                            "decides": has_decide_scope(Role(member.role)),
                            "opened": member.id in (faults or {}),
                        }
                        for member in row.members
                    ],
                    "ties": kinship[row.person.id].ties,
                    "awaited": kinship[row.person.id].awaited,
                    "confirm": kinship[row.person.id].may_confirm and not row.is_invited,
                    "keeps": alone and any(_acts_as_admin(one) for one in row.members),
                    "link": row.is_invited and may_get_link(house, row.person),
                }
                for row in rows
            ],
            "last": alone,
            "form": form or InviteForm(),
            "roles": ROLES,
            "mailed": settings.INTERLOCK_SENDS_MAIL,
            "shown": shown,
            "may_admin": request.member.may(Scope.ADMIN),
            "me": request.member.person.id,
        }
        return render(request, "tenancy/people.html", context, status=status)


def _acts_as_admin(member: Membership) -> bool:
    return member.role == Role.ADMIN.value and not member.awaits_confirmation


def _build_limits_form(member: Membership) -> LimitsForm:
    given = {"queues": ", ".join(member.queues), "max_amount": member.max_amount, "max_risk": member.max_risk}
    return LimitsForm(initial=given, auto_id=f"id_{member.id}_%s")
