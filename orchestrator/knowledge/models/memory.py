"""Memory proposals of runs, and the decisions about them (R-MEM-2)."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models

from tenancy.models import TenantOwned


class MemoryProposal(TenantOwned):
    """A text that a run proposes to remember, once per key, with evidence and an expiry. Append-only.

    `evidence` is a list of {fact, version, digest, trust}; `trust` is that of the text. The proposal alone
    is not part of any memory.
    """

    run_id = models.UUIDField()
    key = models.CharField(max_length=64)
    kind = models.CharField(max_length=10)
    text = models.CharField(max_length=2_000)
    sha256 = models.CharField(max_length=64)
    evidence = models.JSONField()
    trust = models.CharField(max_length=9, default="untrusted")
    expires_at = models.DateTimeField()
    at = models.DateTimeField()
    search = models.GeneratedField(
        expression=SearchVector("text", config="simple"), output_field=SearchVectorField(), db_persist=True
    )

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="memoryproposal_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "run_id", "key"], name="memoryproposal_once"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["episodic", "semantic", "procedural"]),
                name="memoryproposal_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(trust__in=["trusted", "untrusted"]), name="memoryproposal_trust_known"
            ),
            models.CheckConstraint(
                condition=models.Q(expires_at__gt=models.F("at")), name="memoryproposal_ends"
            ),
        ]
        indexes = [GinIndex(fields=["search"], name="memoryproposal_words")]


class MemoryVerdict(TenantOwned):
    """One decision about a proposal; the newest counts, and only `kept` is remembered. Append-only."""

    proposal = models.ForeignKey(
        MemoryProposal, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    number = models.PositiveIntegerField()
    verdict = models.CharField(max_length=12)
    reason = models.CharField(max_length=500)
    by = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="memoryverdict_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "proposal", "number"], name="memoryverdict_once"),
            models.CheckConstraint(
                condition=models.Q(verdict__in=["kept", "refused", "quarantined"]),
                name="memoryverdict_known",
            ),
        ]
