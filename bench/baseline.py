"""The floor F of a durable transition: raw psycopg, one row updated and four ~1 KB jsonb rows inserted,
one commit."""

from time import perf_counter
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

CONTENT = {"text": "x" * 960}
TABLES = """
CREATE TABLE IF NOT EXISTS floor_run (id uuid PRIMARY KEY, version bigint NOT NULL) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS floor_row (id bigserial PRIMARY KEY, run uuid NOT NULL, body jsonb NOT NULL);
CREATE INDEX IF NOT EXISTS floor_row_run ON floor_row (run);
"""
ROWS = 4


class Floor:
    """One connection that commits as plainly as can be."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.run = uuid4()
        with connection.transaction():
            connection.execute(TABLES)
            connection.execute("INSERT INTO floor_run VALUES (%s, 0)", (self.run,))

    def block(self, commits: int) -> float:
        """Commits per second over a block: seven round trips each."""
        started = perf_counter()
        for _ in range(commits):
            self._commit()
        return commits / (perf_counter() - started)

    def _commit(self) -> None:
        with self.connection.transaction():
            self.connection.execute(
                "UPDATE floor_run SET version = version + 1 WHERE id = %s RETURNING version",
                (self.run,),
                prepare=True,
            )
            for _ in range(ROWS):
                self.connection.execute(
                    "INSERT INTO floor_row (run, body) VALUES (%s, %s)",
                    (self.run, Jsonb(CONTENT)),
                    prepare=True,
                )
