"""A workflow graph as a picture: layers from top to bottom, the same picture for the same graph (R-GRAPH-4).

`draw` gives where everything stands, `picture` the same with a run's path lit. Nothing here knows of SVG
beyond the one text of a line's path.
"""

from orchestrator.core.drawing.layout import draw
from orchestrator.core.drawing.picture import Picture, picture
from orchestrator.core.drawing.shapes import Box, Drawing, Line

__all__ = ["Box", "Drawing", "Line", "Picture", "draw", "picture"]
