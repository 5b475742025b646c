"""The page at which an invited person sets their first password."""

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.urls import reverse

from tenancy.models import Person


def first_password_path(person: Person) -> str:
    """The path with a token that ends with its first use, or after three days."""
    key = {"uidb36": user_pk_to_url_str(person), "key": default_token_generator.make_token(person)}
    return reverse("account_reset_password_from_key", kwargs=key)
