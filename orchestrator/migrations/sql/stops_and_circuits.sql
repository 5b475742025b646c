-- Emergency stops and circuits: some belong to a tenant, and some to nobody and are seen by all.

-- A tenant reads its own emergency stops and those of all, and writes its own alone. Outside any tenant only those of
-- all are read and written: the operator's. A stop is lifted, and never rewritten (R-SEC-1, R-SEC-9).
ALTER TABLE orchestrator_emergencystop ENABLE ROW LEVEL SECURITY;
ALTER TABLE orchestrator_emergencystop FORCE ROW LEVEL SECURITY;
CREATE POLICY own_and_global ON orchestrator_emergencystop FOR SELECT
  USING (tenant_id IS NULL OR tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid);
CREATE POLICY own_made ON orchestrator_emergencystop FOR INSERT
  WITH CHECK (tenant_id IS NOT DISTINCT FROM nullif(current_setting('interlock.tenant', true), '')::uuid);
CREATE POLICY own_lifted ON orchestrator_emergencystop FOR UPDATE
  USING (tenant_id IS NOT DISTINCT FROM nullif(current_setting('interlock.tenant', true), '')::uuid)
  WITH CHECK (tenant_id IS NOT DISTINCT FROM nullif(current_setting('interlock.tenant', true), '')::uuid);

-- A circuit in front of a provider is one row for all tenants (R-BUDGET-13).
ALTER TABLE orchestrator_circuitrow ENABLE ROW LEVEL SECURITY;
ALTER TABLE orchestrator_circuitrow FORCE ROW LEVEL SECURITY;
CREATE POLICY of_this_tenant_or_nobody ON orchestrator_circuitrow
  USING (tenant_id IS NULL OR tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid)
  WITH CHECK (tenant_id IS NULL OR tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid);
