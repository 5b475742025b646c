"""The company's paths: each handler translates and makes one call to the books."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from demo import document_search
from demo.errors import Refusal
from demo.faults import Fault, Faults, Service
from demo.services import Incident, LogsQuery, RestartBody, ServiceFleet
from demo.storage.repositories import EntryBody, MessageBody, PolicyQuery, RefundBody, Repositories
from demo.storage.reservations import HoldBody, ReleaseBody, Reservations, ShipmentBody
from demo.tickets import ClosureBody, TicketBody, Tickets
from demo.web import Answer, Application, Handler, Request, Route


class _Query(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _SinceQuery(_Query):
    service: Service | None = None
    since: int = Field(0, ge=0, le=2**62)


class _RefundsOf(_Query):
    order_id: str | None = Field(None, min_length=1, max_length=200)
    key: str | None = Field(None, min_length=1, max_length=255)


class _HoldsOf(_Query):
    key: str = Field(min_length=1, max_length=255)


class _ShipmentsOf(_Query):
    order_id: str = Field(min_length=1, max_length=200)


class _MessagesOf(_Query):
    reference: str = Field(min_length=1, max_length=200)


class _TicketsOf(_Query):
    order_id: str | None = Field(None, min_length=1, max_length=200)
    key: str | None = Field(None, min_length=1, max_length=255)


class _RestartsOf(_Query):
    service: str | None = Field(None, min_length=1, max_length=64)
    key: str | None = Field(None, min_length=1, max_length=255)


def _parse_idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise Refusal(400, "invalid_key", "Idempotency-Key has 1 to 255 printable ASCII characters.")
    return key


def _require_idempotency_key(request: Request) -> str:
    key = _parse_idempotency_key(request)
    if key is None:
        raise Refusal(400, "key_required", "This needs the header Idempotency-Key.")
    return key


def _get_service_name(request: Request) -> str:
    return request.parts["name"]


class Company:
    """Books, running services, documents and faults behind an ASGI application."""

    def __init__(self, books: Repositories) -> None:
        self._books = books
        self._park = ServiceFleet(books.store, books.today)
        self._holds = Reservations(books.store)
        self._tickets = Tickets(books.store)
        self._faults = Faults()
        self.application = Application(self._routes(), self._faults)

    def _routes(self) -> tuple[Route, ...]:
        def route(method: str, template: str, handler: Handler, service: Service | None = None) -> Route:
            return Route(method=method, template=template, handler=handler, service=service)

        books, park = self._books, self._park
        return (
            route("GET", "/orders/{id}", lambda r: Answer(content=books.order(r.parts["id"])), "orders"),
            route("GET", "/catalog/{sku}", lambda r: Answer(content=books.product(r.parts["sku"])), "orders"),
            route(
                "GET", "/policy", lambda r: Answer(content=books.judge(r.parse_query(PolicyQuery))), "policy"
            ),
            route("POST", "/payments/refunds", self._refund, "payments"),
            route("GET", "/payments/refunds", self._refunds, "payments"),
            route(
                "GET",
                "/payments/refunds/{id}",
                lambda r: Answer(content=books.find_refund(r.parts["id"])),
                "payments",
            ),
            route("POST", "/stock/holds", self._hold, "stock"),
            route("POST", "/stock/releases", self._release, "stock"),
            route("GET", "/stock/holds/{id}", self._held, "stock"),
            route("GET", "/stock/holds", self._holds_of, "stock"),
            route("POST", "/payments/holds", self._hold, "payments"),
            route("POST", "/payments/releases", self._release, "payments"),
            route("GET", "/payments/holds/{id}", self._held, "payments"),
            route("GET", "/payments/holds", self._holds_of, "payments"),
            route("POST", "/shipments", self._ship, "shipping"),
            route("GET", "/shipments", self._shipments, "shipping"),
            route("POST", "/tickets", self._open_ticket, "tickets"),
            route("POST", "/tickets/closures", self._close_ticket, "tickets"),
            route("GET", "/tickets", self._tickets_of, "tickets"),
            route(
                "GET",
                "/tickets/{id}",
                lambda r: Answer(content=self._tickets.find(r.parts["id"])),
                "tickets",
            ),
            route("POST", "/mail/messages", self._send, "mail"),
            route("GET", "/mail/messages", self._messages, "mail"),
            route("POST", "/ledger/entries", self._post, "ledger"),
            route(
                "GET", "/services", lambda _: Answer(content={"services": park.list_services()}), "services"
            ),
            route(
                "GET",
                "/services/{name}",
                lambda r: Answer(content=park.status(_get_service_name(r))),
                "services",
            ),
            route(
                "GET",
                "/services/{name}/logs",
                lambda r: Answer(content=park.logs(_get_service_name(r), r.parse_query(LogsQuery))),
                "services",
            ),
            route(
                "GET",
                "/services/{name}/metrics",
                lambda r: Answer(content=park.metrics(_get_service_name(r))),
                "services",
            ),
            route("POST", "/restarts", self._restart, "services"),
            route("GET", "/restarts", self._restarts, "services"),
            route(
                "GET",
                "/documents",
                lambda r: Answer(
                    content=document_search.search_passages(r.parse_query(document_search.SearchQuery))
                ),
                "documents",
            ),
            route(
                "GET",
                "/documents/passages/{id}",
                lambda r: Answer(content=document_search.read_passage(r.parts["id"])),
                "documents",
            ),
            route("GET", "/status", self._status),
            route("GET", "/incidents", self._incidents),
            route("PUT", "/incidents", self._ail),
            route("GET", "/faults", lambda _: Answer(content=self._faults.list_faults())),
            route("PUT", "/faults", self._tell),
            route("GET", "/effects", self._effects),
            route("GET", "/requests", self._requests),
            route("POST", "/reset", self._reset),
        )

    def _refund(self, request: Request) -> Answer:
        key = _parse_idempotency_key(request)
        if key is None:
            raise Refusal(400, "key_required", "A refund needs the header Idempotency-Key.")
        refund, repeated = self._books.refund(request.content(RefundBody), key)
        return Answer(status=201, content=refund, headers={"idempotent-replay": str(repeated).lower()})

    def _refunds(self, request: Request) -> Answer:
        asked = request.parse_query(_RefundsOf)
        if asked.order_id is None and asked.key is None:
            raise Refusal(400, "invalid_query", "Ask by order_id, by key, or by both.")
        return Answer(content={"refunds": self._books.refunds(order_id=asked.order_id, key=asked.key)})

    def _hold(self, request: Request) -> Answer:
        return Answer(
            status=201, content=self._holds.take(request.content(HoldBody), _require_idempotency_key(request))
        )

    def _release(self, request: Request) -> Answer:
        return Answer(
            content=self._holds.release(request.content(ReleaseBody), _require_idempotency_key(request))
        )

    def _held(self, request: Request) -> Answer:
        return Answer(content=self._holds.find(request.parts["id"]))

    def _holds_of(self, request: Request) -> Answer:
        return Answer(content={"holds": self._holds.of_key(request.parse_query(_HoldsOf).key)})

    def _ship(self, request: Request) -> Answer:
        return Answer(
            status=201,
            content=self._holds.ship(request.content(ShipmentBody), _require_idempotency_key(request)),
        )

    def _shipments(self, request: Request) -> Answer:
        asked = request.parse_query(_ShipmentsOf)
        return Answer(content={"shipments": self._holds.shipments(asked.order_id)})

    def _open_ticket(self, request: Request) -> Answer:
        return Answer(
            status=201,
            content=self._tickets.open_ticket(request.content(TicketBody), _require_idempotency_key(request)),
        )

    def _close_ticket(self, request: Request) -> Answer:
        return Answer(
            content=self._tickets.close(request.content(ClosureBody), _require_idempotency_key(request))
        )

    def _tickets_of(self, request: Request) -> Answer:
        asked = request.parse_query(_TicketsOf)
        if asked.order_id is None and asked.key is None:
            raise Refusal(400, "invalid_query", "Ask by order_id, by key, or by both.")
        return Answer(content={"tickets": self._tickets.of(order_id=asked.order_id, key=asked.key)})

    def _send(self, request: Request) -> Answer:
        return Answer(
            status=201,
            content=self._books.send(request.content(MessageBody), _parse_idempotency_key(request)),
        )

    def _messages(self, request: Request) -> Answer:
        return Answer(content={"messages": self._books.messages(request.parse_query(_MessagesOf).reference)})

    def _post(self, request: Request) -> Answer:
        return Answer(
            status=201, content=self._books.post(request.content(EntryBody), _parse_idempotency_key(request))
        )

    def _restart(self, request: Request) -> Answer:
        key = _parse_idempotency_key(request)
        if key is None:
            raise Refusal(400, "key_required", "A restart needs the header Idempotency-Key.")
        restart, repeated = self._park.restart(request.content(RestartBody), key)
        return Answer(status=201, content=restart, headers={"idempotent-replay": str(repeated).lower()})

    def _restarts(self, request: Request) -> Answer:
        asked = request.parse_query(_RestartsOf)
        return Answer(content={"restarts": self._park.restarts(service=asked.service, key=asked.key)})

    def _incidents(self, _: Request) -> Answer:
        return Answer(content={"incidents": self._park.incidents()})

    def _ail(self, request: Request) -> Answer:
        self._park.tell(request.content(Incident))
        return self._incidents(request)

    def _status(self, _: Request) -> Answer:
        return Answer(content={"status": "open", "today": self._books.today.isoformat()})

    def _tell(self, request: Request) -> Answer:
        self._faults.tell(request.content(Fault))
        return Answer(content=self._faults.list_faults())

    def _effects(self, request: Request) -> Answer:
        asked = request.parse_query(_SinceQuery)
        return Answer(
            content={"effects": self._books.store.effects(service=asked.service, since=asked.since)}
        )

    def _requests(self, request: Request) -> Answer:
        asked = request.parse_query(_SinceQuery)
        found = [
            entry
            for entry in self.application.journal
            if entry["id"] > asked.since and asked.service in {None, entry["service"]}
        ]
        return Answer(content={"requests": found})

    def _reset(self, _: Request) -> Answer:
        self._faults.clear()
        self._books.store.reset()
        with self._books.store.open_transaction():
            self._park.furnish()
        self.application.journal.clear()
        return Answer(content={"status": "open"})
