"""A real OpenID Connect provider on loopback, whole: discovery to user info. It can lie."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CLIENT, SECRET = "interlock", "the client's secret"
WELL_KNOWN = "/.well-known/openid-configuration"
Json = dict[str, Any]


@cache
def signing_key(algorithm: str) -> Any:
    """A private key for it: made once, for making one takes a while."""
    if algorithm.startswith("RS"):
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


class IdentityProvider:
    """It. What it says of whom is set by the test; `altered` replaces claims of the next tokens."""

    def __init__(self) -> None:
        self.person: Json = {}
        self.altered: Json = {}
        self.told: Json = {}
        self.description: Json = {}
        self.moved: dict[str, str] = {}
        self.algorithm = "ES256"
        self.signed_with: tuple[str, Any] | None = None
        self.asked: Json = {}
        self._codes: dict[str, Json] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """The issuer."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Gone."""
        self._server.shutdown()
        self._server.server_close()

    def authorize(self, address: str) -> str:
        """The person signs in here; the address that the browser is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        self.asked = asked
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def _discovery(self) -> Json:
        said: Json = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            **self.description,
        }
        return {name: value for name, value in said.items() if value is not None}

    def _keys(self) -> Json:
        algorithm = jwt.get_algorithm_by_name(self.algorithm)
        public: Json = algorithm.to_jwk(signing_key(self.algorithm).public_key(), as_dict=True)
        return {"keys": [public | {"kid": "one", "alg": self.algorithm, "use": "sig"}]}

    def _token(self, form: dict[str, str]) -> tuple[int, Json]:
        asked = self._codes.pop(form.get("code", ""), None)
        proof = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(proof).rstrip(b"=").decode()
        if (
            asked is None
            or asked.get("code_challenge") != challenge
            or (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET)
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT, "sub": "subject", "iat": now, "exp": now + 60,
            "nonce": asked.get("nonce"), **self.person, **self.altered,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        algorithm, key = self.signed_with or (self.algorithm, signing_key(self.algorithm))
        signed = jwt.encode(claims, key, algorithm=algorithm, headers={"kid": "one"})
        return 200, {"access_token": "opens", "token_type": "Bearer", "id_token": signed}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if place := provider.moved.get(self.path):
                    self._answer(302, {}, location=place)
                elif self.path in (WELL_KNOWN, f"/moved{WELL_KNOWN}"):
                    self._answer(200, provider._discovery())
                elif self.path in ("/keys", "/moved/keys"):
                    self._answer(200, provider._keys())
                elif self.path == "/userinfo" and self.headers["authorization"] == "Bearer opens":
                    self._answer(200, {"sub": "subject", **provider.person, **provider.told})
                else:
                    self._answer(404, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0"))).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self._answer(*provider._token(form))

            def _answer(self, status: int, document: Json, **headers: str) -> None:
                said = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(said)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
                """Quiet."""

        return Handler


@pytest.fixture
def identity_provider() -> Iterator[IdentityProvider]:
    """A provider of the test's own."""
    found = IdentityProvider()
    yield found
    found.close()
