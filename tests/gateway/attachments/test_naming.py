import pytest

from memory_gateway.engine.schemas import ContentItem
from memory_gateway.gateway.attachments.naming import attachment_name


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (ContentItem("image", uri="https://a.example/x/b.png", name="Photo 1.png"), "Photo 1.png"),
        (ContentItem("image", base64="QUJD", name="../../etc/x"), "../../etc/x"),
        (ContentItem("image", uri="https://a.example/x/b.png?size=2#top"), "b.png"),
        (ContentItem("doc", uri="file:///home/ann/%E5%AD%A3%E5%BA%A6%20Q1.docx"), "季度 Q1.docx"),
        (ContentItem("doc", uri="s3://bucket/folder/notes.txt"), "notes.txt"),
        (ContentItem("doc", uri="https://a.example/%2e%2e%2fpasswd"), "passwd"),
        (ContentItem("doc", uri="https://a.example/folder/"), "folder"),
        (ContentItem("doc", uri="https://a.example", ext="pdf"), "attachment.pdf"),
        (ContentItem("doc", uri="https://[broken", ext="pdf"), "attachment.pdf"),
        (ContentItem("image", uri="data:image/png;base64,QUJD/x", ext="png"), "attachment.png"),
        (ContentItem("image", base64="QUJD", ext="png"), "attachment.png"),
        (ContentItem("image", base64="QUJD", ext=".png", name="  "), "attachment.png"),
        (ContentItem("image", base64="QUJD", ext="../x"), "x"),
        (ContentItem("image", base64="QUJD"), "attachment"),
    ],
)
def test_a_name_is_the_given_one_else_made_from_uri_or_extension(item: ContentItem, name: str) -> None:
    assert attachment_name(item) == name
