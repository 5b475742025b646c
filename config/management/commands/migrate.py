"""`manage.py migrate`: Django's command, for databases of this release's format alone."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections, transaction

from config.data_format import explain_database_refusal, read_database_format, write_database_format


class Command(migrate.Command):
    """Apply migrations; the first ones to a database write the format into it."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply migrations.

        Raises: CommandError if the database has another format; nothing is changed then.
        """
        alias = options["database"]
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            if refusal := explain_database_refusal(cursor, connections[alias].settings_dict["NAME"]):
                raise CommandError(refusal)
            only_asks = options["plan"] or options["check_unapplied"]
            if not only_asks and read_database_format(cursor) is None:
                write_database_format(cursor)
        super().handle(*args, **options)
