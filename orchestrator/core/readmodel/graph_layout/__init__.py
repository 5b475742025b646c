"""A workflow graph as a picture: layers from top to bottom, the same picture for the same graph (R-GRAPH-4).

`layout_graph` gives where everything stands, `overlay_run_path` the same with a run's path lit. Nothing here
knows of SVG beyond the one text of a line's path.
"""

from orchestrator.core.readmodel.graph_layout.geometry import Box, Drawing, Line
from orchestrator.core.readmodel.graph_layout.run_overlay import Picture, overlay_run_path
from orchestrator.core.readmodel.graph_layout.sugiyama import layout_graph

__all__ = ["Box", "Drawing", "Line", "Picture", "layout_graph", "overlay_run_path"]
