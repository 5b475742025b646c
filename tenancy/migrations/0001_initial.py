"""Tables of people, tenants, keys, sessions, secrets, webhooks and notices."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import tenancy.db.ids
from django.conf import settings
from django.db import migrations, models

from tenancy.db.migration_operations import MadeTogether


class Migration(MadeTogether):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Person",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("email", models.EmailField(max_length=254, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("slug", models.SlugField(unique=True)),
                ("name", models.CharField(max_length=200)),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                ("tier", models.CharField(default="standard", max_length=32)),
                ("highest_autonomy_tier", models.PositiveSmallIntegerField(default=6)),
                ("suspended_at", models.DateTimeField(null=True)),
                ("suspended_reason", models.CharField(blank=True, default="", max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("highest_autonomy_tier__range", (1, 7))),
                        name="tenant_autonomy_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("principal", models.UUIDField(null=True)),
                ("verb", models.CharField(max_length=64)),
                ("object", models.CharField(max_length=200)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                ("reason", models.CharField(blank=True, max_length=1000)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("platform", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "-at"], name="audit_newest")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_auditentry_of_tenant"),
                    models.CheckConstraint(
                        condition=models.Q(("platform", False), ("principal", None), _connector="OR"),
                        name="audit_platform_unnamed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BrowserSession",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("data", models.TextField()),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
            ],
            options={
                "indexes": [models.Index(fields=["last_seen_at"], name="browser_session_idle")],
            },
        ),
        migrations.CreateModel(
            name="FailedSignIn",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                (
                    "step",
                    models.CharField(
                        choices=[("password", "password"), ("code", "code"), ("refused", "refused")],
                        max_length=8,
                    ),
                ),
                ("account", models.BinaryField(max_length=32)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("source", models.CharField(max_length=45)),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
                ("device", models.UUIDField(null=True)),
                ("lifted_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["account", "at"], name="failed_sign_in_by_account"),
                    models.Index(fields=["source", "at"], name="failed_sign_in_by_source"),
                    models.Index(fields=["at"], name="failed_sign_in_by_time"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("step__in", ["password", "code", "refused"])),
                        name="failed_sign_in_step_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("principal", models.UUIDField()),
                ("key", models.CharField(max_length=255)),
                ("path", models.CharField(max_length=255)),
                ("body_digest", models.BinaryField(max_length=32)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.TextField(null=True)),
                ("process_lock", models.BigIntegerField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_idempotencykey_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "principal", "path", "key"), name="idempotency_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KnownDevice",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("digest", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField()),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("person", "digest"), name="known_device_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("operator", "operator"),
                            ("reviewer", "reviewer"),
                            ("admin", "admin"),
                            ("auditor", "auditor"),
                            ("client", "client"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "queues",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("max_amount", models.DecimalField(decimal_places=2, max_digits=18, null=True)),
                ("max_risk", models.CharField(blank=True, max_length=16)),
                ("awaits_confirmation", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_membership_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "person", "role"), name="membership_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("queues__contains", ["*"]), _negated=True),
                            ("queues", ["*"]),
                            _connector="OR",
                        ),
                        name="membership_every_queue_alone",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=100)),
                ("data", models.JSONField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "kind", "-at"], name="notice_newest")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_notice_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "kind", "subject"), name="notice_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="NoticeMail",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("person_id", models.UUIDField()),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, default="", max_length=200)),
                (
                    "notice",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mails",
                        to="tenancy.notice",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("sent_at", None)), fields=["next_at"], name="notice_mail_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_noticemail_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "notice", "person_id"), name="notice_mail_once_a_person"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PersonTie",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("role_given", "role_given"),
                            ("link_seen", "link_seen"),
                            ("confirmed", "confirmed"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "kind", "at"], name="person_tie_by_time")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_persontie_of_tenant"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["role_given", "link_seen", "confirmed"])),
                        name="person_tie_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("person", models.F("by")), _negated=True),
                        name="person_tie_of_two",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlatformAdmin",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="PlatformEntry",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("key", models.UUIDField(null=True)),
                ("verb", models.CharField(max_length=64)),
                ("object", models.CharField(max_length=200)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                ("reason", models.CharField(blank=True, max_length=1000)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-at", "-id"], name="platform_newest"),
                    models.Index(fields=["object", "-at"], name="platform_by_object"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("key", None), ("person__isnull", False), _connector="OR"),
                        name="platform_key_of_person",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PlatformKey",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("label", models.CharField(max_length=200)),
                ("secret_hash", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="PlatformAnswer",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "api_key",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.platformkey",
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("path", models.CharField(max_length=255)),
                ("body_digest", models.BinaryField(max_length=32)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.TextField(blank=True, default="")),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("api_key", "path", "key"), name="platform_answer_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Principal",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=[("person", "person"), ("key", "key")], max_length=8)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="principals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("label", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_principal_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "person")),
                        fields=("tenant", "owner"),
                        name="principal_once_a_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "principal",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="keys",
                        to="tenancy.principal",
                    ),
                ),
                ("label", models.CharField(max_length=200)),
                ("role", models.CharField(max_length=16)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), size=None
                    ),
                ),
                ("secret_hash", models.BinaryField(max_length=32)),
                ("runs", models.CharField(choices=[("own", "own"), ("tenant", "tenant")], max_length=8)),
                (
                    "workflows",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                (
                    "addresses",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_apikey_of_tenant"),
                    models.CheckConstraint(
                        condition=models.Q(("runs__in", ["own", "tenant"])), name="key_runs_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scopes__contains", ["admin"]), _negated=True),
                            models.Q(("runs", "tenant"), ("workflows", [])),
                            _connector="OR",
                        ),
                        name="key_admin_of_all",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KeyMaker",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "principal",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="makers",
                        to="tenancy.principal",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["tenant", "person"], name="key_maker_by_person")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_keymaker_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "principal", "person"), name="key_maker_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64)),
                ("description", models.CharField(blank=True, default="", max_length=300)),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                ("closed_by", models.UUIDField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_queue_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "name"), name="queue_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("closed_at__isnull", False), ("closed_by", None), _connector="OR"
                        ),
                        name="queue_closed_by_somebody_has_a_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Secret",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64)),
                ("origin", models.CharField(max_length=300)),
                ("sealed", models.BinaryField()),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("renews_at", models.CharField(blank=True, default="", max_length=2000)),
                ("renewal", models.BinaryField(default=b"")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_secret_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at__isnull", True)),
                        fields=("tenant", "name"),
                        name="secret_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SignInRulesVersion",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                (
                    "second_factor",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), blank=True, default=list, size=None
                    ),
                ),
                (
                    "ask_again",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), blank=True, default=list, size=None
                    ),
                ),
                ("minutes", models.PositiveSmallIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("agreed_by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="tenancy_signinrulesversion_of_tenant"
                    ),
                    models.UniqueConstraint(fields=("tenant", "version"), name="sign_in_rules_once"),
                    models.CheckConstraint(
                        condition=models.Q(("minutes__gte", 1), ("minutes__lte", 1440)),
                        name="sign_in_rules_minutes_bounded",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ask_again__contained_by", ["money", "keys", "invitations"]),
                            (
                                "second_factor__contained_by",
                                ["operator", "reviewer", "admin", "auditor", "client"],
                            ),
                        ),
                        name="sign_in_rules_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TenantSession",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "session",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenancy.browsersession",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("began_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.UUIDField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["session"], name="tenant_session_of"),
                    models.Index(fields=["tenant", "person"], name="tenant_session_by_person"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_tenantsession_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "session"), name="tenant_session_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=80)),
                ("url", models.CharField(max_length=2000)),
                ("origin", models.CharField(max_length=300)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), size=None
                    ),
                ),
                ("sealed", models.BinaryField()),
                ("sealed_before", models.BinaryField(null=True)),
                ("before_until", models.DateTimeField(null=True)),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("failing_since", models.DateTimeField(null=True)),
                ("off_at", models.DateTimeField(null=True)),
                ("off_why", models.CharField(blank=True, default="", max_length=300)),
                ("tell_at", models.DateTimeField(null=True)),
                ("told_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhook_of_tenant"),
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at", None)),
                        fields=("tenant", "name"),
                        name="webhook_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookKeeping",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("days", models.PositiveSmallIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhookkeeping_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "version"), name="webhook_keeping_once"),
                    models.CheckConstraint(
                        condition=models.Q(("days__gte", 1), ("days__lte", 3650)),
                        name="webhook_keeping_bounded",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookMessage",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=100)),
                ("body", models.BinaryField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhookmessage_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "kind", "subject"), name="webhook_message_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.webhook",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.webhookmessage",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("delivered", "delivered"), ("failed", "failed")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["next_at"], name="webhook_due"
                    ),
                    models.Index(fields=["tenant", "webhook", "-created_at"], name="webhook_log"),
                    models.Index(
                        condition=models.Q(("state", "waiting"), _negated=True),
                        fields=["tenant", "done_at"],
                        name="webhook_done",
                    ),
                    models.Index(fields=["tenant", "message"], name="webhook_of_message"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="tenancy_webhookdelivery_of_tenant"
                    ),
                    models.UniqueConstraint(
                        fields=("tenant", "webhook", "message"), name="webhook_delivery_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "delivered", "failed"])),
                        name="webhook_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookAttempt",
            fields=[
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                (
                    "delivery",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.webhookdelivery",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("milliseconds", models.PositiveIntegerField()),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, default="", max_length=300)),
                ("length", models.PositiveIntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhookattempt_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "delivery", "number"), name="webhook_attempt_once"
                    ),
                ],
            },
        ),
    ]
