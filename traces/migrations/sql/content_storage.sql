-- How content is stored, and how sealed content is found.

-- The wheels' PostgreSQL has no lz4, and its own compression costs 0.1 ms for content of 5 KB and 0.4 ms for 20 KB of
-- the commit's time to save 30-40 % of the disk. A commit is bound by the processor, so content is not compressed. Up
-- to a page it stays in its row: a prompt of 8 KB would otherwise be four rows of another table and its index.
ALTER TABLE traces_payload ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE traces_payload SET (toast_tuple_target = 8160);

-- The sealed values of a run are found without reading the rest of its content.
CREATE INDEX traces_payload_sealed ON traces_payload (run_id)
 WHERE substring(body FROM 1 FOR 8) = '{"box":"'::bytea;
