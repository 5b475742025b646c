"""Live updates: hints after commits, and one reader per process that follows them for all its viewers.

`hints` sends the hints, `feeds` says what can be followed, `hub` and `follower` read and distribute
(docs/decisions/one-reader-per-process.md).
"""

from traces.live.hints import publish_change_hint as publish_change_hint
from traces.live.hints import publish_event_hint as publish_event_hint
