"""Browser sessions, known browsers, and failed sign-in attempts (R-SEC-11).

A person is the same in all tenants, so three of these tables belong to no tenant. The part of a session that
an administrator sees and ends is the one within the administrator's tenant: `TenantSession`, under row-level
security like all tables of a tenant.
"""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import LONGEST_MINUTES, Area
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_model import TenantOwned

BROWSER_LENGTH = 200


class BrowserSession(models.Model):
    """A browser's session.

    `digest` is the digest of the cookie's value, which is not stored. `person` is null until a person has
    signed in; `started_at` is the time of the sign-in.
    """

    id = models.UUIDField(primary_key=True, default=fresh_id)
    digest = models.BinaryField(max_length=32, unique=True)
    data = models.TextField()
    person = models.ForeignKey("tenancy.Person", on_delete=models.CASCADE, null=True, related_name="+")
    started_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=BROWSER_LENGTH, blank=True, default="")

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["last_seen_at"], name="browser_session_idle")
        ]


class TenantSession(TenantOwned):
    """A person's session within one tenant, from the first page view in that tenant.

    Once `ended_at` is set, the session has no effect in this tenant any more; in others it may continue.
    """

    session = models.ForeignKey(
        BrowserSession, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    person = models.ForeignKey("tenancy.Person", on_delete=models.PROTECT, related_name="+", db_index=False)
    began_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=BROWSER_LENGTH, blank=True, default="")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.UUIDField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "session"], name="tenant_session_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["session"], name="tenant_session_of"),
            models.Index(fields=["tenant", "person"], name="tenant_session_by_person"),
        ]


class KnownDevice(models.Model):
    """A browser in which a person has signed in.

    `digest` is the digest of the secret in the browser's cookie; people who share a browser have a row each.
    A forgotten browser is deleted.
    """

    id = models.UUIDField(primary_key=True, default=fresh_id)
    person = models.ForeignKey("tenancy.Person", on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField()
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=BROWSER_LENGTH, blank=True, default="")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["person", "digest"], name="known_device_once")
        ]


class FailedSignIn(models.Model):
    """A sign-in attempt that failed, or was refused without a check (`step` "refused").

    `account` is a digest of the name that was typed, keyed with the secret key; `person` is the person with
    that name, null if there is none. `source` is the address, an IPv6 address cut to its network. `device` is
    the known device of the attempt. The attempt counts against the limits until it is old or `lifted_at` is
    set.
    """

    id = models.UUIDField(primary_key=True, default=fresh_id)
    at = models.DateTimeField()
    step = models.CharField(max_length=8, choices=[(one, one) for one in ("password", "code", "refused")])
    account = models.BinaryField(max_length=32)
    person = models.ForeignKey("tenancy.Person", on_delete=models.CASCADE, null=True, related_name="+")
    source = models.CharField(max_length=45)
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=BROWSER_LENGTH, blank=True, default="")
    device = models.UUIDField(null=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(step__in=["password", "code", "refused"]), name="failed_sign_in_step_known"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["account", "at"], name="failed_sign_in_by_account"),
            models.Index(fields=["source", "at"], name="failed_sign_in_by_source"),
            models.Index(fields=["at"], name="failed_sign_in_by_time"),
        ]


class SignInRulesVersion(TenantOwned):
    """A tenant's sign-in rules; the newest version counts. Append-only.

    `second_factor` are the roles that need a second factor; `ask_again` are the areas of change before which
    the factor is asked for again if it was not shown within `minutes`. `agreed_by` is the second
    administrator of a loosening; `by` is null for a change by the operator at the machine.
    """

    version = models.PositiveIntegerField()
    second_factor = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    ask_again = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    minutes = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField(null=True)
    agreed_by = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "version"], name="sign_in_rules_once"),
            models.CheckConstraint(
                condition=models.Q(minutes__gte=1, minutes__lte=LONGEST_MINUTES),
                name="sign_in_rules_minutes_bounded",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    second_factor__contained_by=[role.value for role in Role],
                    ask_again__contained_by=[area.value for area in Area],
                ),
                name="sign_in_rules_known",
            ),
        ]
