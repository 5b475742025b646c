"""Writing a message to the endpoints that asked for its kind, and a letter to the people whom it concerns, in
the transaction of what it tells of (R-API-6): it is there exactly once, whatever crashes. Jobs send it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
import psycopg

from tenancy.core.event_kinds import READERS, encode_event_message
from tenancy.db.ids import fresh_id

# An endpoint that is off has a delivery too: it waits until somebody turns it on again.
_TOLD: Final = """
WITH asking AS (
  SELECT id FROM tenancy_webhook
   WHERE tenant_id = %(tenant)s AND removed_at IS NULL AND %(kind)s = ANY(events)
), written AS (
  INSERT INTO tenancy_webhookmessage (id, tenant_id, kind, subject, body, at)
  SELECT %(id)s, %(tenant)s, %(kind)s, %(subject)s, %(body)s, %(at)s WHERE EXISTS (SELECT FROM asking)
  ON CONFLICT (tenant_id, kind, subject) DO NOTHING RETURNING id)
INSERT INTO tenancy_webhookdelivery
       (id, tenant_id, webhook_id, message_id, state, tries, attempts, next_at, created_at)
SELECT gen_random_uuid(), %(tenant)s, asking.id, written.id, 'waiting', 0, 0, %(at)s, %(at)s
  FROM written, asking"""


def write_outgoing_message(
    tenant_id: UUID,
    kind: str,
    subject: str,
    data: Mapping[str, Any],
    *,
    at: datetime,
    cursor: "psycopg.Cursor[Any]",
) -> None:
    """Write the message of what happened to `subject`, such as `alert:<id>`, once per kind and subject. Joins
    the transaction; one statement."""
    values = {
        "tenant": tenant_id, "id": fresh_id(), "kind": kind, "subject": subject, "at": at,
        "body": encode_event_message(kind, at, data),
    }  # fmt: skip
    cursor.execute(_TOLD, values)


_NOTICED: Final = """
WITH noticed AS (
  INSERT INTO tenancy_notice (id, tenant_id, kind, subject, data, at)
  VALUES (%(id)s, %(tenant)s, %(kind)s, %(subject)s, %(data)s::jsonb, %(at)s)
  ON CONFLICT (tenant_id, kind, subject) DO NOTHING RETURNING id),
letters AS (
  INSERT INTO tenancy_noticemail (id, tenant_id, notice_id, person_id, tries, next_at, error)
  SELECT gen_random_uuid(), %(tenant)s, noticed.id, p.id, 0, %(at)s, ''
    FROM noticed, tenancy_person p
   WHERE p.is_active AND EXISTS (
         SELECT FROM tenancy_membership m
          WHERE m.tenant_id = %(tenant)s AND m.person_id = p.id AND m.role = ANY(%(readers)s)
            AND NOT m.awaits_confirmation))
SELECT id FROM noticed"""


def tell_people(
    tenant_id: UUID,
    kind: str,
    subject: str,
    data: Mapping[str, Any],
    *,
    at: datetime,
    cursor: "psycopg.Cursor[Any]",
) -> bool:
    """Write a notice with a letter to each whom it concerns, and the message to the endpoints; once per kind
    and subject, however often it is told. Whether it is new. `data` holds words of ours alone. Joins the
    transaction; two statements."""
    values = {
        "tenant": tenant_id, "id": fresh_id(), "kind": kind, "subject": subject, "at": at,
        "data": orjson.dumps(dict(data)).decode(), "readers": [role.value for role in READERS[kind]],
    }  # fmt: skip
    cursor.execute(_NOTICED, values)
    if cursor.fetchone() is None:
        return False
    write_outgoing_message(tenant_id, kind, subject, {"tenant": str(tenant_id), **data}, at=at, cursor=cursor)
    return True
