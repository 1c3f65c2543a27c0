"""Why a TLS handshake failed, in words, and what to do about it."""

from __future__ import annotations

import ssl
from typing import Final

__all__ = ["explain"]

_TRUST_ADVICE = "add the certificate of its CA to the trust store: ssl.truststore.location"
_HOST_ADVICE = (
    "connect by a name that the certificate has, or set ssl.endpoint.identification.algorithm to "
    "an empty value to accept any"
)
#: By OpenSSL's numbers (X509_V_ERR_...).
_VERIFICATION_ADVICE: Final = {
    2: _TRUST_ADVICE,
    9: "check the clocks of both machines",
    10: "renew it",
    18: _TRUST_ADVICE,
    19: _TRUST_ADVICE,
    20: _TRUST_ADVICE,
    21: _TRUST_ADVICE,
    62: _HOST_ADVICE,
    64: _HOST_ADVICE,
}
_OWN_CERTIFICATE = "check this side's key store: ssl.keystore.location"
_REASON_ADVICE: Final = {
    "WRONG_VERSION_NUMBER": "the other side does not use TLS: check security.protocol and the port",
    "HTTP_REQUEST": "the other side does not use TLS: it sent an HTTP request",
    "UNSUPPORTED_PROTOCOL": "no common version of TLS: check ssl.enabled.protocols",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no common version of TLS: check ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "check ssl.cipher.suites",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "the other side found no common cipher suite, or wants a certificate: check "
        "ssl.cipher.suites and ssl.keystore.location"
    ),
    "SSLV3_ALERT_BAD_CERTIFICATE": _OWN_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the other side does not trust this side's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "this side's certificate has expired: renew it",
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust the CA of this side's certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "the other side wants a certificate: set ssl.keystore.location"
    ),
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "ssl.client.auth is required",
}


def explain(error: ssl.SSLError) -> str:
    """Why a handshake failed, and what to do, in a sentence without OpenSSL's source lines."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = _VERIFICATION_ADVICE.get(error.verify_code)
        reason = error.verify_message or "it cannot be verified"
        if error.verify_code in (62, 64):
            return f"the certificate is not valid for this address: {reason.lower()} ({advice})"
        text = f"the peer's certificate was rejected: {reason}"
        return f"{text} ({advice})" if advice else text
    reason = (error.reason or str(error)).replace("_", " ").lower()
    advice = _REASON_ADVICE.get(error.reason or "")
    return f"{reason} ({advice})" if advice else reason
