"""Request and response bodies of the API for a tenant's people and keys (R-API-3)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from rest_framework import serializers

from tenancy.actions.keys import LONGEST_OVERLAP
from tenancy.actions.people import Limits, has_decide_scope
from tenancy.core.errors import InvalidInput
from tenancy.core.reach import MOST, KeyLimits, RunReach
from tenancy.core.relations import TieKind
from tenancy.core.roles import RISKS, Role
from tenancy.models import ApiKey, Membership
from tenancy.people.member_queries import FRESH_KEY_DOMAIN, PersonWithRoles
from tenancy.people.relations import Kinship
from tenancy.rest.serializer_fields import (
    Amount,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    format_timestamp,
)

ROLES = [(role.value, role.value) for role in Role]
REACHES = [(one.value, one.value) for one in RunReach]
OWNERS = [("me", "me"), ("nobody", "nobody")]
LONGEST_DAYS = 365
MOST_QUEUES = 50
LARGEST_LIMIT = 10**15 - 1


class LimitAmount(Amount):
    """An amount that a membership can be limited to: with at most two decimals."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.max_digits, self.decimal_places, self.max_whole_digits = 18, 2, 15


class RoleField(serializers.Serializer[Any]):
    """A role of a person. Of a role that decides, `queues` are those it decides in, `*` alone is every one
    and none is none; a null `max_amount` and an empty `max_risk` are no limit."""

    role = serializers.ChoiceField(choices=ROLES)
    queues = serializers.ListField(child=serializers.CharField())
    max_amount = serializers.CharField(allow_null=True)
    max_risk = serializers.CharField(allow_blank=True)
    decides = serializers.BooleanField()
    since = serializers.DateTimeField()


class RelationField(serializers.Serializer[Any]):
    """Why a person is related to another: `by` gave `person` a role or wider limits, or saw their
    first-password link. A null `until`: until an administrator related to neither confirms `person`."""

    kind = serializers.ChoiceField(choices=[(one.value, one.value) for one in TieKind])
    by = serializers.CharField()
    person = serializers.CharField()
    until = serializers.DateTimeField(allow_null=True)


class MemberField(serializers.Serializer[Any]):
    """A person of the tenant. `invited`: they have not set a password or signed in yet; `to_confirm`: the
    caller may confirm them; `awaits_confirmation`: they do nothing here before somebody does."""

    id = serializers.UUIDField()
    email = serializers.CharField()
    name = serializers.CharField()
    active = serializers.BooleanField()
    invited = serializers.BooleanField()
    last_signed_in_at = serializers.DateTimeField(allow_null=True)
    roles = RoleField(many=True)
    relations = RelationField(many=True)
    to_confirm = serializers.BooleanField()
    awaits_confirmation = serializers.BooleanField()


class LinkField(serializers.Serializer[Any]):
    """What became of the link for the first password: `mailed` to the person's own address, or `shown` once
    in `link`, which relates whoever sees it to the person. `none`: they sign in as before. The link is null
    where the answer is given a second time under its Idempotency-Key."""

    delivery = serializers.ChoiceField(choices=[(one, one) for one in ("mailed", "shown", "none")])
    link = serializers.CharField(allow_null=True)


class MemberMade(LinkField):
    """A person who was added, and their link."""

    member = MemberField()


class MemberLimitsBody(StrictSerializer):
    """How far the word of a role that decides reaches. Queues are named, or `*` alone for every one; without
    a queue it decides in none. A null amount and an empty risk class are no limit."""

    queues = serializers.ListField(
        child=StrictCharField(max_length=64), max_length=MOST_QUEUES, required=False, default=list
    )
    max_amount = LimitAmount(allow_null=True, required=False, default=None)
    max_risk = serializers.ChoiceField(
        choices=[(one, one) for one in RISKS], required=False, default="", allow_blank=True
    )
    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")


class RoleBody(MemberLimitsBody):
    """A role to give, and how far it reaches."""

    role = serializers.ChoiceField(choices=ROLES)


class InviteBody(RoleBody):
    """Somebody to add. Who is known already keeps name and password."""

    email = serializers.EmailField(max_length=254)
    name = StrictCharField(max_length=200)


class KeyField(serializers.Serializer[Any]):
    """A key, without its secret. `owner` is the person who answers for it, null where nobody does; `runs`
    says whose runs it reaches, `workflows` of which workflows (none: all), `addresses` from where it is used
    (none: from anywhere). Keys of one `principal` are one program: its runs go on through rotations."""

    id = serializers.UUIDField()
    principal = serializers.UUIDField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=ROLES)
    scopes = serializers.ListField(child=serializers.CharField())
    owner = serializers.UUIDField(allow_null=True)
    runs = serializers.ChoiceField(choices=REACHES)
    workflows = serializers.ListField(child=serializers.CharField())
    addresses = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class KeyMade(KeyField):
    """A new key with its secret, shown this once: null where the answer is given a second time under its
    Idempotency-Key, because the secret is kept nowhere in clear."""

    secret = serializers.CharField(allow_null=True)


class KeyBody(StrictSerializer):
    """A key to make. `owner`: `me` is the person who answers for the calling key, `nobody` fits no role that
    decides or administers. `expires_in_days` null: 90 days, or as long as the calling key lasts."""

    name = StrictCharField(max_length=200)
    role = serializers.ChoiceField(choices=ROLES)
    owner = serializers.ChoiceField(choices=OWNERS, required=False, default="nobody")
    runs = serializers.ChoiceField(choices=REACHES, allow_null=True, required=False, default=None)
    workflows = serializers.ListField(
        child=StrictCharField(max_length=64), max_length=MOST, required=False, default=list
    )
    addresses = serializers.ListField(
        child=StrictCharField(max_length=64), max_length=MOST, required=False, default=list
    )
    expires_in_days = StrictIntegerField(
        min_value=1, max_value=LONGEST_DAYS, allow_null=True, required=False, default=None
    )


class RotateBody(StrictSerializer):
    """How many hours the secret before stays good."""

    overlap_hours = StrictIntegerField(
        min_value=0, max_value=int(LONGEST_OVERLAP / timedelta(hours=1)), required=False, default=0
    )


def limits_of(body: Mapping[str, Any]) -> Limits:
    """Return the limits in a request body as the actions take them.

    Raises: InvalidInput if `*` is given together with other queues.
    """
    queues = tuple(dict.fromkeys(body["queues"]))
    if any("*" in one for one in queues) and queues != ("*",):
        detail = "* is every queue and stands alone."
        raise InvalidInput(errors=[{"pointer": "/queues", "code": "invalid", "detail": detail}])
    return Limits(queues=queues, max_amount=body["max_amount"], max_risk=body["max_risk"])


def key_limits_of(body: Mapping[str, Any]) -> KeyLimits:
    """Return the key limits in a request body as the actions take them."""
    runs = RunReach(body["runs"]) if body["runs"] else None
    return KeyLimits(runs, tuple(body["workflows"]), tuple(body["addresses"]))


def member_field(named: PersonWithRoles, kinship: Kinship) -> dict[str, Any]:
    """Return a person as the API represents one."""
    person = named.person
    return {
        "id": str(person.id), "email": person.email, "name": person.name, "active": person.is_active,
        "invited": named.is_invited, "last_signed_in_at": format_timestamp(person.last_login),
        "roles": [role_field(one) for one in named.members],
        "relations": [
            {"kind": tie.kind.value, "by": tie.by, "person": tie.person, "until": format_timestamp(tie.until)}
            for tie in kinship.ties
        ],
        "to_confirm": kinship.may_confirm and not named.is_invited,
        "awaits_confirmation": kinship.awaited,
    }  # fmt: skip


def role_field(member: Membership) -> dict[str, Any]:
    """Return a role of a person as the API represents it."""
    return {
        "role": member.role, "queues": list(member.queues),
        "max_amount": None if member.max_amount is None else str(member.max_amount),
        "max_risk": member.max_risk, "decides": has_decide_scope(Role(member.role)),
        "since": format_timestamp(member.created_at),
    }  # fmt: skip


def key_field(key: ApiKey) -> dict[str, Any]:
    """Return a key as the API represents it."""
    owner = key.principal.owner
    answers: UUID | None = None if owner.email.endswith(FRESH_KEY_DOMAIN) else owner.id
    return {
        "id": str(key.id), "principal": str(key.principal_id), "name": key.label, "role": key.role,
        "scopes": list(key.scopes), "owner": None if answers is None else str(answers), "runs": key.runs,
        "workflows": list(key.workflows), "addresses": list(key.addresses),
        "created_at": format_timestamp(key.created_at), "expires_at": format_timestamp(key.expires_at),
        "revoked_at": format_timestamp(key.revoked_at), "last_used_at": format_timestamp(key.last_used_at),
    }  # fmt: skip
