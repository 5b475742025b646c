"""API routes of budgets. No trailing slashes (R-API-1)."""

from django.urls import path

from budgets.api import expenses, rates

urlpatterns = [
    path("rates", rates.TenantRates.as_view(), name="rates"),
    path("budgets", expenses.Budgets.as_view(), name="budgets-api"),
    path("budgets/figures", expenses.Figures.as_view(), name="figures-api"),
]
