"""Tenants, their people and keys, and the audit log of administrators (R-SEC-1, R-SEC-2, R-SEC-6)."""

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenancy import platform_models as platform_models
from tenancy.core.reach import RunReach
from tenancy.core.relations import TieKind
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_model import OutgoingLetter as OutgoingLetter
from tenancy.db.tenant_model import Tenant as Tenant
from tenancy.db.tenant_model import TenantOwned as TenantOwned
from tenancy.queue_models import Queue as Queue
from tenancy.sign_in_models import BrowserSession as BrowserSession
from tenancy.sign_in_models import FailedSignIn as FailedSignIn
from tenancy.sign_in_models import KnownDevice as KnownDevice
from tenancy.sign_in_models import SignInRulesVersion as SignInRulesVersion
from tenancy.sign_in_models import TenantSession as TenantSession


class People(BaseUserManager["Person"]):
    """People by e-mail."""

    def get_by_natural_key(self, username: str | None) -> "Person":
        """Return the person with this e-mail address, ignoring case."""
        return self.get(email__iexact=username)


class Person(AbstractBaseUser):
    """A person who can sign in; the person's memberships define the permissions."""

    id = models.UUIDField(primary_key=True, default=fresh_id)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=200)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = People()
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name"]


class Membership(TenantOwned):
    """One role of a person in a tenant. Limits narrow a reviewer's decisions: `queues` names open ones, `*`
    is every one, empty is none; None and "" are no limit. One that `awaits_confirmation` gives no right yet:
    another user saw the person's first-password link in another tenant."""

    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    queues = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    max_amount = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    max_risk = models.CharField(max_length=16, blank=True)
    awaits_confirmation = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "person", "role"], name="membership_once"),
            models.CheckConstraint(
                condition=~models.Q(queues__contains=["*"]) | models.Q(queues=["*"]),
                name="membership_every_queue_alone",
            ),
        ]


class Principal(TenantOwned):
    """A person or a key that acts in a tenant. `owner` is the person who is responsible for it."""

    kind = models.CharField(max_length=8, choices=[("person", "person"), ("key", "key")])
    owner = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="principals")
    label = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "owner"], condition=models.Q(kind="person"), name="principal_once_a_person"
            ),
        ]


class ApiKey(TenantOwned):
    """A key of a service principal. The secret is shown once and stored hashed; rows are never deleted. A
    principal has several keys after a rotation. `runs` says whose runs the key reaches, `workflows` of which
    workflows (patterns; none: all), `addresses` from where it may be used (ranges; none: from anywhere). The
    three never change (R-SEC-11)."""

    principal = models.ForeignKey(
        Principal, on_delete=models.PROTECT, related_name="keys", db_constraint=False
    )
    label = models.CharField(max_length=200)
    role = models.CharField(max_length=16)
    scopes = ArrayField(models.CharField(max_length=16))
    secret_hash = models.BinaryField(max_length=32)
    runs = models.CharField(max_length=8, choices=[(one.value, one.value) for one in RunReach])
    workflows = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    addresses = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.CheckConstraint(
                condition=models.Q(runs__in=[one.value for one in RunReach]), name="key_runs_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(scopes__contains=["admin"]) | models.Q(runs="tenant", workflows=[]),
                name="key_admin_of_all",
            ),
        ]


class PersonTie(TenantOwned):
    """Why two people are related: `by` gave `person` a role or saw the person's first-password link. Or why
    the relation ended: `by` confirmed `person` (tenancy/core/relations.py). Append-only."""

    kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in TieKind])
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in TieKind]), name="person_tie_known"
            ),
            models.CheckConstraint(condition=~models.Q(person=models.F("by")), name="person_tie_of_two"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "kind", "at"], name="person_tie_by_time")
        ]


class KeyMaker(TenantOwned):
    """A person who was shown a key's secret. The key's acts count as that person's too, in addition to those
    of the owner. Append-only."""

    principal = models.ForeignKey(
        Principal, on_delete=models.PROTECT, related_name="makers", db_constraint=False, db_index=False
    )
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "principal", "person"], name="key_maker_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "person"], name="key_maker_by_person")
        ]


class AuditEntry(TenantOwned):
    """One administrative change (R-SEC-6). `platform`: made by a platform administrator, whose name the
    tenant does not know. Append-only."""

    principal = models.UUIDField(null=True)
    verb = models.CharField(max_length=64)
    object = models.CharField(max_length=200)
    before = models.JSONField()
    after = models.JSONField()
    reason = models.CharField(max_length=1000, blank=True)
    at = models.DateTimeField(auto_now_add=True)
    platform = models.BooleanField(default=False)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.CheckConstraint(
                condition=models.Q(platform=False) | models.Q(principal=None), name="audit_platform_unnamed"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["tenant", "-at"], name="audit_newest")]


class IdempotencyKey(TenantOwned):
    """The response to a POST with an Idempotency-Key. `status` is null while the first request is processed,
    by the process that holds `process_lock` (tenancy/db/process_lock.py; null: no lock). `path` may be a
    digest (tenancy/rest/idempotency.py). `answer` is JSON as text: PostgreSQL's own JSON rejects a NUL, and a
    completed act must be answered."""

    principal = models.UUIDField()
    key = models.CharField(max_length=255)
    path = models.CharField(max_length=255)
    body_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(null=True)  # noqa: DJ001 - null: not answered yet
    process_lock = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "principal", "path", "key"], name="idempotency_once"),
        ]


class Secret(TenantOwned):
    """A sealed secret for one origin (R-SEC-4). Replaced, never edited; `sealed` is never shown. A secret
    with `expires_at` may say how to get a new one: `renews_at` is the address of a token endpoint, `renewal`
    the request to it, sealed as well (R-TOOL-13)."""

    name = models.CharField(max_length=64)
    origin = models.CharField(max_length=300)
    sealed = models.BinaryField()
    created_by = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    renews_at = models.CharField(max_length=2_000, blank=True, default="")
    renewal = models.BinaryField(default=b"")

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=models.Q(revoked_at__isnull=True), name="secret_once"
            ),
        ]


class Webhook(TenantOwned):
    """A tenant's endpoint that is notified of events (R-API-6). Its URL never changes. `sealed` is the
    signing secret; after a rotation the previous one signs too, until `before_until`. `failing_since` is when
    the first attempt failed after the last success. Once `off_at` is set nothing is sent; `told_at` is when
    administrators were notified of that."""

    name = models.CharField(max_length=80)
    url = models.CharField(max_length=2_000)
    origin = models.CharField(max_length=300)
    events = ArrayField(models.CharField(max_length=32))
    sealed = models.BinaryField()
    sealed_before = models.BinaryField(null=True)
    before_until = models.DateTimeField(null=True)
    created_by = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    failing_since = models.DateTimeField(null=True)
    off_at = models.DateTimeField(null=True)
    off_why = models.CharField(max_length=300, blank=True, default="")
    tell_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=models.Q(removed_at=None), name="webhook_once"
            ),
        ]


class WebhookMessage(TenantOwned):
    """One event, as the bytes that every endpoint gets. Its id is the message's. Never changed;
    `forget_webhooks` removes it with its last delivery."""

    kind = models.CharField(max_length=32)
    subject = models.CharField(max_length=100)
    body = models.BinaryField()
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "kind", "subject"], name="webhook_message_once"),
        ]


class WebhookDelivery(TenantOwned):
    """Delivery of a message to one endpoint. `tries` counts since it was written or replayed, `attempts`
    counts all."""

    webhook = models.ForeignKey(
        Webhook, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    message = models.ForeignKey(
        WebhookMessage, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    state = models.CharField(
        max_length=10, choices=[(one, one) for one in ("waiting", "delivered", "failed")], default="waiting"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "webhook", "message"], name="webhook_delivery_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "delivered", "failed"]), name="webhook_state_known"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["next_at"], condition=models.Q(state="waiting"), name="webhook_due"),
            models.Index(fields=["tenant", "webhook", "-created_at"], name="webhook_log"),
            models.Index(
                fields=["tenant", "done_at"], condition=~models.Q(state="waiting"), name="webhook_done"
            ),
            models.Index(fields=["tenant", "message"], name="webhook_of_message"),
        ]


class WebhookAttempt(TenantOwned):
    """One delivery attempt and its result. Never changed; deleted with its delivery. `status` is the
    response's, or null for no response, with the reason in `error`. Of a response only the `length` in bytes
    is kept, as far as it was read: null without a response, or if not counted yet."""

    delivery = models.ForeignKey(
        WebhookDelivery, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    number = models.PositiveIntegerField()
    at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=300, blank=True, default="")
    length = models.PositiveIntegerField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "delivery", "number"], name="webhook_attempt_once"),
        ]


class WebhookKeeping(TenantOwned):
    """Retention of webhook messages in days; the newest version counts. Append-only."""

    version = models.PositiveIntegerField()
    days = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "version"], name="webhook_keeping_once"),
            models.CheckConstraint(
                condition=models.Q(days__gte=1, days__lte=3_650), name="webhook_keeping_bounded"
            ),
        ]


class Notice(TenantOwned):
    """A notification for people of the tenant, once per subject. `data` comes from this system only.
    Append-only."""

    kind = models.CharField(max_length=32)
    subject = models.CharField(max_length=100)
    data = models.JSONField()
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "kind", "subject"], name="notice_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "kind", "-at"], name="notice_newest")
        ]


class NoticeMail(OutgoingLetter):
    """A mail about a notice to one of its recipients."""

    notice = models.ForeignKey(
        Notice, on_delete=models.PROTECT, related_name="mails", db_constraint=False, db_index=False
    )

    class Meta(OutgoingLetter.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "notice", "person_id"], name="notice_mail_once_a_person"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["next_at"], condition=models.Q(sent_at=None), name="notice_mail_due")
        ]
