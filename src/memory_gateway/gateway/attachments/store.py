"""The SQL of attachments and of the intents that guard their files.

`BACKFILL` and `CLAIM_EXPIRED` are the statements over all users: run at start-up, and bounded by a lease.
"""

# A client's own URI is one row a session, whatever the app (the unique index says so); files we keep never cross apps.
LIVE_OF_SESSIONS = """
SELECT session_id, content_type, name, internal_uri FROM memory_attachments
WHERE user_id = :user_id AND session_id IN (:session_ids) AND deleted_at IS NULL
  AND (source = 'memory_add_uri' OR (app_id = :app_id AND project_id = :project_id))
ORDER BY created_at, id
"""
SAME_FILE = """
SELECT id, internal_uri FROM memory_attachments
WHERE user_id = :user_id AND session_id = :session_id AND app_id = :app_id AND project_id = :project_id
  AND source = 'memory_add_base64' AND sha256 = :sha256 AND name = :name
ORDER BY created_at, id LIMIT 1
"""
WRITE = """
INSERT INTO memory_attachments (
  id, user_id, app_id, project_id, session_id, resource_id, content_type, name, internal_uri, source, sha256, created_at
) VALUES (
  :id, :user_id, :app_id, :project_id, :session_id, :resource_id, :content_type, :name, :internal_uri, :source,
  :sha256, :created_at
)
ON CONFLICT (user_id, session_id, internal_uri) DO UPDATE SET
  name = excluded.name, content_type = excluded.content_type, deleted_at = NULL
"""
SOFT_DELETE = """
UPDATE memory_attachments SET deleted_at = :now
WHERE user_id = :user_id AND session_id = :session_id AND deleted_at IS NULL
"""
RESTORE = """
UPDATE memory_attachments SET deleted_at = NULL
WHERE user_id = :user_id AND session_id = :session_id AND deleted_at IS NOT NULL
"""
REMOVE = "DELETE FROM memory_attachments WHERE user_id = :user_id AND session_id = :session_id"
BACKFILL = """
INSERT INTO memory_attachments (
  id, user_id, app_id, project_id, session_id, resource_id, content_type, name, internal_uri, source, sha256, created_at
)
SELECT r.id, r.user_id, r.app_id, r.project_id, r.session_id, r.id, r.content_type, r.name, r.internal_uri,
  'resource_upload', r.sha256, r.created_at
FROM user_resources r
WHERE r.deleted_at IS NULL AND NOT EXISTS (
  SELECT 1 FROM memory_attachments a
  WHERE a.user_id = r.user_id AND a.session_id = r.session_id AND a.internal_uri = r.internal_uri
    AND a.deleted_at IS NULL
)
ON CONFLICT (user_id, session_id, internal_uri) DO UPDATE SET deleted_at = NULL
"""
EXPORT_KEYS = (
    "id",
    "app_id",
    "project_id",
    "session_id",
    "resource_id",
    "content_type",
    "name",
    "internal_uri",
    "source",
    "sha256",
    "created_at",
    "deleted_at",
)
EXPORT = """
SELECT id, app_id, project_id, session_id, resource_id, content_type, name, internal_uri, source, sha256, created_at,
  deleted_at
FROM memory_attachments WHERE user_id = :user_id ORDER BY created_at, id
"""
ERASE = "DELETE FROM memory_attachments WHERE user_id = :user_id"

OPEN_INTENT = """
INSERT INTO file_intents (user_id, folder, expires_at_ms) VALUES (:user_id, :folder, :expires_at_ms)
"""
RENEW_INTENT = """
UPDATE file_intents SET expires_at_ms = :expires_at_ms
WHERE user_id = :user_id AND folder = :folder AND claimed = 0
"""
KEEP_FILES = "DELETE FROM file_intents WHERE user_id = :user_id AND folder = :folder AND claimed = 0"
CLAIM = """
UPDATE file_intents SET claimed = 1, expires_at_ms = :expires_at_ms
WHERE user_id = :user_id AND folder = :folder AND claimed = 0
"""
DOOM_FILES = """
INSERT INTO file_intents (user_id, folder, expires_at_ms, claimed) VALUES (:user_id, :folder, :expires_at_ms, 1)
ON CONFLICT (user_id, folder) DO UPDATE SET claimed = 1
"""
CLOSE_INTENT = "DELETE FROM file_intents WHERE user_id = :user_id AND folder = :folder"
CLAIM_EXPIRED = """
UPDATE file_intents SET claimed = 1, expires_at_ms = :expires_at_ms WHERE expires_at_ms <= :now_ms
RETURNING user_id, folder
"""
FORGET_INTENTS = "DELETE FROM file_intents WHERE user_id = :user_id"
