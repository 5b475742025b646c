"""Live: hints after commits, and one reader a process that follows them for all its viewers (docs/ring.md).

`publishing` sends the hints, `feeds` says what can be followed, `hub` and `follower` read and share out.
"""

from traces.live.hints import announce as announce
from traces.live.hints import nudge as nudge
