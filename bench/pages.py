"""How fast pages answer with 100 000 runs, as many lines of the audit log, a run of 10 000 events with all
that such a run has, and hundreds of requests that wait in the database (R-UI-12).

`python -m bench pages` asks the real web server a hundred times for each page of the console (`console.py`)
over one connection, and prints the 50th and 95th percentile of the time to the first and to the last byte,
the size, and the elements. Judged is that 95 of 100 answers of each page are whole within 200 ms (R-UI-12)
and within 300 ms, and that no page has more than 3 000 elements.
"""

import os
from functools import partial
from html.parser import HTMLParser
from http.client import HTTPConnection
from importlib import import_module
from statistics import quantiles
from time import perf_counter
from typing import NamedTuple
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import connection
from django.test import Client

from bench import long_run
from bench.live import _child, _valkey
from bench.servers import own_database
from bench.thresholds import judge
from tenancy.models import Person

RUNS, ASKED = 100_000, 100
BOUNDS_MS, BOUND_ELEMENTS = (200, 300), 3_000
REVIEWS, TOLD = 1_000, 10_000
# One run in a thousand waits, one in twenty failed. Ids are as old as their runs, as ours are.
MANY = f"""
INSERT INTO orchestrator_run
  (id, tenant_id, task_id, workflow, title, workflow_version_id, mode, scripted, submitted_by, owner, status,
   position, terminal_code, reason, result, retry_key, version, fence, takeovers, record_number, record_hash,
   event_seq, event_hash, snapshot_number, patch_bytes, manifest_digest, created_at, started_at, finished_at)
SELECT uuidv7(n * interval '-20 seconds'), r.tenant_id, r.task_id, r.workflow,
  'Refund order A-' || n || ' of customer ' || n % 977, r.workflow_version_id, r.mode, r.scripted,
  r.submitted_by, r.owner,
  CASE WHEN n % 1000 = 0 THEN 'awaiting_gate' WHEN n % 1000 = 1 THEN 'in_progress'
       WHEN n % 20 = 2 THEN 'failed' ELSE 'completed' END,
  r.position,
  CASE WHEN n % 1000 < 2 THEN '' WHEN n % 20 = 2 THEN 'BUDGET_EXHAUSTED' ELSE 'SUCCESS' END,
  '', '', '', 9, 9, 0, 40, r.record_hash, 99, r.event_hash, 0, 0, r.manifest_digest,
  now() - n * interval '20 seconds', now() - n * interval '20 seconds',
  CASE WHEN n % 1000 >= 2 THEN now() - n * interval '20 seconds' + interval '9 seconds' END
  FROM orchestrator_run r, generate_series(1, {RUNS}) n WHERE r.id = %(run)s"""
LINES = """
INSERT INTO budgets_line (id, tenant_id, account_id, dimension, "limit", used, reserved)
SELECT gen_random_uuid(), l.tenant_id, r.id, l.dimension, l."limit",
  CASE l.dimension WHEN 'cost_usd' THEN (abs(hashtext(r.id::text)) % 1000) / 1000.0 ELSE 4 END, 0
  FROM budgets_line l, orchestrator_run r
 WHERE l.account_id = %(run)s AND r.tenant_id = l.tenant_id AND r.id <> l.account_id"""
CALLED = """
INSERT INTO orchestrator_intent
  (tenant_id, effect, run_id, kind, fence, record, attempt, tool, tool_digest, argument_digest, key, mutating,
   body, deadline, at)
SELECT r.tenant_id, md5(r.id::text || t), r.id, 'call_tool', 1, 1, 1, t, '', '', '', false, ''::bytea, now(),
  now()
  FROM orchestrator_run r, unnest(ARRAY['orders.lookup', 'policy.evaluate']) t
 WHERE r.tenant_id = (SELECT tenant_id FROM orchestrator_run WHERE id = %(run)s)"""
# An ended run of a tenant has a closed tranche, figures, and its share of a day's spending.
ACCOUNTS = """
INSERT INTO budgets_account (id, tenant_id, kind, run_id, currency, opened_at, closed_at)
SELECT r.id, r.tenant_id, 'run', r.id, 'USD', r.created_at, r.finished_at
  FROM orchestrator_run r, orchestrator_run o
 WHERE o.id = %(run)s AND r.tenant_id = o.tenant_id AND r.id <> o.id"""
TRANCHES = """
INSERT INTO budgets_tranche (id, tenant_id, run_account_id, day_id, month_id, starts_at, ends_at, held, used,
  reserved, booked, opened_at, closed_at)
SELECT gen_random_uuid(), r.tenant_id, r.id, gen_random_uuid(), gen_random_uuid(), r.created_at,
  r.created_at + interval '1 day', 0, 0, 0, 0.1, r.created_at, r.created_at
  FROM orchestrator_run r, orchestrator_run o
 WHERE o.id = %(run)s AND r.tenant_id = o.tenant_id AND r.id <> o.id"""
FIGURES = """
INSERT INTO budgets_runfigures (id, tenant_id, workflow, terminal_code, ended_at, cost, cost_limit, steps,
  steps_limit, depth, depth_limit, tokens, tokens_limit, seconds, seconds_limit)
SELECT r.id, r.tenant_id, r.workflow, r.terminal_code, r.finished_at,
  (abs(hashtext(r.id::text)) % 1000) / 1000.0, 1, abs(hashtext(r.id::text)) % 12, 15, 0, 2,
  abs(hashtext(r.id::text)) % 40000, 50000, abs(hashtext(r.id::text)) % 170, 180
  FROM orchestrator_run r, orchestrator_run o
 WHERE o.id = %(run)s AND r.tenant_id = o.tenant_id AND r.finished_at IS NOT NULL"""
SPENT = """
INSERT INTO budgets_dayspend (id, tenant_id, day, workflow, kind, name, usd, calls)
SELECT gen_random_uuid(), r.tenant_id, current_date - d, r.workflow || '-' || w, 'tool', 'tool.' || t, d + t,
  d
  FROM orchestrator_run r, generate_series(0, 60) d, generate_series(1, 10) w, generate_series(1, 10) t
 WHERE r.id = %(run)s"""
# Today's account, as the ledger's page reads it: what each of its runs drew and gave back.
DAY = """
INSERT INTO budgets_account (id, tenant_id, kind, window_start, window_end, currency, opened_at)
SELECT md5(r.id::text || w.kind)::uuid, r.tenant_id, w.kind, date_trunc(w.unit, now(), 'UTC'),
  date_trunc(w.unit, now(), 'UTC') + w.length, 'USD', now()
  FROM orchestrator_run r,
       (VALUES ('tenant_day', 'day', interval '1 day'), ('tenant_month', 'month', interval '1 month'))
         AS w(kind, unit, length)
 WHERE r.id = %(run)s
ON CONFLICT DO NOTHING"""
ENTRIES = f"""
INSERT INTO budgets_entry (id, tenant_id, run_id, account_id, month_id, cause, amounts, unknown,
  price_version, at, digest, marks)
SELECT gen_random_uuid(), d.tenant_id, gen_random_uuid(), d.id, m.id,
  CASE n % 2 WHEN 0 THEN 'tranche' ELSE 'settle' END, '{{"reserved":{{"cost_usd":"0.25"}}}}', false, '',
  now() - n * interval '0.1 seconds', ''::bytea, ''::bytea
  FROM budgets_account d JOIN budgets_account m ON m.tenant_id = d.tenant_id AND m.kind = 'tenant_month',
       orchestrator_run r, generate_series(1, {RUNS}) n
 WHERE r.id = %(run)s AND d.tenant_id = r.tenant_id AND d.kind = 'tenant_day'"""
# Two of three reviews are answered.
ASKED_FOR = f"""
INSERT INTO orchestrator_reviewitem (id, tenant_id, run_id, key, queue, severity, subject, reason, evidence,
  sha256, at)
SELECT uuidv7(n * interval '-20 seconds'), r.tenant_id, r.id, 'k' || n, 'support',
  (ARRAY['low', 'medium', 'high', 'critical'])[1 + n % 4], 'Claim ' || n, 'The figures differ.', '[]', '',
  now() - n * interval '20 seconds'
  FROM orchestrator_run r, generate_series(1, {REVIEWS}) n WHERE r.id = %(run)s"""
ANSWERED = """
INSERT INTO orchestrator_reviewword (id, tenant_id, item_id, number, kind, finding, note, by, at)
SELECT gen_random_uuid(), i.tenant_id, i.id, 0, 'answered', 'confirmed', 'It is so.', r.submitted_by, i.at
  FROM orchestrator_reviewitem i JOIN orchestrator_run r ON r.id = i.run_id
 WHERE r.id = %(run)s AND substr(i.key, 2)::int % 3 > 0"""
# What administrators have done for years, and what one webhook was told of.
ADMINISTERED = f"""
INSERT INTO tenancy_auditentry (id, tenant_id, principal, verb, object, before, after, reason, at)
SELECT uuidv7(n * interval '-20 seconds'), r.tenant_id, r.submitted_by,
  (ARRAY['tool.change', 'member.limits', 'ceilings.change'])[1 + n % 3], 'tool:calculator.evaluate',
  '{{"price_usd": "0"}}', '{{"price_usd": "0.25"}}', 'As agreed', now() - n * interval '20 seconds'
  FROM orchestrator_run r, generate_series(1, {RUNS}) n WHERE r.id = %(run)s"""
MESSAGES = f"""
INSERT INTO tenancy_webhookmessage (id, tenant_id, kind, subject, body, at)
SELECT md5('message ' || n)::uuid, m.tenant_id, m.kind, 'bench ' || n, m.body,
  now() - n * interval '20 seconds'
  FROM orchestrator_run r JOIN tenancy_webhookmessage m ON m.tenant_id = r.tenant_id,
       generate_series(1, {TOLD}) n
 WHERE r.id = %(run)s"""
DELIVERED = """
INSERT INTO tenancy_webhookdelivery (id, tenant_id, webhook_id, message_id, state, tries, attempts, next_at,
  done_at, created_at)
SELECT gen_random_uuid(), m.tenant_id, w.id, m.id, 'delivered', 1, 1, m.at, m.at, m.at
  FROM orchestrator_run r JOIN tenancy_webhookmessage m ON m.tenant_id = r.tenant_id
  JOIN tenancy_webhook w ON w.tenant_id = r.tenant_id
 WHERE r.id = %(run)s AND m.subject LIKE 'bench %%'"""
TABLES = (
    "orchestrator_run, orchestrator_intent, budgets_line, budgets_account, budgets_tranche,"
    " budgets_runfigures, budgets_dayspend, budgets_entry, traces_event,"
    " orchestrator_reviewitem, orchestrator_reviewword, tenancy_auditentry, tenancy_webhookmessage,"
    f" tenancy_webhookdelivery, {long_run.TABLES}"
)


class Told(NamedTuple):
    """One answer: milliseconds to the first and to the last byte, and the page."""

    first: float
    last: float
    body: bytes


class Figures(NamedTuple):
    """A page's figures: milliseconds in which 95 of 100 answers were whole, and its elements."""

    p95: float
    elements: int


class Elements(HTMLParser):
    """Counts the elements of a page."""

    count = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more."""
        self.count += 1


def measure(superuser: psycopg.Connection) -> None:
    """Fill the database, ask, and print."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with own_database():
        console = import_module("bench.page_urls")
    world, run = console.furnished()
    asked = _fill(superuser, world.id, run)
    things = console.belongings(world)
    # What is sent to the one webhook among them is what it was sent as a try, again and again.
    for statement in (MESSAGES, DELIVERED):
        superuser.execute(statement.encode(), {"run": run})
    os.environ["INTERLOCK_SECRET_KEY"] = settings.SECRET_KEY
    with _valkey() as url, _child("config.devstack.serve", url) as base:
        asking = HTTPConnection(base)
        cookie = _session(world.people.admin.person)
        print(f"{RUNS:,} runs, a run of {long_run.EVENTS:,} events; {ASKED} requests each, one after another")
        print(f"  {'':46}{'first p95':>10}{'p50':>8}{'p95':>8} ms{'kB':>8}{'elements':>10}")
        found: dict[str, Figures] = {}
        for name, address in console.everywhere(run, asked, things, partial(_whole, asking, cookie)).items():
            told = [_ask(asking, address, cookie) for _ in range(ASKED + 3)][3:]
            found[name] = _say(name, told)
    judged(found)


def judged(found: dict[str, Figures]) -> None:
    """The verdicts over all pages; those that miss a bound are named."""
    bounds = {
        f"95 of 100 answers within {bound} ms": [name for name, one in found.items() if one.p95 > bound]
        for bound in BOUNDS_MS
    }
    large = [name for name, one in found.items() if one.elements > BOUND_ELEMENTS]
    for what, missed in (*bounds.items(), (f"at most {BOUND_ELEMENTS:,} elements", large)):
        names = f" (not: {'; '.join(missed)})" if missed else ""
        held = len(found) > 0 and not missed
        judge(f"{what} on {len(found) - len(missed)} of {len(found)} pages{names}", held=held)


def _ask(asking: HTTPConnection, address: str, cookie: str) -> Told:
    started = perf_counter()
    asking.request("GET", address, headers={"Cookie": cookie, "Accept": "text/html"})
    answer = asking.getresponse()
    first = perf_counter()
    body = answer.read()
    assert answer.status == 200, (address, answer.status, body[:500])
    return Told((first - started) * 1e3, (perf_counter() - started) * 1e3, body)


def _whole(asking: HTTPConnection, cookie: str, address: str) -> bytes | None:
    """What is answered, None where it is no success. Raises AssertionError where the server is at fault."""
    asking.request("GET", address, headers={"Cookie": cookie, "Accept": "text/html"})
    answer = asking.getresponse()
    body = answer.read()
    assert answer.status < 500, (address, answer.status, body[:500])
    return body if answer.status == 200 else None


def _say(name: str, told: list[Told]) -> Figures:
    """Print a page's figures."""
    counted = Elements()
    counted.feed(told[-1].body.decode())
    last, first = quantiles((one.last for one in told), n=100), quantiles((one.first for one in told), n=100)
    size = len(told[-1].body) / 1000
    print(f"  {name:46}{first[94]:10.1f}{last[49]:8.1f}{last[94]:8.1f}   {size:8.0f}{counted.count:10}")
    return Figures(last[94], counted.count)


def _fill(superuser: psycopg.Connection, house: UUID, run: UUID) -> UUID:
    started = perf_counter()
    # The guards judge moves; these rows were never moved.
    superuser.execute("SET session_replication_role = replica")
    for statement in (
        MANY,
        ACCOUNTS,
        LINES,
        TRANCHES,
        FIGURES,
        SPENT,
        CALLED,
        *long_run.FILLS,
        DAY,
        ENTRIES,
        ASKED_FOR,
        ANSWERED,
        ADMINISTERED,
    ):
        superuser.execute(statement.replace(" % ", " %% ").encode(), {"run": run})
    asked = long_run.ask(house, superuser, run)
    long_run.remember(house, superuser, run)
    superuser.execute("RESET session_replication_role")
    superuser.execute(f"VACUUM ANALYZE {TABLES}".encode())
    print(f"filled in {perf_counter() - started:.0f} s")
    return asked


def _session(person: Person) -> str:
    client = Client()
    client.force_login(person)
    connection.close()
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
