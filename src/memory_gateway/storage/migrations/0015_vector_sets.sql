ALTER TABLE engine_spaces ADD COLUMN vector_set INTEGER NOT NULL DEFAULT 0;
ALTER TABLE engine_spaces ADD COLUMN former_model TEXT;
ALTER TABLE engine_spaces ADD COLUMN former_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE engine_spaces ADD COLUMN former_set INTEGER NOT NULL DEFAULT 0;
DROP INDEX engine_spaces_model;
CREATE INDEX engine_spaces_model ON engine_spaces (embedding_model) WHERE embedding_model IS NOT NULL;
CREATE INDEX engine_spaces_former ON engine_spaces (space_no) WHERE former_model IS NOT NULL;
ALTER TABLE engine_vectors RENAME TO engine_vectors_before;
CREATE TABLE engine_vectors (
  space_no INTEGER NOT NULL,
  set_no INTEGER NOT NULL,
  block_no INTEGER NOT NULL,
  vectors BLOB NOT NULL,
  PRIMARY KEY (space_no, set_no, block_no)
);
INSERT INTO engine_vectors (space_no, set_no, block_no, vectors)
SELECT space_no, 0, block_no, vectors FROM engine_vectors_before ORDER BY space_no, block_no;
DROP TABLE engine_vectors_before;
