"""Tables of tasks, runs, versions, tools, memory, reviews and model turns."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.text
import tenancy.db.ids
from django.db import migrations, models

from tenancy.db.migration_operations import MadeTogether


class Migration(MadeTogether):
    initial = True

    dependencies = [
        ("tenancy", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="BoundaryVersion",
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
                ("slug", models.CharField(max_length=64)),
                ("version", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("published_by", models.UUIDField(null=True)),
                ("published_at", models.DateTimeField()),
                ("retired_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "slug", "version"), name="boundary_version_once"
                    ),
                    models.UniqueConstraint(fields=("tenant", "id"), name="boundary_tenant_id"),
                ],
            },
        ),
        migrations.CreateModel(
            name="CircuitRow",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField(null=True)),
                ("kind", models.CharField(max_length=8)),
                ("subject", models.CharField(max_length=300)),
                ("state", models.CharField(max_length=10)),
                ("failures", models.IntegerField()),
                ("changes", models.BigIntegerField()),
                ("until", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, max_length=64)),
                ("since", models.DateTimeField()),
                ("failed_at", models.DateTimeField()),
                ("tried_at", models.DateTimeField(null=True)),
                ("prober", models.UUIDField(null=True)),
                ("prober_fence", models.BigIntegerField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("failures__gt", 0), ("changes__gt", 0), _connector="OR"),
                        fields=["tenant_id"],
                        name="circuit_told",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["tool", "model", "use"])), name="circuit_kind_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "closed"), ("until__isnull", True)),
                            models.Q(
                                ("failures__gt", 0),
                                ("state__in", ["open", "half_open"]),
                                ("until__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="circuit_state_whole",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "model"), ("tenant_id__isnull", True)),
                            models.Q(("kind__in", ["tool", "use"]), ("tenant_id__isnull", False)),
                            _connector="OR",
                        ),
                        name="circuit_of_whom",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("prober__isnull", True), ("prober_fence__isnull", True)),
                            models.Q(("prober__isnull", False), ("prober_fence__isnull", False)),
                            _connector="OR",
                        ),
                        name="circuit_prober_whole",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ConflictClaim",
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
                ("key", models.CharField(max_length=200)),
                ("run_id", models.UUIDField()),
                ("effect", models.CharField(max_length=32)),
                ("until", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="orchestrator_conflictclaim_of_tenant"
                    ),
                    models.UniqueConstraint(fields=("tenant", "key"), name="conflictclaim_one_holder"),
                ],
            },
        ),
        migrations.CreateModel(
            name="CorpusDocument",
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
                ("corpus", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=120)),
                ("version", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=200)),
                ("language", models.CharField(max_length=16)),
                ("text", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("removed", models.BooleanField(default=False)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="corpusdocument_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "corpus", "name", "version"), name="corpusdocument_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CorpusPassage",
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
                    "document",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.corpusdocument",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("start", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("heading", models.CharField(blank=True, max_length=200)),
                ("text", models.TextField()),
                ("search", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="corpuspassage_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "document", "number"), name="corpuspassage_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Dispatch",
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
                ("id", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("verdict", models.CharField(max_length=10)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("verdict__in", ["started", "abandoned"])), name="dispatch_verdict"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EmergencyStop",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("scope", models.CharField(max_length=10)),
                ("tenant_id", models.UUIDField(null=True)),
                ("target", models.CharField(blank=True, max_length=64)),
                ("risk", models.CharField(blank=True, default="", max_length=16)),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(null=True)),
                ("lifted_by", models.UUIDField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("lifted_at__isnull", True)),
                        fields=["scope", "tenant_id"],
                        name="stop_in_force",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scope__in", ["global", "tenant", "workflow", "tool", "risk", "policy", "drift"])
                        ),
                        name="stop_scope_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scope", "risk"), models.Q(("risk", ""), _negated=True)),
                            models.Q(models.Q(("scope", "risk"), _negated=True), ("risk", "")),
                            _connector="OR",
                        ),
                        name="stop_risk_of_risk",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scope", "global"), ("tenant_id__isnull", True)),
                            ("tenant_id__isnull", False),
                            _connector="OR",
                        ),
                        name="stop_of_whom",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Expectation",
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
                ("workflow", models.CharField(max_length=64)),
                ("graph", models.CharField(max_length=64)),
                ("lived", models.JSONField()),
                ("expected", models.JSONField()),
                ("learnt_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="orchestrator_expectation_of_tenant"
                    ),
                    models.UniqueConstraint(fields=("tenant", "graph"), name="expectation_one_a_graph"),
                ],
            },
        ),
        migrations.CreateModel(
            name="FileContent",
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
                ("run_id", models.UUIDField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="filecontent_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "run_id", "digest"), name="filecontent_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Intent",
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
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("effect", models.CharField(max_length=32)),
                ("run_id", models.UUIDField()),
                ("kind", models.CharField(max_length=16)),
                ("fence", models.BigIntegerField()),
                ("record", models.BigIntegerField()),
                ("attempt", models.PositiveSmallIntegerField()),
                ("tool", models.CharField(blank=True, max_length=64)),
                ("tool_digest", models.CharField(blank=True, max_length=64)),
                ("argument_digest", models.CharField(blank=True, max_length=64)),
                ("key", models.CharField(blank=True, max_length=40)),
                ("mutating", models.BooleanField()),
                ("body", models.BinaryField()),
                ("deadline", models.DateTimeField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("tool", ""), _negated=True),
                        fields=["tenant", "tool", "run_id"],
                        name="intent_by_tool",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "effect", "fence"), name="intent_once_a_fence")
                ],
            },
        ),
        migrations.CreateModel(
            name="MailDraft",
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
                ("run_id", models.UUIDField()),
                ("key", models.CharField(max_length=64)),
                ("body", models.JSONField()),
                ("sha256", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="maildraft_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "run_id", "key"), name="maildraft_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ManifestRow",
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
                ("body", models.BinaryField()),
                ("digest", models.CharField(max_length=64)),
                ("pins_digest", models.CharField(max_length=64)),
                ("budget", models.JSONField(default=dict)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("tenant", "id"), name="manifest_tenant_id")],
            },
        ),
        migrations.CreateModel(
            name="MemoryProposal",
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
                ("run_id", models.UUIDField()),
                ("key", models.CharField(max_length=64)),
                ("kind", models.CharField(max_length=10)),
                ("text", models.CharField(max_length=2000)),
                ("sha256", models.CharField(max_length=64)),
                ("evidence", models.JSONField()),
                ("trust", models.CharField(default="untrusted", max_length=9)),
                ("expires_at", models.DateTimeField()),
                ("at", models.DateTimeField()),
                (
                    "search",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.contrib.postgres.search.SearchVector("text", config="simple"),
                        output_field=django.contrib.postgres.search.SearchVectorField(),
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(fields=["search"], name="memoryproposal_words")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="memoryproposal_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "run_id", "key"), name="memoryproposal_once"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["episodic", "semantic", "procedural"])),
                        name="memoryproposal_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("trust__in", ["trusted", "untrusted"])),
                        name="memoryproposal_trust_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expires_at__gt", models.F("at"))), name="memoryproposal_ends"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryVerdict",
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
                    "proposal",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.memoryproposal",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("verdict", models.CharField(max_length=12)),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="memoryverdict_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "proposal", "number"), name="memoryverdict_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("verdict__in", ["kept", "refused", "quarantined"])),
                        name="memoryverdict_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelServed",
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
                ("place", models.UUIDField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="orchestrator_modelserved_of_tenant"
                    ),
                    models.UniqueConstraint(fields=("tenant", "place"), name="modelserved_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelTurn",
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
                ("place", models.UUIDField()),
                ("stage", models.CharField(max_length=8)),
                ("fence", models.BigIntegerField()),
                ("most", models.IntegerField()),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["place", "stage", "since"], name="modelturn_in_front")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="orchestrator_modelturn_of_tenant"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("stage__in", ["away", "queued"]), ("until__isnull", True)),
                            models.Q(("stage__in", ["called", "calling"]), ("until__gt", models.F("since"))),
                            _connector="OR",
                        ),
                        name="modelturn_stage_whole",
                    ),
                    models.CheckConstraint(condition=models.Q(("most__gte", 1)), name="modelturn_most_one"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Outside",
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
                ("kind", models.CharField(max_length=12)),
                ("version", models.PositiveIntegerField()),
                ("body", models.JSONField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="outside_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "kind", "version"), name="outside_once"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["web", "databases", "mail", "models"])),
                        name="outside_kind_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PinSet",
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
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "digest"), name="pins_once"),
                    models.UniqueConstraint(fields=("tenant", "id"), name="pins_tenant_id"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyProposal",
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
                ("before", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("status", models.CharField(default="open", max_length=10)),
                ("settled_by", models.UUIDField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
                ("settled_reason", models.CharField(blank=True, default="", max_length=500)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="policyproposal_tenant_id"),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "open")),
                        fields=("tenant",),
                        name="policyproposal_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["open", "agreed", "refused", "withdrawn", "outdated"])
                        ),
                        name="policyproposal_status_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyVersion",
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
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("loosens", models.BooleanField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("owner", models.UUIDField(null=True)),
                ("agreed_by", models.UUIDField(null=True)),
                ("agreed_owner", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "version"), name="policyversion_once"),
                    models.UniqueConstraint(fields=("tenant", "id"), name="policyversion_tenant_id"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("loosens", False),
                            models.Q(
                                ("agreed_by__isnull", False),
                                ("agreed_owner__isnull", False),
                                ("by__isnull", False),
                                ("owner__isnull", False),
                                models.Q(("agreed_by", models.F("by")), _negated=True),
                                models.Q(("agreed_owner", models.F("owner")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="policyversion_second_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PrivatePlaces",
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
                ("places", models.JSONField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="privateplaces_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "version"), name="privateplaces_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PromptVersion",
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
                ("slug", models.CharField(max_length=64)),
                ("version", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("published_by", models.UUIDField(null=True)),
                ("published_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "slug", "version"), name="prompt_version_once"),
                    models.UniqueConstraint(fields=("tenant", "id"), name="prompt_tenant_id"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RegistryVersion",
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
                ("digest", models.CharField(max_length=64)),
                ("tools", models.JSONField()),
                ("published_by", models.UUIDField(null=True)),
                ("published_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "version"), name="registry_version_once"),
                    models.UniqueConstraint(fields=("tenant", "id"), name="registry_tenant_id"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewItem",
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
                ("run_id", models.UUIDField()),
                ("key", models.CharField(max_length=64)),
                ("queue", models.CharField(max_length=64)),
                ("severity", models.CharField(max_length=8)),
                ("subject", models.CharField(max_length=200)),
                ("reason", models.CharField(max_length=2000)),
                ("evidence", models.JSONField()),
                ("sha256", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "rank",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Case(
                            models.When(severity="medium", then=models.Value(1)),
                            models.When(severity="high", then=models.Value(2)),
                            models.When(severity="critical", then=models.Value(3)),
                            default=models.Value(0),
                        ),
                        output_field=models.SmallIntegerField(),
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("answered_at", None)),
                        fields=["tenant", "-rank", "at", "id"],
                        name="review_open",
                    ),
                    models.Index(
                        condition=models.Q(("answered_at__isnull", False)),
                        fields=["tenant", "-answered_at", "-id"],
                        name="review_answered",
                    ),
                    models.Index(fields=["tenant", "-at", "-id"], name="review_newest"),
                    models.Index(fields=["tenant", "queue", "-at", "-id"], name="review_of_queue"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="reviewitem_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "run_id", "key"), name="reviewitem_once"),
                    models.CheckConstraint(
                        condition=models.Q(("severity__in", ["low", "medium", "high", "critical"])),
                        name="reviewitem_severity_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewWord",
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
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.reviewitem",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=8)),
                ("finding", models.CharField(blank=True, max_length=10)),
                ("note", models.CharField(blank=True, max_length=2000)),
                ("by", models.UUIDField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="reviewword_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "item", "number"), name="reviewword_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "answered")),
                        fields=("tenant", "item"),
                        name="reviewword_answered_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finding", ""), ("kind__in", ["taken", "released"])),
                            models.Q(
                                ("finding__in", ["confirmed", "objected", "undecided"]), ("kind", "answered")
                            ),
                            _connector="OR",
                        ),
                        name="reviewword_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
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
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=2000)),
                ("first", models.BooleanField(default=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="savedview_tenant_id"),
                    models.UniqueConstraint(
                        models.F("tenant"),
                        models.F("principal"),
                        django.db.models.functions.text.Lower("name"),
                        name="savedview_name_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("first", True)),
                        fields=("tenant", "principal"),
                        name="savedview_one_first",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SignalReceipt",
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
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("record", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "id"), name="orchestrator_signalreceipt_of_tenant"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Task",
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
                ("workflow", models.CharField(max_length=64)),
                ("goal", models.BinaryField()),
                ("goal_digest", models.CharField(max_length=64)),
                ("mode", models.CharField(max_length=16)),
                ("metadata", models.JSONField(default=dict)),
                ("idempotency_key", models.CharField(blank=True, max_length=255)),
                ("asked_digest", models.CharField(blank=True, default="", max_length=64)),
                ("submitted_by", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["submitted_by", "idempotency_key"], name="task_by_key")],
                "constraints": [models.UniqueConstraint(fields=("tenant", "id"), name="task_tenant_id")],
            },
        ),
        migrations.CreateModel(
            name="ToolProposal",
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
                ("kind", models.CharField(max_length=12)),
                ("tool", models.CharField(max_length=64)),
                ("tag", models.CharField(blank=True, default="", max_length=40)),
                ("body", models.JSONField()),
                ("weaker", models.JSONField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("status", models.CharField(default="open", max_length=10)),
                ("settled_by", models.UUIDField(null=True)),
                ("settled_owner", models.UUIDField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
                ("settled_reason", models.CharField(blank=True, default="", max_length=500)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="toolproposal_tenant_id"),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "open")),
                        fields=("tenant", "tool"),
                        name="toolproposal_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "change",
                                    "admit",
                                    "declare",
                                    "web",
                                    "databases",
                                    "mail",
                                    "models",
                                    "places",
                                    "ceilings",
                                    "boundary",
                                    "sign_in",
                                ],
                            )
                        ),
                        name="toolproposal_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["open", "agreed", "refused", "withdrawn", "outdated"])
                        ),
                        name="toolproposal_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "agreed"), _negated=True),
                            models.Q(
                                ("settled_by__isnull", False),
                                ("settled_owner__isnull", False),
                                models.Q(("settled_by", models.F("by")), _negated=True),
                                models.Q(("settled_owner", models.F("owner")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="toolproposal_second_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolServer",
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
                ("slug", models.CharField(max_length=32)),
                ("kind", models.CharField(max_length=8)),
                ("address", models.CharField(max_length=2000)),
                ("origin", models.CharField(max_length=300)),
                ("secret", models.CharField(blank=True, max_length=64)),
                ("secret_header", models.CharField(blank=True, max_length=64)),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("looked_at", models.DateTimeField(null=True)),
                ("protocol", models.CharField(blank=True, max_length=20)),
                ("named", models.CharField(blank=True, max_length=120)),
                ("fault", models.CharField(blank=True, max_length=600)),
                ("removed_at", models.DateTimeField(null=True)),
                ("removed_by", models.UUIDField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="toolserver_tenant_id"),
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at__isnull", True)),
                        fields=("tenant", "slug"),
                        name="toolserver_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["http", "stdio"])), name="toolserver_kind_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ServerTool",
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
                    "server",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.toolserver",
                    ),
                ),
                ("tool", models.CharField(max_length=128)),
                ("name", models.CharField(blank=True, max_length=64)),
                ("state", models.CharField(max_length=12)),
                ("seen", models.CharField(blank=True, max_length=64)),
                ("admitted", models.CharField(blank=True, max_length=64)),
                ("why", models.CharField(blank=True, max_length=500)),
                ("since", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="servertool_tenant_id"),
                    models.UniqueConstraint(fields=("tenant", "server", "tool"), name="servertool_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["quarantined", "admitted", "gone", "refused"])),
                        name="servertool_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "admitted"), _negated=True),
                            models.Q(
                                ("admitted", models.F("seen")),
                                models.Q(("admitted", ""), _negated=True),
                                models.Q(("name", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="servertool_admitted_as_seen",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolDefinition",
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
                    "server",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orchestrator.toolserver",
                    ),
                ),
                ("tool", models.CharField(max_length=128)),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tooldefinition_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "server", "tool", "digest"), name="tooldefinition_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolVersion",
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
                ("slug", models.CharField(max_length=64)),
                ("version", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("published_by", models.UUIDField(null=True)),
                ("published_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "slug", "version"), name="tool_version_once"),
                    models.UniqueConstraint(fields=("tenant", "id"), name="tool_tenant_id"),
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkflowVersion",
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
                ("slug", models.CharField(max_length=64)),
                ("version", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("published_by", models.UUIDField(null=True)),
                ("published_at", models.DateTimeField()),
                ("title", models.CharField(blank=True, max_length=200)),
                ("tier", models.PositiveSmallIntegerField()),
                ("retired_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "slug", "version"), name="workflow_version_once"
                    ),
                    models.UniqueConstraint(fields=("tenant", "id"), name="workflow_tenant_id"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
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
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="orchestrator.task",
                    ),
                ),
                ("workflow", models.CharField(max_length=64)),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                (
                    "workflow_version",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="orchestrator.workflowversion",
                    ),
                ),
                ("mode", models.CharField(max_length=16)),
                ("scripted", models.BooleanField(default=False)),
                ("submitted_by", models.UUIDField()),
                ("owner", models.UUIDField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("in_progress", "in_progress"),
                            ("awaiting_gate", "awaiting_gate"),
                            ("awaiting_input", "awaiting_input"),
                            ("paused", "paused"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("expired", "expired"),
                            ("rejected", "rejected"),
                            ("cancelled", "cancelled"),
                        ],
                        default="queued",
                        max_length=16,
                    ),
                ),
                ("position", models.CharField(max_length=64)),
                ("terminal_code", models.CharField(blank=True, max_length=24)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("result", models.CharField(blank=True, max_length=64)),
                ("version", models.BigIntegerField(default=0)),
                ("fence", models.BigIntegerField(default=0)),
                ("lease_owner", models.CharField(max_length=80, null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("takeovers", models.PositiveSmallIntegerField(default=0)),
                ("wake_at", models.DateTimeField(null=True)),
                ("record_number", models.BigIntegerField(default=-1)),
                ("record_hash", models.BinaryField(max_length=32)),
                ("event_seq", models.BigIntegerField(default=0)),
                ("event_hash", models.BinaryField(max_length=32)),
                ("snapshot_number", models.BigIntegerField(default=0)),
                ("patch_bytes", models.BigIntegerField(default=0)),
                ("manifest_digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
                (
                    "retry_of",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="retries",
                        to="orchestrator.run",
                    ),
                ),
                ("retry_record", models.BigIntegerField(null=True)),
                ("retried_by", models.UUIDField(null=True)),
                ("retry_key", models.CharField(blank=True, default="", max_length=255)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["tenant", "-created_at", "-id"],
                        include=("title", "workflow"),
                        name="run_newest",
                    ),
                    models.Index(fields=["tenant", "status", "-created_at"], name="run_by_status"),
                    models.Index(
                        condition=models.Q(
                            (
                                "status__in",
                                ("queued", "in_progress", "awaiting_gate", "awaiting_input", "paused"),
                            )
                        ),
                        fields=["wake_at"],
                        name="run_live",
                    ),
                    models.Index(fields=["finished_at"], name="run_finished"),
                    models.Index(
                        condition=models.Q(("status__in", ("queued", "in_progress")), ("wake_at", None)),
                        fields=["tenant", "created_at", "id"],
                        name="run_ready",
                    ),
                    models.Index(fields=["tenant", "-started_at"], name="run_begun"),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["tenant", "finished_at"],
                        name="run_ended",
                    ),
                    models.Index(fields=["tenant", "workflow", "-created_at"], name="run_by_workflow"),
                    models.Index(
                        condition=models.Q(("terminal_code", ""), _negated=True),
                        fields=["tenant", "terminal_code", "-created_at"],
                        name="run_by_code",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="run_tenant_id"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "queued",
                                    "in_progress",
                                    "awaiting_gate",
                                    "awaiting_input",
                                    "paused",
                                    "completed",
                                    "failed",
                                    "expired",
                                    "rejected",
                                    "cancelled",
                                ],
                            )
                        ),
                        name="run_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("lease_owner__isnull", True), ("lease_until__isnull", False), _connector="OR"
                        ),
                        name="run_lease_has_an_end",
                    ),
                    models.UniqueConstraint(fields=("tenant", "retry_of"), name="run_retried_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("retried_by", None),
                                ("retry_key", ""),
                                ("retry_of", None),
                                ("retry_record", None),
                            ),
                            models.Q(
                                ("retried_by__isnull", False),
                                ("retry_of__isnull", False),
                                ("retry_record__gte", 0),
                            ),
                            _connector="OR",
                        ),
                        name="run_retry_is_whole",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RunSignal",
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
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="signals",
                        to="orchestrator.run",
                    ),
                ),
                ("kind", models.CharField(max_length=24)),
                ("payload", models.JSONField()),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["run", "id"], name="signal_by_run"),
                    models.Index(fields=["tenant", "at"], name="signal_by_time"),
                    models.Index(
                        condition=models.Q(("kind__in", ("reconciled", "look_up"))),
                        fields=["at"],
                        name="signal_after_end",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("tenant", "id"), name="signal_tenant_id")],
            },
        ),
        migrations.CreateModel(
            name="WorkspaceRevision",
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
                ("run_id", models.UUIDField()),
                ("number", models.PositiveIntegerField()),
                ("key", models.CharField(max_length=64)),
                ("cause", models.CharField(max_length=8)),
                ("tree", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("summary", models.CharField(blank=True, max_length=300)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="workspacerevision_tenant_id"),
                    models.UniqueConstraint(
                        fields=("tenant", "run_id", "number"), name="workspacerevision_once"
                    ),
                    models.UniqueConstraint(
                        fields=("tenant", "run_id", "key"), name="workspacerevision_key_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cause__in", ["handed", "changed", "restored"])),
                        name="workspacerevision_cause_known",
                    ),
                ],
            },
        ),
    ]
