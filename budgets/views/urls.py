"""Where the pages of money are. No trailing slashes."""

from django.urls import path

from budgets.views import budgets

urlpatterns = [
    path("budgets", budgets.budgets, name="budgets"),
    path("budgets/ledger.csv", budgets.ledger_file, name="budgets-ledger"),
]
