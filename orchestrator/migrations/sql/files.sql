-- Files of runs and passages of corpora.

-- A digest is the digest of the content beside it, whoever wrote it.
ALTER TABLE orchestrator_filecontent
  ADD CONSTRAINT filecontent_true CHECK (digest = encode(sha256(body), 'hex')),
  ADD CONSTRAINT filecontent_bounded CHECK (octet_length(body) <= 1048576);

CREATE INDEX corpuspassage_words ON orchestrator_corpuspassage USING gin (search);
