"""All SQL on thinking logs."""

INSERT = """
INSERT INTO thinking_logs (id, user_id, content, tool_calls, tool_call_count, content_length, created_at)
VALUES (:id, :user_id, :content, :tool_calls, :tool_call_count, :content_length, :created_at)
"""
NEWEST = """
SELECT id, user_id, content, tool_calls, tool_call_count, content_length, created_at FROM thinking_logs
WHERE user_id = :user_id ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset
"""
COUNT = "SELECT COUNT(*) FROM thinking_logs WHERE user_id = :user_id"
FIND = """
SELECT id, user_id, content, tool_calls, tool_call_count, content_length, created_at FROM thinking_logs WHERE id = :id
"""
STATS = """
SELECT COUNT(*), COALESCE(SUM(tool_call_count), 0), COALESCE(AVG(content_length), 0.0), COALESCE(MAX(created_at), '')
FROM thinking_logs WHERE user_id = :user_id
"""
STATS_OF_ALL = """
SELECT COUNT(*), COALESCE(SUM(tool_call_count), 0), COALESCE(AVG(content_length), 0.0), COALESCE(MAX(created_at), '')
FROM thinking_logs
"""
NEXT_OLDEST = """
SELECT id, user_id, content, tool_calls, tool_call_count, content_length, created_at FROM thinking_logs
WHERE user_id = :user_id AND (created_at, id) > (:created_at, :id) ORDER BY created_at, id LIMIT :limit
"""
ERASE = "DELETE FROM thinking_logs WHERE user_id = :user_id"
