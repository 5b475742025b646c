"""A key that reaches some runs alone sees no others, nor what hangs on them (R-SEC-11).

The transaction says whose runs and of which workflows (`tenancy.db.tenant_context.within`); where it says nothing, all
of the tenant's are meant. Events, contents and amounts are found by their run, which is not there.
"""

from django.db import migrations

WHOSE = "coalesce(current_setting('interlock.reach_principal', true), '')"
WHICH = "coalesce(current_setting('interlock.reach_workflows', true), '')"
RUN = f"""
CREATE POLICY within_reach ON orchestrator_run AS RESTRICTIVE TO interlock_app USING (
  ({WHOSE} = '' OR submitted_by::text = {WHOSE})
  AND ({WHICH} = '' OR workflow LIKE ANY (string_to_array({WHICH}, ','))));
"""
# Where nothing is said the rows' runs are not looked at.
HANGING = ("approvals_request", "orchestrator_reviewitem", "orchestrator_memoryproposal")
OF_A_RUN = """
CREATE POLICY within_reach ON {table} AS RESTRICTIVE FOR SELECT TO interlock_app USING (
  ({whose} = '' AND {which} = '') OR EXISTS (
    SELECT FROM orchestrator_run r WHERE r.tenant_id = {table}.tenant_id AND r.id = {table}.run_id));
"""


class Migration(migrations.Migration):
    """One policy a table."""

    dependencies = [
        ("orchestrator", "0035_ceilings_and_places"),
        ("approvals", "0009_retriers"),
        ("tenancy", "0011_narrow_keys"),
    ]
    operations = [
        migrations.RunSQL(RUN, "DROP POLICY within_reach ON orchestrator_run;"),
        *(
            migrations.RunSQL(
                OF_A_RUN.format(table=table, whose=WHOSE, which=WHICH),
                f"DROP POLICY within_reach ON {table};",
            )
            for table in HANGING
        ),
    ]
