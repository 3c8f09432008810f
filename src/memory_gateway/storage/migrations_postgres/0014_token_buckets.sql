CREATE TABLE token_buckets (
  name TEXT COLLATE "C" PRIMARY KEY,
  tokens DOUBLE PRECISION NOT NULL,
  at_ms BIGINT NOT NULL,
  full_at_ms BIGINT NOT NULL
);
CREATE INDEX token_buckets_full ON token_buckets (full_at_ms);
