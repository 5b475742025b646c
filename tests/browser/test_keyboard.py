"""No pointer is needed anywhere: the Tab key comes to every control of every page with a form, and shows it
(R-UI-11)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import PageAs
from tests.browser.test_policy import whole
from tests.doors.pages.people import world as world
from tests.doors.pages.test_every_page import EVERY, address, belongings
from tests.doubles.company import Company
from tests.factories.tenancy import apart
from tests.factories.world import World, company_at
from tests.proves import proves

# Where the focus was; what had it without showing it; what was never come to though it can be used.
LISTEN = """() => {
  window.met = new Set(); window.unseen = [];
  document.addEventListener("focusin", ({ target }) => {
    met.add(target);
    const { outlineStyle, outlineWidth } = getComputedStyle(target);
    // The nodes of a graph show it by their own border, and what is no control need not.
    if ((outlineStyle === "none" || parseFloat(outlineWidth) < 2) && !target.matches(".graph-node, main, h1"))
      unseen.push(target.outerHTML.slice(0, 120));
  });
  // A page may begin at its errors.
  document.querySelector(".skip").focus();
}"""
STEP = """() => document.activeElement?.matches("main details:not([open]) > summary") ?? false"""
# A row of a timeline is read when it is opened.
READ = """() => {
  const row = document.activeElement?.closest("details[data-load]");
  return !row || row.querySelector(".opened").ariaBusy === "false"; }"""
HOME = """() => document.activeElement === document.body || document.activeElement?.matches(".skip")"""
# What lives is drawn anew while it is walked: whatever stands in the place of one come to counts as it.
MISSED = """() => {
  const name = (one) => one.id || one.name || one.getAttribute("href") || one.textContent.trim();
  const sign = (one) => one.tagName + " " + name(one);
  const gone = new Set([...met].filter((one) => !one.isConnected).map(sign));
  return [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.tabIndex >= 0 &&
    !one.closest("dialog, [inert], .menu-panel, noscript") && !met.has(one) &&
    !(one.type === "radio" && !one.checked) && !gone.has(sign(one)))
  .map((one) => one.outerHTML.slice(0, 160)); }"""
MOST = 400


def walked(page: Page) -> list[str]:
    """Press Tab from the top of the page to its end, opening what is folded; what was missed or not shown."""
    page.evaluate(LISTEN)
    for _ in range(MOST):
        page.keyboard.press("Tab")
        if page.evaluate(STEP):
            page.keyboard.press("Enter")
            page.wait_for_function(READ)
        if page.evaluate(HOME) and page.evaluate("met.size > 1"):
            break
    else:
        return [f"the focus never came round in {MOST} steps"]
    missed: list[str] = page.evaluate(MISSED)
    return [f"not reached: {one}" for one in missed] + [
        f"not shown: {one}" for one in page.evaluate("[...new Set(unseen)]")
    ]


@proves("R-UI-11", part="the Tab key comes to every control, and shows it")
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("role", "few"), [("admin", 20), ("reviewer", 3), ("operator", 3), ("auditor", 1)])
def test_the_tab_key_comes_to_every_control_of_every_page_with_a_form(
    page_as: PageAs, world: World, company: Company, role: str, few: int
) -> None:
    with company_at(company.url):
        things = apart(lambda: belongings(world))
    page, faults, forms = page_as(role), list[str](), 0
    for path in (address(route, things) for route in EVERY):
        if not whole(page, path):
            continue
        page.goto(path)
        if page.locator("main form").count():
            forms += 1
            faults += [f"{path}: {one}" for one in walked(page)]
    assert not faults, "\n".join(faults)
    assert forms > few


def to(page: Page, selector: str) -> None:
    """Press Tab until it has the focus."""
    for _ in range(MOST):
        page.keyboard.press("Tab")
        if page.evaluate("(one) => document.activeElement?.matches(one) ?? false", selector):
            return
    raise AssertionError(selector)
