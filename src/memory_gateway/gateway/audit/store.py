"""All SQL on the audit log."""

INSERT = """
INSERT INTO audit_log (id, user_id, at, action, object_type, object_id, request_id)
VALUES (:id, :user_id, :at, :action, :object_type, :object_id, :request_id)
"""
OF_USER = """
SELECT at, action, object_type, object_id, request_id FROM audit_log WHERE user_id = :user_id ORDER BY at, id
"""
FORGET_OBJECTS = """
UPDATE audit_log SET object_id = '' WHERE user_id = :user_id AND object_type <> 'user'
"""
