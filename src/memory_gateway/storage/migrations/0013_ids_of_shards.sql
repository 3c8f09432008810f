DROP INDEX memory_entries_id;
CREATE UNIQUE INDEX memory_entries_id ON memory_entries (id, user_no);
ALTER TABLE thinking_logs ADD COLUMN shard_key INTEGER NOT NULL DEFAULT 0;
UPDATE thinking_logs SET shard_key = shard_key(user_id);
DROP INDEX thinking_logs_newest;
CREATE INDEX thinking_logs_newest
  ON thinking_logs (shard_key, user_id, created_at, id, tool_call_count, content_length);
CREATE INDEX users_erased ON users (user_id) WHERE erased_at IS NOT NULL;
