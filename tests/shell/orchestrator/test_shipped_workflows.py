"""The shipped workflows compile against the shipped tools, boundaries and prompts, as publication does it."""

import pytest

from orchestrator import bundled_content
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.tools.gateways.registry import shipped_tools
from tests.proves import proves


@proves("R-GRAPH-2", part="shipped workflows with their tools")
@pytest.mark.parametrize("slug", sorted(bundled_content.load_bundled_workflows()))
def test_a_shipped_workflow_fits_its_tools_and_its_boundary(slug: str) -> None:
    tools = {name: registered.spec for name, registered in shipped_tools().items()}
    spec = bundled_content.get_bundled_workflow(slug)
    graph = compile_graph(
        spec,
        tools=tools,
        boundary=bundled_content.get_bundled_boundary(spec.boundary),
        prompts=bundled_content.load_bundled_prompts(),
    )
    assert graph.tier <= spec.tier
