"""All SQL on thinking logs. ``shard_key`` is a number made of the user's id: the logs' own ids carry it."""

INSERT = """
INSERT INTO thinking_logs (id, shard_key, user_id, content, tool_calls, tool_call_count, content_length, created_at)
VALUES (:id, :shard_key, :user_id, :content, :tool_calls, :tool_call_count, :content_length, :created_at)
ON CONFLICT DO NOTHING
"""
NEWEST = """
SELECT id, user_id, content, tool_calls, tool_call_count, content_length, created_at FROM thinking_logs
WHERE shard_key = :shard_key AND user_id = :user_id ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset
"""
COUNT = "SELECT COUNT(*) FROM thinking_logs WHERE shard_key = :shard_key AND user_id = :user_id"
FIND = """
SELECT id, user_id, content, tool_calls, tool_call_count, content_length, created_at FROM thinking_logs
WHERE id = :id AND shard_key = :shard_key
"""
FIND_BY_ID_ALONE = """
SELECT id, user_id, content, tool_calls, tool_call_count, content_length, created_at FROM thinking_logs WHERE id = :id
"""
STATS = """
SELECT COUNT(*), CAST(COALESCE(SUM(tool_call_count), 0) AS BIGINT),
  CAST(COALESCE(AVG(content_length), 0.0) AS DOUBLE PRECISION), COALESCE(MAX(created_at), '')
FROM thinking_logs WHERE shard_key = :shard_key AND user_id = :user_id
"""
STATS_OF_ALL = """
SELECT COUNT(*), CAST(COALESCE(SUM(tool_call_count), 0) AS BIGINT),
  CAST(COALESCE(AVG(content_length), 0.0) AS DOUBLE PRECISION), COALESCE(MAX(created_at), '')
FROM thinking_logs
"""
NEXT_OLDEST = """
SELECT id, user_id, content, tool_calls, tool_call_count, content_length, created_at FROM thinking_logs
WHERE shard_key = :shard_key AND user_id = :user_id AND (created_at, id) > (:created_at, :id)
ORDER BY created_at, id LIMIT :limit
"""
ERASE = "DELETE FROM thinking_logs WHERE shard_key = :shard_key AND user_id = :user_id"
