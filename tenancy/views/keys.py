"""GET and POST /tenant/keys: keys for programs, shown once (R-SEC-2, R-SEC-11, R-UI-9)."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from tenancy.actions import revoke_key
from tenancy.actions.keys import make_key, may_rotate, rotate_key
from tenancy.core.errors import InvalidInput
from tenancy.core.reach import KeyLimits, RunReach
from tenancy.core.roles import SCOPES, Role, Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey
from tenancy.people.member_queries import FRESH_KEY_DOMAIN
from tenancy.people.member_queries import list_api_keys as found_keys
from tenancy.web.page_auth import PageRequest, check_scopes, redirect_unless_post, require_member

LIVES = (("1", "a day"), ("7", "a week"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"))


OVERLAPS = (("0", "at once"), ("1", "in an hour"), ("24", "in a day"), ("168", "in a week"))


class KeyForm(forms.Form):
    """A key's name, rights, life, limits, and who answers for it."""

    label = forms.CharField(label="Name", max_length=200, help_text="What uses it.")
    role = forms.ChoiceField(
        label="Role",
        choices=[
            (role.value, f"{role.value}: {', '.join(scope.value for scope in SCOPES[role])}") for role in Role
        ],
        initial=Role.CLIENT.value,
    )
    days = forms.ChoiceField(label="Expires in", choices=LIVES, initial="90")
    owner = forms.ChoiceField(
        label="Who answers for it",
        choices=[
            ("fresh", "nobody else: a reviewer who is not related to you decides about its runs"),
            ("me", "I do"),
        ],
        help_text="You see its secret, so you cannot decide about its runs. One that you answer for never"
        " reaches further than you do.",
    )
    runs = forms.ChoiceField(
        label="Which runs it reaches",
        required=False,
        choices=[("", "as its role: a client its own, others all"), ("own", "its own"), ("tenant", "all")],
    )
    workflows = forms.CharField(
        label="Workflows", required=False, max_length=1_500,
        help_text="Names or patterns such as support-*, with commas; none: every workflow.",
    )  # fmt: skip
    addresses = forms.CharField(
        label="Addresses", required=False, max_length=1_500,
        help_text="Ranges such as 10.1.0.0/16, with commas; none: from anywhere.",
    )  # fmt: skip

    def limits(self) -> KeyLimits:
        """As the verb takes them."""
        runs = self.cleaned_data["runs"]
        return KeyLimits(
            RunReach(runs) if runs else None,
            _split_comma_list(self.cleaned_data["workflows"]),
            _split_comma_list(self.cleaned_data["addresses"]),
        )


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(asks=(Area.KEYS,))
def show_keys_page(request: PageRequest) -> HttpResponse:
    """The tenant's keys. A POST makes one and shows it, this once."""
    check_scopes(request.member, Scope.ADMIN if request.method == "POST" else Scope.INSPECT)
    if request.method != "POST":
        return _render_keys_page(request)
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _render_keys_page(request, form=form, status=422)
    given = form.cleaned_data
    try:
        made = make_key(
            request.member.tenant.id, Role(given["role"]), label=given["label"],
            answers=given["owner"] == "me", expires_in=timedelta(days=int(given["days"])),
            limits=form.limits(), by=request.member.principal,
        )  # fmt: skip
    except InvalidInput as error:
        for fault in error.data["errors"]:
            form.add_error(fault["pointer"].removeprefix("/"), fault["detail"])
        return _render_keys_page(request, form=form, status=422)
    return _render_keys_page(request, made={"key": made.key, "clear": made.clear})


@redirect_unless_post("keys")
@require_member(Scope.ADMIN, asks=(Area.KEYS,))
def submit_key_rotation(request: PageRequest, key_id: UUID) -> HttpResponse:
    """A new secret for a key's principal, shown this once. Raises NotFound, KeyGone, RoleLacking,
    Forbidden."""
    hours = request.POST.get("overlap", "0")
    overlap = timedelta(hours=int(hours) if hours in dict(OVERLAPS) else 0)
    made = rotate_key(request.member.tenant.id, key_id, overlap=overlap, by=request.member.principal)
    return _render_keys_page(request, made={"key": made.key, "clear": made.clear})


@redirect_unless_post("keys")
@require_member(Scope.ADMIN, asks=(Area.KEYS,))
def submit_key_revocation(request: PageRequest, key_id: UUID) -> HttpResponse:
    """Revoke a key; its row stays. Raises NotFound."""
    revoke_key(request.member.tenant.id, key_id, by=request.member.principal)
    messages.success(request, "The key is revoked. What it submitted changes nothing any more.")
    return redirect("keys")


def _render_keys_page(
    request: PageRequest,
    *,
    form: KeyForm | None = None,
    made: Mapping[str, object] | None = None,
    status: int = 200,
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        now = database_now()
        rows = [
            {
                "key": key,
                "state": _describe_key_state(
                    key, expired=key.expires_at is not None and key.expires_at <= now
                ),
                "owner": ""
                if key.principal.owner.email.endswith(FRESH_KEY_DOMAIN)
                else key.principal.owner.name,
                "rotates": may_rotate(key, key.principal.owner_id, request.member.owner),
            }
            for key in found_keys()
        ]
        context = {
            "rows": rows,
            "form": form or KeyForm(),
            "made": made,
            "overlaps": OVERLAPS,
            "may_admin": request.member.may(Scope.ADMIN),
            "origin": request.build_absolute_uri("/").rstrip("/"),
        }
        return render(request, "tenancy/keys.html", context, status=status)


def _split_comma_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _describe_key_state(key: ApiKey, *, expired: bool) -> str:
    return "revoked" if key.revoked_at is not None else "expired" if expired else "valid"
