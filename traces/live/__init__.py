"""Live: hints after commits, and one reader a process that follows them for all its viewers (docs/ring.md).

`publishing` sends the hints, `feeds` says what can be followed, `hub` and `follower` read and share out.
"""

from traces.live.hints import publish_change_hint as publish_change_hint
from traces.live.hints import publish_event_hint as publish_event_hint
