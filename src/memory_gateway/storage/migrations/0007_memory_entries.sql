CREATE TABLE memory_users (
  user_no INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id TEXT NOT NULL UNIQUE,
  last_entry_no INTEGER NOT NULL DEFAULT 0,
  change_no BIGINT NOT NULL DEFAULT 0,
  unindexed_count INTEGER NOT NULL DEFAULT 0,
  indexed_count INTEGER NOT NULL DEFAULT 0,
  segment_count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE memory_entries (
  entry_key INTEGER PRIMARY KEY,
  user_no INTEGER NOT NULL,
  importance INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  category TEXT NOT NULL,
  expires_at TEXT,
  content_hash BIGINT NOT NULL,
  change_no BIGINT NOT NULL,
  bigram_count INTEGER NOT NULL,
  access_count INTEGER NOT NULL,
  last_access TEXT NOT NULL,
  demoted_at TEXT,
  id TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  session_id TEXT NOT NULL,
  summary_derived INTEGER NOT NULL,
  keywords TEXT NOT NULL,
  summary TEXT NOT NULL,
  content TEXT NOT NULL,
  folded TEXT NOT NULL
);
CREATE UNIQUE INDEX memory_entries_id ON memory_entries (id);
CREATE INDEX memory_entries_order ON memory_entries (user_no, importance, priority, entry_key, expires_at);
CREATE INDEX memory_entries_category ON memory_entries (
  user_no, category, importance, priority, entry_key, expires_at
);
CREATE INDEX memory_entries_expiry ON memory_entries (user_no, expires_at, category, importance)
WHERE expires_at IS NOT NULL;
CREATE TABLE memory_counts (
  user_no INTEGER NOT NULL,
  category TEXT NOT NULL,
  importance INTEGER NOT NULL,
  entries INTEGER NOT NULL,
  PRIMARY KEY (user_no, category, importance)
) WITHOUT ROWID;
CREATE TABLE memory_sentences (
  user_no INTEGER NOT NULL,
  sentence_hash BIGINT NOT NULL,
  entry_no INTEGER NOT NULL,
  PRIMARY KEY (user_no, sentence_hash, entry_no)
) WITHOUT ROWID;
CREATE TABLE memory_signatures (
  user_no INTEGER NOT NULL,
  level INTEGER NOT NULL,
  chunk_no INTEGER NOT NULL,
  records BLOB NOT NULL,
  PRIMARY KEY (user_no, level, chunk_no)
);
CREATE TABLE memory_unindexed (
  user_no INTEGER NOT NULL,
  entry_key INTEGER NOT NULL,
  PRIMARY KEY (user_no, entry_key)
) WITHOUT ROWID;
CREATE TABLE memory_postings (
  user_no INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  block_no INTEGER NOT NULL,
  postings BLOB NOT NULL,
  PRIMARY KEY (user_no, bucket, block_no)
);
