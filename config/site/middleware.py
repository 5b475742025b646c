"""Middleware for response headers beyond Django's own, and for the compression of static files."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.decorators import sync_and_async_middleware

NOT_NEEDED = (
    "accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "fullscreen", "geolocation",
    "gyroscope", "magnetometer", "microphone", "midi", "payment", "screen-wake-lock", "serial", "usb",
    "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS = ", ".join(f"{name}=()" for name in NOT_NEEDED)


@sync_and_async_middleware
def permissions_policy(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Set `Permissions-Policy`: no page uses any device feature except passkeys (R-SEC-5)."""
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            waiting: Awaitable[HttpResponseBase] = get_response(request)
            response = await waiting
            response.headers["Permissions-Policy"] = PERMISSIONS
            return response

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = get_response(request)
        response.headers["Permissions-Policy"] = PERMISSIONS
        return response

    return answer


class CompressStatic(GZipMiddleware):
    """Compresses static files only.

    A page may repeat a caller's input next to a secret; the size of its compressed form would leak the
    secret.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return the response; a static file is compressed if the browser accepts that."""
        if not request.path.startswith(settings.STATIC_URL):
            return response
        chunks = response.streaming_content if isinstance(response, StreamingHttpResponse) else None
        compressed: HttpResponseBase = super().process_response(request, response)
        squeezed = compressed.headers.get("Content-Encoding") == "gzip"
        if squeezed and isinstance(compressed, StreamingHttpResponse) and compressed.is_async:
            # Django compresses each chunk as a separate gzip file, of which browsers read the first only.
            compressed.streaming_content = one_file(cast("AsyncIterator[bytes]", chunks))
        return compressed


async def one_file(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Compress the chunks into one gzip file."""
    packer = zlib.compressobj(wbits=31)
    async for chunk in chunks:
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()
