"""JSON as the API writes it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework.renderers import JSONRenderer
from rest_framework.utils.encoders import JSONEncoder


class ExactEncoder(JSONEncoder):
    """Amounts as text: DRF would write a Decimal outside a serializer as a float and round money."""

    def default(self, obj: Any) -> Any:
        """A Decimal as its digits; the rest as DRF does."""
        return format(obj, "f") if isinstance(obj, Decimal) else super().default(obj)


class ExactJSONRenderer(JSONRenderer):
    """The API's only renderer."""

    encoder_class = ExactEncoder
