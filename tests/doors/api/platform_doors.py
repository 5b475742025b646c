"""The doors of platform administrators' programs (R-SEC-10)."""

# What takes a key of a platform administrator, and none of a tenant (test_tenants.py).
PLATFORM_DOORS = frozenset(
    {
        ("get", "api/v1/tenants"),
        ("post", "api/v1/tenants"),
        ("get", "api/v1/tenants/{tenant_slug}"),
        ("patch", "api/v1/tenants/{tenant_slug}"),
        ("post", "api/v1/tenants/{tenant_slug}/suspend"),
        ("post", "api/v1/tenants/{tenant_slug}/resume"),
        ("post", "api/v1/tenants/{tenant_slug}/administrator"),
    }
)
