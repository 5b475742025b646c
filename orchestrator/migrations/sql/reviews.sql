-- Review items: they wait in a queue of their tenant and are answered once.

-- The queue may be closed: a run under way may ask in one that was closed after it was admitted.
ALTER TABLE orchestrator_reviewitem ADD CONSTRAINT orchestrator_reviewitem_queue_of_tenant
  FOREIGN KEY (tenant_id, queue) REFERENCES tenancy_queue (tenant_id, name) DEFERRABLE INITIALLY IMMEDIATE;

-- An item takes the time of its answer, and no other change.
CREATE FUNCTION orchestrator_only_answered() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.answered_at IS NULL
     AND (to_jsonb(NEW) - 'answered_at' - 'rank') = (to_jsonb(OLD) - 'answered_at' - 'rank')
     AND NEW.answered_at = (SELECT w.at FROM public.orchestrator_reviewword w
          WHERE w.tenant_id = NEW.tenant_id AND w.item_id = NEW.id AND w.kind = 'answered')
  THEN RETURN NEW; END IF;
  RAISE EXCEPTION '% of % is refused: an item is answered once, and nothing else of it changes',
    TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER only_answered BEFORE UPDATE OR DELETE ON orchestrator_reviewitem
  FOR EACH ROW EXECUTE FUNCTION orchestrator_only_answered();

-- The answer writes its time to the item.
CREATE FUNCTION orchestrator_note_answer() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  UPDATE public.orchestrator_reviewitem SET answered_at = NEW.at
   WHERE tenant_id = NEW.tenant_id AND id = NEW.item_id;
  RETURN NULL;
END $$;
CREATE TRIGGER answer_noted AFTER INSERT ON orchestrator_reviewword
  FOR EACH ROW WHEN (NEW.kind = 'answered') EXECUTE FUNCTION orchestrator_note_answer();
