"""The root of everything Interlock refuses: a code, the data, and a sentence (the docstring)."""

from typing import Any, ClassVar


class InterlockError(Exception):
    """Interlock refused this."""

    code: ClassVar[str] = "interlock-error"
    http_status: ClassVar[int] = 409

    def __init__(self, **data: Any) -> None:
        self.data: dict[str, Any] = data
        # Its first paragraph, however many lines it takes.
        sentence = " ".join((type(self).__doc__ or "").partition("\n\n")[0].split())
        super().__init__(sentence.format_map(_SentenceData(data)))


class _SentenceData(dict[str, Any]):
    """Data for a sentence; what was not given stays visible as its name."""

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


class TenancyError(InterlockError):
    """This is not possible in this tenant."""

    code = "tenancy-error"


class OutsideTenant(TenancyError):
    """The table {table} belongs to tenants and was touched outside one."""

    code = "outside-tenant"
    http_status = 500


class OtherTenant(TenancyError):
    """A tenant's transaction is open; another tenant's cannot begin inside it."""

    code = "other-tenant"
    http_status = 500


class NotFound(TenancyError):
    """There is no such thing here."""

    code = "not-found"
    http_status = 404


class Forbidden(TenancyError):
    """This is not yours to do: {reason}"""

    code = "forbidden"
    http_status = 403


class TenantSuspended(TenancyError):
    """This tenant is suspended: {reason}"""

    code = "tenant-suspended"
    http_status = 403


class KeyInvalid(TenancyError):
    """The key is not valid. Send a whole key of Interlock, ilk_…, as "Authorization: Bearer ilk_…"; an
    administrator makes one on the page API keys (/tenant/keys), or by manage.py key create."""

    code = "key-invalid"
    http_status = 401


class KeyExpired(TenancyError):
    """The key has expired."""

    code = "key-expired"
    http_status = 401


class KeyRevoked(TenancyError):
    """The key was revoked."""

    code = "key-revoked"
    http_status = 401


class KeyGone(TenancyError):
    """This key was revoked; make a new one."""

    code = "key-gone"


class KeyElsewhere(TenancyError):
    """The key may not be used from this address."""

    code = "key-elsewhere"
    http_status = 401


class RoleLacking(TenancyError):
    """{person} lacks rights here that a key with the role {role} would have; give them the role first."""

    code = "role-lacking"


class KeyTooWide(TenancyError):
    """A key makes and renews no key that reaches further than itself: {detail}"""

    code = "key-too-wide"
    http_status = 403


class WorkflowOutOfReach(TenancyError):
    """The key is limited to other workflows than {slug}."""

    code = "workflow-out-of-reach"
    http_status = 403


class InvalidInput(TenancyError):
    """The input is not acceptable.

    `errors` lists what is wrong: one {pointer, code, detail} a field, the pointer as in RFC 6901.
    """

    code = "invalid-input"
    http_status = 400


class Stale(TenancyError):
    """It was changed in the meantime; look at it again."""

    code = "stale"
    http_status = 412


class SecondPersonNeeded(TenancyError):
    """This guards {name} less than before, so a second administrator has to agree: {weaker}"""

    code = "second-person-needed"


class NotIndependent(TenancyError):
    """{name} concerns you or somebody you are related to, so another administrator decides it."""

    code = "not-independent"
    http_status = 403


class OwnDeed(TenancyError):
    """{name} is your own, so you never decide it, even as the only administrator: another administrator
    does, or whoever runs the house, by `{command}`."""

    code = "own-deed"
    http_status = 403


class SecretUnusable(TenancyError):
    """The secret {name} cannot be used: {detail}."""

    code = "secret-unusable"


class ParameterUnknown(TenancyError):
    """The query parameter {parameter} is not known here."""

    code = "parameter-unknown"
    http_status = 400


class ParameterRepeated(TenancyError):
    """The query parameter {parameter} is given more than once."""

    code = "parameter-repeated"
    http_status = 400
