"""Where budgets' doors are. No trailing slashes (R-API-1)."""

from django.urls import path

from budgets.api import rates, spending

urlpatterns = [
    path("rates", rates.TenantRates.as_view(), name="rates"),
    path("budgets", spending.Budgets.as_view(), name="budgets-api"),
    path("budgets/figures", spending.Figures.as_view(), name="figures-api"),
]
