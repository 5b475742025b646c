"""Where an outgoing request may go: every form of an address, and only the exact origin."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.policy.private_hosts import read_bound
from orchestrator.core.tools.egress_policy import (
    EgressPolicy,
    Listener,
    Target,
    place_of,
    reach_of,
    target_of,
)
from tests.proves import proves

NEVER = [
    "0.0.0.0", "0.1.2.3",  # noqa: S104 - an address to refuse
    "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "::", "fe80::1", "fe80::1%eth0", "ff02::1", "fec0::1", "::7f00:1", "::8.8.8.8",
    "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "2002:7f00:1::1",
    "2002:a9fe:a9fe::", "2001:0:4136:e378:8000:63bf:80ff:fffe", "::ffff:169.254.169.254", "::ffff:0.0.0.0",
    "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1", "4000::1", "::1%lo",
]  # fmt: skip
PRIVATE = [
    "127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "192.0.2.1", "198.18.0.1", "::1", "fc00::1", "fd12:3456::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "2001:db8::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@proves("P8", part="address forms")
@pytest.mark.parametrize("address", NEVER)
def test_link_local_multicast_reserved_and_tunnelled_addresses_are_never_reached(address: str) -> None:
    assert reach_of(ip_address(address)) == "never"


@proves("P8", part="private addresses")
@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_private_in_every_form(address: str) -> None:
    assert reach_of(ip_address(address)) == "private"


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public_in_every_form(address: str) -> None:
    assert reach_of(ip_address(address)) == "public"


@proves("P8", part="an IPv4 address inside an IPv6 one")
@given(st.ip_addresses(v=4))
def test_no_ipv6_form_reaches_an_ipv4_address_that_is_not_public(inside: IPv4Address) -> None:
    number = int(inside)
    forms = [
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address((0x2002 << 112) | (number << 80)),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x26064700 << 96) | (0x5EFE << 32) | number),
    ]
    if reach_of(inside) != "public":
        assert all(reach_of(form) != "public" for form in forms)


@proves("P8", part="forms of a host")
@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://127.1/",
        "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://127.0.0.01/", "http://1.2.3.4.5/",
        "http://0x7f.1/", "http://example.0x1/", "http://127.0.0.1./", "http://localhost./",
        "http://１２７.0.0.1/", "http://localhoſt/", "http://127.0.0.1%2f@example.com/", "http://exa%6dple.com/",
        "http://user@example.com/", "http://user:pw@example.com/", "http://@example.com/",
        "http://example.com#@127.0.0.1/", "http://example.com\\@127.0.0.1/", "http://[::1%25lo]/",
        "http://[::1]x/", "http://[::1/", "http://[1.2.3.4]/", "http:///x", "http://", "//example.com/",
        "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:70/_x", "javascript:alert(1)",
        "http://example.com:0/", "http://example.com:/", "http://example.com:99999/", "http://example.com:8a/",
        "http://exam ple.com/", "http://example.com/a b", "http://example.com/\r\nHost: x", "http://ex\tample.com/",
        "http://-example.com/", "http://exam..ple.com/", f"http://{'a' * 64}.com/",
        f"http://example.com/{'a' * 2_000}",
        "http://*.example.com/", "http://a_b.example.com/", "http://[v1.fe80::a]/",
    ],
)  # fmt: skip
def test_an_address_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(EgressRefused):
        target_of(url)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://API.Example.com/v1?x=1", "https://api.example.com"),
        ("https://api.example.com:443/", "https://api.example.com"),
        ("http://api.example.com:8080", "http://api.example.com:8080"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
        ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080"),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example"),
    ],
)
def test_an_origin_has_one_form(url: str, origin: str) -> None:
    assert target_of(url).origin == origin


@given(st.text(max_size=60), st.sampled_from(["http://", "https://", ""]))
def test_any_text_is_an_address_in_its_one_form_or_refused(text: str, scheme: str) -> None:
    try:
        target = target_of(scheme + text)
    except EgressRefused:
        return
    assert target_of(target.origin) == target


@proves("P8", part="only what was allowed")
def test_only_the_exact_origin_may_be_reached() -> None:
    leave = EgressPolicy(origins=("https://api.example.com",))
    leave.admit(target_of("https://api.example.com/any/path"))
    for other in (
        "http://api.example.com/",
        "https://api.example.com:8443/",
        "https://api.example.com.evil.example/",
    ):
        with pytest.raises(EgressRefused):
            leave.admit(target_of(other))


@proves("P8", part="an admin's exact host and port")
def test_a_private_address_needs_its_exact_place_and_never_opens_another() -> None:
    leave = EgressPolicy(
        origins=("http://tools.internal:8443", "http://tools.internal:9000"), private=("tools.internal:8443",)
    )
    named, unnamed = target_of("http://tools.internal:8443/"), target_of("http://tools.internal:9000/")
    assert leave.admit_all(named, ["10.0.0.5"]) == ("10.0.0.5",)
    for target, address in (
        (unnamed, "10.0.0.5"),
        (named, "169.254.169.254"),
        (named, "::ffff:169.254.169.254"),
    ):
        with pytest.raises(EgressRefused):
            leave.admit_all(target, [address])


def test_one_bad_address_of_a_name_refuses_them_all() -> None:
    target = target_of("https://api.example.com")
    with pytest.raises(EgressRefused):
        EgressPolicy(origins=(target.origin,)).admit_all(target, ["8.8.8.8", "127.0.0.1"])
    with pytest.raises(EgressRefused):
        EgressPolicy(origins=(target.origin,)).admit_all(target, [])


@proves("P8", part="our own servers")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.3", "::ffff:10.0.0.3", "93.184.216.34"])
@pytest.mark.parametrize("port", [6379, 8000])
def test_no_list_opens_an_address_of_this_machine_at_a_port_of_our_own(address: str, port: int) -> None:
    leave, target = leave_of("tools.internal", port)
    with pytest.raises(EgressRefused, match="belongs to Interlock"):
        leave.admit_all(target, [address], here=[address])


@proves("P8", part="our own database on another machine")
@pytest.mark.parametrize("address", ["10.0.0.9", "::ffff:10.0.0.9", "64:ff9b::a00:9"])
def test_no_list_opens_our_own_server_on_another_machine(address: str) -> None:
    leave, target = leave_of("tools.internal", 5432)
    with pytest.raises(EgressRefused, match="belongs to Interlock"):
        leave.admit_all(target, [address])


@proves("P8", part="the same port of another machine is not ours")
@pytest.mark.parametrize(("address", "port"), [("10.0.0.7", 6379), ("10.0.0.7", 8000), ("10.0.0.7", 5432)])
def test_the_same_port_of_another_machine_is_not_ours(address: str, port: int) -> None:
    leave, target = leave_of("tools.internal", port)
    assert leave.admit_all(target, [address]) == (address,)


def test_another_port_of_this_machine_is_not_ours() -> None:
    leave, target = leave_of("tools.internal", 9000)
    assert leave.admit_all(target, ["127.0.0.1"], here=["127.0.0.1"]) == ("127.0.0.1",)


@proves("P8", part="what the operator lets tenants open")
def test_a_list_opens_only_what_the_operators_list_covers() -> None:
    leave, target = leave_of("tools.internal", 9000)
    for bound, address in (("", "127.0.0.1"), ("loopback", "10.0.0.7"), ("10.0.0.7:9001", "10.0.0.7")):
        with pytest.raises(EgressRefused, match="lets no tenant open"):
            leave.evolve(bound=read_bound(bound)).admit_all(target, [address])
    for bound, address in (("loopback:9000", "127.0.0.9"), ("tools.internal", "10.0.0.7")):
        assert leave.evolve(bound=read_bound(bound)).admit_all(target, [address]) == (address,)


def leave_of(host: str, port: int) -> tuple[EgressPolicy, Target]:
    """A tenant's leave for a place on its list, beside servers of our own, and the place."""
    target = target_of(f"http://{host}:{port}")
    ours = (
        Listener(name="web server", port=8000, here=True), Listener(name="broker", port=6379, here=True),
        Listener(name="database", port=5432, addresses=("10.0.0.9",)),
    )  # fmt: skip
    bound = read_bound("loopback, 10.0.0.0/8")
    return EgressPolicy(
        origins=(target.origin,), private=(target.place,), bound=bound, listeners=ours
    ), target


@pytest.mark.parametrize(
    "text",
    ["localhost", "10.0.0.1", "http://x:1", "x:1/path", "x:1?q", "*:80", "x:", "169.254.169.254:80", ""],
)
def test_an_entry_of_the_private_list_is_one_host_and_one_port(text: str) -> None:
    with pytest.raises(EgressRefused):
        place_of(text)


def test_an_entry_has_one_form() -> None:
    assert place_of("LOCALHOST:80") == "localhost:80"
    assert place_of("[0::1]:8080") == "[::1]:8080"
