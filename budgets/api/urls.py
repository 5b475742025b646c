"""Where budgets' doors are. No trailing slashes (R-API-1)."""

from django.urls import path

from budgets.api import ceilings

urlpatterns = [path("ceilings", ceilings.TenantCeilings.as_view(), name="ceilings")]
