"""The SQL of the upstreams: what they ask of the gateway's tables, what was sent, and what waits to be sent.

``sent_messages`` belongs to `memory_gateway.upstream.each_once`. Its ``state`` is ``reserved`` until the upstream has
answered for the message, then ``arrived``, and ``settled`` once the session was flushed after it.
``outbox`` belongs to `memory_gateway.upstream.outbox`. A row without messages is a flush; one with an error was
given up.
"""

FIND_ERASED = "SELECT user_id FROM users WHERE user_id = :user_id AND erased_at IS NOT NULL"

# Messages sent

SENT = """
SELECT digest FROM sent_messages
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND state <> 'reserved' AND digest IN (:digests)
"""
SLOT_OF_ANOTHER = """
SELECT 1 FROM sent_messages
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND timestamp_ms = :timestamp_ms AND place = :place AND digest <> :digest
"""
RESERVE = """
INSERT INTO sent_messages
  (user_id, app_id, project_id, session_id, digest, timestamp_ms, place, state, sent_at)
VALUES (:user_id, :app_id, :project_id, :session_id, :digest, :timestamp_ms, :place, 'reserved', :now)
ON CONFLICT (user_id, app_id, project_id, session_id, digest) DO UPDATE SET
  timestamp_ms = excluded.timestamp_ms, place = excluded.place, sent_at = excluded.sent_at
"""
ARRIVED = """
UPDATE sent_messages SET state = 'arrived'
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND digest = :digest AND state = 'reserved'
"""
SETTLE = """
UPDATE sent_messages SET state = 'settled'
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND state = 'arrived'
"""
DOUBT = """
UPDATE sent_messages SET state = 'reserved'
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND state = 'arrived'
"""
DROP_OLD_SENT = "DELETE FROM sent_messages WHERE user_id = :user_id AND sent_at <= :before"
EXPORT_SENT = """
SELECT app_id, project_id, session_id, digest, timestamp_ms, state, sent_at FROM sent_messages
WHERE user_id = :user_id ORDER BY sent_at, session_id, timestamp_ms, place
"""
ERASE_SENT = "DELETE FROM sent_messages WHERE user_id = :user_id"

# Requests that wait

WAITS = """
SELECT 1 FROM outbox
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND error IS NULL LIMIT 1
"""
COUNT_OF_USER = "SELECT COUNT(*) FROM outbox WHERE user_id = :user_id"
COUNT_WAITING = "SELECT COUNT(*) FROM outbox WHERE error IS NULL"
KEEP = """
INSERT INTO outbox (user_id, id, app_id, project_id, session_id, messages, tries, next_at)
VALUES (:user_id, :id, :app_id, :project_id, :session_id, :messages, 0, :next_at)
"""
DUE = """
SELECT user_id, id, app_id, project_id, session_id, tries FROM outbox AS o
WHERE next_at <= :now AND error IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM outbox AS earlier
    WHERE earlier.user_id = o.user_id AND earlier.app_id = o.app_id AND earlier.project_id = o.project_id
      AND earlier.session_id = o.session_id AND earlier.id < o.id AND earlier.error IS NULL
  )
ORDER BY id LIMIT 20
"""
MESSAGES = "SELECT messages FROM outbox WHERE user_id = :user_id AND id = :id"
DELIVERED = "DELETE FROM outbox WHERE user_id = :user_id AND id = :id"
TRY_LATER = "UPDATE outbox SET tries = tries + 1, next_at = :next_at WHERE user_id = :user_id AND id = :id"
GIVE_UP = "UPDATE outbox SET error = :error, tries = tries + 1 WHERE user_id = :user_id AND id = :id"
EXPORT_OUTBOX = """
SELECT app_id, project_id, session_id, messages, tries, error FROM outbox WHERE user_id = :user_id ORDER BY id
"""
ERASE_OUTBOX = "DELETE FROM outbox WHERE user_id = :user_id"
