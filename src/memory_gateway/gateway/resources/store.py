"""The SQL of resources. Live rows are those without ``deleted_at``; deleted ones are history.

`UNFINISHED` is the one statement over all users: what it finds is worked on under a lease. It gives the first of
every user, then the second of every user, so that one user's many hide nobody else's.
"""

# The columns of `schemas.Resource`, in its order: a row becomes a struct by position.
PAGE = """
SELECT id, 'resource://' || id, name, title, content_type, mime_type, size, sha256, app_id, project_id, session_id,
  status, error, created_at, deleted_at
FROM user_resources
WHERE user_id = :user_id AND deleted_at IS NULL AND (created_at, id) < (:before, :before_id)
ORDER BY created_at DESC, id DESC LIMIT :limit
"""
FILTERED_PAGE = """
SELECT id, 'resource://' || id, name, title, content_type, mime_type, size, sha256, app_id, project_id, session_id,
  status, error, created_at, deleted_at
FROM user_resources
WHERE user_id = :user_id AND deleted_at IS NULL AND (created_at, id) < (:before, :before_id)
  AND (CAST(:app_id AS TEXT) IS NULL OR app_id = :app_id)
  AND (CAST(:project_id AS TEXT) IS NULL OR project_id = :project_id)
ORDER BY created_at DESC, id DESC LIMIT :limit
"""
# The same, then the rest of `schemas.StoredResource`.
ONE = """
SELECT id, 'resource://' || id, name, title, content_type, mime_type, size, sha256, app_id, project_id, session_id,
  status, error, created_at, deleted_at, user_id, stored_name, internal_uri
FROM user_resources WHERE user_id = :user_id AND id = :id
"""
TWIN = """
SELECT id, 'resource://' || id, name, title, content_type, mime_type, size, sha256, app_id, project_id, session_id,
  status, error, created_at, deleted_at, user_id, stored_name, internal_uri
FROM user_resources
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND sha256 = :sha256 AND deleted_at IS NULL
"""
UNFINISHED = """
SELECT user_id, id FROM (
  SELECT user_id, id, created_at, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY created_at, id) AS place
  FROM user_resources WHERE status = 'stored' AND deleted_at IS NULL
) AS unfinished
ORDER BY place, created_at, id LIMIT :limit
"""

INSERT = """
INSERT INTO user_resources (
  id, user_id, app_id, project_id, session_id, name, title, content_type, mime_type, size, sha256, stored_name,
  internal_uri, status, created_at
) VALUES (
  :id, :user_id, :app_id, :project_id, :session_id, :name, :title, :content_type, :mime_type, :size, :sha256,
  :stored_name, :internal_uri, :status, :created_at
)
"""
SET_STATUS = "UPDATE user_resources SET status = :status, error = :error WHERE user_id = :user_id AND id = :id"
TRY_AGAIN = """
UPDATE user_resources SET status = 'stored', error = NULL
WHERE user_id = :user_id AND id = :id AND status = 'failed'
"""
SOFT_DELETE = """
UPDATE user_resources SET deleted_at = :now WHERE user_id = :user_id AND id = :id AND deleted_at IS NULL
"""
RESTORE = """
UPDATE user_resources SET deleted_at = NULL WHERE user_id = :user_id AND id = :id AND deleted_at IS NOT NULL
"""
REMOVE = "DELETE FROM user_resources WHERE user_id = :user_id AND id = :id"

LIVE_SESSIONS = """
SELECT session_id FROM user_resources
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND deleted_at IS NULL
ORDER BY created_at, id LIMIT :most
"""
DELETED_SESSIONS = """
SELECT session_id FROM user_resources
WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id AND deleted_at IS NOT NULL
LIMIT :most
"""
LIVE_IDS = "SELECT id FROM user_resources WHERE user_id = :user_id AND deleted_at IS NULL AND id IN (:ids)"

EXPORT = """
SELECT id, 'resource://' || id, name, title, content_type, mime_type, size, sha256, app_id, project_id, session_id,
  status, error, created_at, deleted_at, user_id, stored_name, internal_uri
FROM user_resources WHERE user_id = :user_id ORDER BY created_at, id
"""
ERASE = "DELETE FROM user_resources WHERE user_id = :user_id"
