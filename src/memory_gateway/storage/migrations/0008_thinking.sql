CREATE TABLE thinking_logs (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  content TEXT NOT NULL,
  tool_calls TEXT NOT NULL,
  tool_call_count INTEGER NOT NULL,
  content_length INTEGER NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX thinking_logs_newest ON thinking_logs (user_id, created_at, id, tool_call_count, content_length);
