"""Where the pages of money are. No trailing slashes."""

from django.urls import path

from budgets.views import budgets, distributions, ledger

urlpatterns = [
    path("budgets", budgets.budgets, name="budgets"),
    path("budgets/rates", budgets.rates, name="budgets-rates"),
    path("budgets/ledger", ledger.ledger, name="budgets-ledger"),
    path("budgets/ledger.csv", ledger.ledger_file, name="budgets-ledger-file"),
    path("budgets/figures", distributions.figures, name="budgets-figures"),
]
