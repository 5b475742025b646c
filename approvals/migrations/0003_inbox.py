"""The orders of the inbox: by deadline while requests wait, newest first once they ended, and by tool."""

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Three indexes."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("approvals", "0002_guards")]
    operations: ClassVar[list[migrations.operations.base.Operation]] = [
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                fields=["tenant", "expires_at", "id"], condition=Q(status="pending"), name="request_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                fields=["tenant", "-settled_at", "-id"],
                condition=~Q(status="pending"),
                name="request_settled",
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(fields=["tenant", "tool", "-settled_at"], name="request_by_tool"),
        ),
    ]
