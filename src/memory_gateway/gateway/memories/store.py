"""All SQL of this room.

``session_owners`` is keyed by the session's name; its statements tell a user only whether a session is their own.
Its ``writers`` counts the adds of which words may be in the session; ``stored_at`` says that there are some for sure.
"""

# Sessions

OWNER = """
SELECT user_id = :user_id, stored_at IS NOT NULL FROM session_owners
WHERE app_id = :app_id AND project_id = :project_id AND session_id = :session_id
"""
OWN_SESSIONS = """
SELECT session_id, user_id = :user_id FROM session_owners
WHERE app_id = :app_id AND project_id = :project_id AND session_id IN (:session_ids)
"""
CLAIM = """
INSERT INTO session_owners (app_id, project_id, session_id, user_id, claimed_at, writers)
VALUES (:app_id, :project_id, :session_id, :user_id, :now, 1)
ON CONFLICT (app_id, project_id, session_id) DO UPDATE SET writers = session_owners.writers + 1
WHERE session_owners.user_id = excluded.user_id AND session_owners.stored_at IS NULL
"""
KEEP_CLAIM = """
UPDATE session_owners SET stored_at = :now
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND stored_at IS NULL
"""
LEAVE_CLAIM = """
UPDATE session_owners SET writers = writers - 1
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND stored_at IS NULL
"""
DROP_CLAIM = """
DELETE FROM session_owners
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND session_id = :session_id
  AND stored_at IS NULL AND writers <= 0
"""
EXPORT_SESSIONS = """
SELECT app_id, project_id, session_id, claimed_at FROM session_owners
WHERE user_id = :user_id ORDER BY claimed_at, session_id
"""
ERASE_SESSIONS = "DELETE FROM session_owners WHERE user_id = :user_id"

# Idempotency keys

FIND_REPLY = """
SELECT body_hash, held_until, status, reply FROM idempotency_keys
WHERE user_id = :user_id AND endpoint = :endpoint AND idempotency_key = :key AND expires_at > :now
"""
HOLD_KEY = """
INSERT INTO idempotency_keys (user_id, endpoint, idempotency_key, body_hash, holder, held_until, expires_at)
VALUES (:user_id, :endpoint, :key, :body_hash, :holder, :held_until, :expires_at)
ON CONFLICT (user_id, endpoint, idempotency_key) DO UPDATE SET
  body_hash = excluded.body_hash, holder = excluded.holder, held_until = excluded.held_until,
  expires_at = excluded.expires_at, status = NULL, reply = NULL
WHERE idempotency_keys.expires_at <= :now
  OR (idempotency_keys.status IS NULL AND idempotency_keys.held_until <= :now)
"""
HOLD_KEY_LONGER = """
UPDATE idempotency_keys SET held_until = :held_until
WHERE user_id = :user_id AND endpoint = :endpoint AND idempotency_key = :key AND holder = :holder AND status IS NULL
"""
REMEMBER_REPLY = """
UPDATE idempotency_keys SET status = :status, reply = :reply, expires_at = :expires_at
WHERE user_id = :user_id AND endpoint = :endpoint AND idempotency_key = :key AND holder = :holder AND status IS NULL
"""
FORGET_KEY = """
DELETE FROM idempotency_keys
WHERE user_id = :user_id AND endpoint = :endpoint AND idempotency_key = :key AND holder = :holder AND status IS NULL
"""
DROP_EXPIRED_KEYS = "DELETE FROM idempotency_keys WHERE expires_at <= :now"
EXPORT_KEYS = """
SELECT endpoint, idempotency_key, expires_at, status, reply FROM idempotency_keys
WHERE user_id = :user_id ORDER BY endpoint, idempotency_key
"""
ERASE_KEYS = "DELETE FROM idempotency_keys WHERE user_id = :user_id"

# Memories that a user was shown

SAVE_SHOWN = """
INSERT INTO shown_memories (user_id, app_id, project_id, memory_type, memory_id, session_id, snapshot, shown_at)
VALUES (:user_id, :app_id, :project_id, :memory_type, :memory_id, :session_id, :snapshot, :shown_at)
ON CONFLICT (user_id, app_id, project_id, memory_type, memory_id) DO UPDATE SET
  session_id = excluded.session_id, snapshot = excluded.snapshot, shown_at = excluded.shown_at
"""
FIND_SHOWN = """
SELECT snapshot FROM shown_memories
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id
"""
TRIM_SHOWN = """
DELETE FROM shown_memories
WHERE user_id = :user_id
  AND shown_at < (
    SELECT shown_at FROM shown_memories WHERE user_id = :user_id ORDER BY shown_at DESC LIMIT 1 OFFSET :newer
  )
  AND shown_at < :spared_from
  AND NOT EXISTS (
    SELECT 1 FROM memory_overrides AS o
    WHERE o.user_id = :user_id AND o.app_id = shown_memories.app_id AND o.project_id = shown_memories.project_id
      AND o.memory_type = shown_memories.memory_type AND o.memory_id = shown_memories.memory_id
      AND o.replaced_at IS NULL AND o.removed_at IS NULL
  )
"""
EXPORT_SHOWN = """
SELECT app_id, project_id, memory_type, memory_id, session_id, snapshot, shown_at FROM shown_memories
WHERE user_id = :user_id ORDER BY shown_at, memory_id
"""
ERASE_SHOWN = "DELETE FROM shown_memories WHERE user_id = :user_id"

# Tombstones and overrides that stand: of the two only an override has a text

ACTIVE_EDITS = """
SELECT memory_type, memory_id, content_hash, NULL AS text, NULL AS session_id FROM memory_tombstones
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND restored_at IS NULL
UNION ALL
SELECT memory_type, memory_id, NULL, text, session_id FROM memory_overrides
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND replaced_at IS NULL AND removed_at IS NULL
LIMIT :most
"""

# Tombstones

ACTIVE_TOMBSTONE = """
SELECT created_at FROM memory_tombstones
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id AND restored_at IS NULL
"""
ADD_TOMBSTONE = """
INSERT INTO memory_tombstones
  (user_id, app_id, project_id, memory_type, memory_id, version, content_hash, created_at)
SELECT :user_id, :app_id, :project_id, :memory_type, :memory_id, COALESCE(MAX(version), 0) + 1, :content_hash, :now
FROM memory_tombstones
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id
ON CONFLICT DO NOTHING
"""
LIFT_TOMBSTONE = """
UPDATE memory_tombstones SET restored_at = :now
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id AND restored_at IS NULL
"""
TOMBSTONES_OF_MEMORY = """
SELECT created_at, restored_at FROM memory_tombstones
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id ORDER BY version
"""
EXPORT_TOMBSTONES = """
SELECT app_id, project_id, memory_type, memory_id, created_at, restored_at FROM memory_tombstones
WHERE user_id = :user_id ORDER BY created_at, memory_id, version
"""
ERASE_TOMBSTONES = "DELETE FROM memory_tombstones WHERE user_id = :user_id"

# Overrides

HAS_HISTORY = """
SELECT 1 FROM memory_tombstones
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id
UNION ALL
SELECT 1 FROM memory_overrides
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id
LIMIT 1
"""
ACTIVE_OVERRIDE = """
SELECT text, reason, version, created_at FROM memory_overrides
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id AND replaced_at IS NULL AND removed_at IS NULL
"""
REPLACE_OVERRIDE = """
UPDATE memory_overrides SET replaced_at = :now
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id AND replaced_at IS NULL AND removed_at IS NULL
"""
ADD_OVERRIDE = """
INSERT INTO memory_overrides
  (user_id, app_id, project_id, memory_type, memory_id, version, session_id, text, reason, created_at)
SELECT :user_id, :app_id, :project_id, :memory_type, :memory_id, COALESCE(MAX(version), 0) + 1,
  :session_id, :text, :reason, :now
FROM memory_overrides
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id
"""
REMOVE_OVERRIDE = """
UPDATE memory_overrides SET removed_at = :now
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id AND replaced_at IS NULL AND removed_at IS NULL
"""
OVERRIDES_OF_MEMORY = """
SELECT created_at, removed_at, text, reason FROM memory_overrides
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
  AND memory_type = :memory_type AND memory_id = :memory_id ORDER BY version
"""
EXPORT_OVERRIDES = """
SELECT app_id, project_id, memory_type, memory_id, version, text, reason, created_at, replaced_at, removed_at
FROM memory_overrides
WHERE user_id = :user_id ORDER BY created_at, memory_id, version
"""
ERASE_OVERRIDES = "DELETE FROM memory_overrides WHERE user_id = :user_id"
