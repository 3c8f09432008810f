CREATE TABLE users (
  user_id TEXT PRIMARY KEY,
  folded_id TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL,
  erased_at TEXT,
  cleared_at TEXT,
  settled_at TEXT
);
CREATE TABLE user_keys (
  user_id TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  stops_at TEXT,
  closed_at TEXT,
  PRIMARY KEY (user_id, key_hash)
);
