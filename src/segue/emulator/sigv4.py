"""Verifies AWS Signature Version 4 on the server's side."""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from urllib.parse import quote

from segue.emulator.http_messages import HttpRequest

__all__ = ["find_access_key", "is_signed_with"]

_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/"
    r"(?P<scope>(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request),"
    r"\s*SignedHeaders=(?P<headers>[^,]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)


def find_access_key(http_request: HttpRequest) -> str | None:
    match = _SIGNED.match(http_request.headers.get("authorization", ""))
    return match["key"] if match else None


def is_signed_with(http_request: HttpRequest, key_id: str, secret: str) -> bool:
    match = _SIGNED.match(http_request.headers.get("authorization", ""))
    if match is None or match["key"] != key_id:
        return False
    names = match["headers"].split(";")
    headers = "".join(f"{name}:{' '.join(http_request.headers.get(name, '').split())}\n" for name in names)
    # The canonical request escapes the path a second time and sorts the query.
    path = quote(http_request.raw_path or "/", safe="/-_.~")
    query = "&".join(sorted(part for part in http_request.raw_query.split("&") if part))
    body = sha256(http_request.body).hexdigest()
    canonical = "\n".join((http_request.method, path, query, headers, match["headers"], body))
    stamp = http_request.headers.get("x-amz-date", "")
    string_to_sign = "\n".join(("AWS4-HMAC-SHA256", stamp, match["scope"], sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in (match["day"], match["region"], match["service"], "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.compare_digest(hmac.digest(key, string_to_sign.encode(), "sha256").hex(), match["signature"])
