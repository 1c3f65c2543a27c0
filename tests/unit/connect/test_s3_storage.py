"""Which failures of S3 are tried again."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect.api import ConfigDef, ConnectError, RetriableError
from moldau.connect.connectors.s3.storage import S3, define_s3

COMPLETING = "When completing multiple part upload for key 'a' in bucket 'b': AWS Error UNKNOWN "


class Failing:
    """A file system whose streams fail when they are closed."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def open_output_stream(self, path: str, compression: None, metadata: Any) -> Any:
        raise OSError(self._reason)


@pytest.mark.parametrize(
    ("reason", "again"),
    [
        pytest.param(
            f"{COMPLETING}(HTTP status 400) during CompleteMultipartUpload operation: Unable to "
            "parse ExceptionName: InvalidPart Message: One or more of the parts is not there",
            True,
            id="a restarted storage lost a part",
        ),
        pytest.param(
            "AWS Error NO_SUCH_UPLOAD during CompleteMultipartUpload operation: The specified "
            "multipart upload does not exist",
            True,
            id="a restarted storage lost the upload",
        ),
        pytest.param("AWS Error NETWORK_CONNECTION during UploadPart", True, id="away"),
        pytest.param("AWS Error ACCESS_DENIED during UploadPart", False, id="not allowed"),
    ],
)
def test_what_passes_is_tried_again(reason: str, again: bool) -> None:
    storage = S3(define_s3(ConfigDef()).parse({"s3.bucket.name": "b"}))
    storage._client = Failing(reason)
    with pytest.raises(ConnectError, match="writing a in bucket b failed") as failure:
        storage.write("a", b"x")
    assert isinstance(failure.value, RetriableError) is again
