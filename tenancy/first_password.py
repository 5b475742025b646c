"""The link by which a person who was invited sets their first password."""

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.urls import reverse

from tenancy.models import Person


def first_password_path(person: Person) -> str:
    """The path of a page that sets the person's password: good once, and for three days."""
    place = {"uidb36": user_pk_to_url_str(person), "key": default_token_generator.make_token(person)}
    return reverse("account_reset_password_from_key", kwargs=place)
