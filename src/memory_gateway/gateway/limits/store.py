"""The SQL of limits that several processes share. A row says what its bucket held at a time; a full bucket needs none.

``name`` is the kind of limit, a colon, and a user or a client address. It is gone some time after the bucket is full.
"""

# a process whose clock is behind another's adds nothing, and takes nothing away for it
TAKE = """
INSERT INTO token_buckets (name, tokens, at_ms, full_at_ms)
VALUES (:name, CAST(:burst AS DOUBLE PRECISION) - :taken, :now_ms, :full_at_ms)
ON CONFLICT (name) DO UPDATE SET
  tokens = CASE
    WHEN excluded.at_ms <= token_buckets.at_ms THEN token_buckets.tokens - :taken
    WHEN token_buckets.tokens + (excluded.at_ms - token_buckets.at_ms) * CAST(:rate AS DOUBLE PRECISION) / 1000 > :burst
    THEN :burst - :taken
    ELSE token_buckets.tokens + (excluded.at_ms - token_buckets.at_ms) * CAST(:rate AS DOUBLE PRECISION) / 1000 - :taken
  END,
  at_ms = excluded.at_ms,
  full_at_ms = excluded.full_at_ms
RETURNING tokens
"""
DROP_FULL = "DELETE FROM token_buckets WHERE full_at_ms <= :now_ms"
