"""A workflow graph as a picture: layers from top to bottom, the same picture for the same graph (R-GRAPH-4).

`draw` gives where everything stands, `picture` the same with a run's path lit. Nothing here knows of SVG
beyond the one text of a line's path.
"""

from orchestrator.core.readmodel.graph_layout.geometry import Box, Drawing, Line
from orchestrator.core.readmodel.graph_layout.run_overlay import Picture, picture
from orchestrator.core.readmodel.graph_layout.sugiyama import draw

__all__ = ["Box", "Drawing", "Line", "Picture", "draw", "picture"]
