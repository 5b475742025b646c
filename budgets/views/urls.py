"""Page routes of budgets. No trailing slashes."""

from django.urls import path

from budgets.views import budgets, distributions, ledger

urlpatterns = [
    path("budgets", budgets.show_budgets_page, name="budgets"),
    path("budgets/rates", budgets.update_rates, name="budgets-rates"),
    path("budgets/ledger", ledger.show_ledger_page, name="budgets-ledger"),
    path("budgets/ledger.csv", ledger.ledger_file, name="budgets-ledger-file"),
    path("budgets/figures", distributions.show_distributions_page, name="budgets-figures"),
]
