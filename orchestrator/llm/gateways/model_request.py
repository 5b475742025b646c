"""One model call as it is handed to a provider."""

from dataclasses import dataclass

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import CallModel
from orchestrator.llm.gateways.live_text import Audience
from traces.sealed_values import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """The effect, the neutral request's bytes, the pinned profile, the run's salt and sealed values, and who
    watches."""

    effect: CallModel
    request: bytes
    profile: ModelProfile
    salt: bytes
    audience: Audience | None = None
    vault: Vault | None = None
