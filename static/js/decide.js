// The decision card: a button pressed by mistake, or on what is no longer so, decides nothing (docs/console.md).
import { bind } from "./keys.js";
import { say, urge } from "./say.js";

const DISARMED_MS = 700;
let armedAt = 0;
const card = () => document.querySelector("[data-card]");
const shut = () => Boolean(card()?.querySelector("[data-settled]"));
const bar = () => card()?.querySelector(".decide");

// After the card's content changes its buttons rest for a moment: what was under the finger may be another thing.
function disarm() {
  armedAt = Date.now() + DISARMED_MS;
  for (const button of document.querySelectorAll("[data-arm]")) button.setAttribute("data-disarmed", "");
  setTimeout(() => { if (Date.now() >= armedAt) for (const one of document.querySelectorAll("[data-disarmed]")) one.removeAttribute("data-disarmed"); }, DISARMED_MS + 20);
}
const resting = () => Date.now() < armedAt;
const typed = (form) => form.querySelector("[data-typed]");

// What a reader has opened, chosen, typed and focused in a part of the card outlives reading it again.
const fields = (root) => [...root.querySelectorAll("input:not([type=hidden], [type=submit]), textarea, select")];
const stops = (root) => [...root.querySelectorAll("a, button, input, select, textarea, summary")];
const named = (one) => one.id || [one.tagName, one.name, one.value, one.dataset.key, one.matches("summary") && one.firstChild?.data].join();
const changed = (one) => one.type === "checkbox" ? one.checked !== one.defaultChecked : one.matches("select") ? one.selectedIndex !== Math.max(0, [...one.options].findIndex((choice) => choice.defaultSelected)) : one.value !== one.defaultValue;
const place = (one) => one.id || `${one.form?.getAttribute("action")} ${one.name}`;
function keep(old) {
  const had = old.contains(document.activeElement) && named(document.activeElement);
  const open = [...old.querySelectorAll("details")].map((one) => [named(one.firstElementChild), one.open]);
  const said = fields(old).filter(changed).map((one) => [place(one), one.type === "checkbox" ? one.checked : one.value]);
  return (fresh) => {
    for (const [which, state] of open) for (const one of fresh.querySelectorAll("details")) if (named(one.firstElementChild) === which && one.open !== state) [one.open, one.dataset.kept] = [state, ""];
    for (const [where, value] of said) for (const one of fields(fresh)) if (place(one) === where) {
      one[one.type === "checkbox" ? "checked" : "value"] = value;
      one.dispatchEvent(new Event("input", { bubbles: true }));
    }
    if (had) stops(fresh).find((one) => named(one) === had)?.focus({ preventScroll: true });
  };
}
let restore = null;
// Read the card again, or the part of it that decides.
function reread(part = "", why = "") {
  const at = card(), target = part ? at?.querySelector(part) : at;
  if (target && globalThis.htmx) htmx.ajax("GET", at.dataset.reads + why, { target, swap: "outerHTML", ...(part && { select: part }) });
}
const tell = (text) => { const box = bar()?.querySelector("[data-told]"); if (box) [box.hidden, box.textContent] = [false, text]; urge(text); };
const FAR = "The server could not be reached. Nothing was decided; what you typed is still here.";
// Where the page has not been heard of for a while, a press first looks whether the card is still this one.
let looked = false;
async function look(button) {
  try {
    const at = card(), answer = await fetch(at.dataset.reads, { headers: { "HX-Request": "true" } });
    const page = document.createElement("template");
    page.innerHTML = await answer.text();
    const now = page.content.querySelector("[data-card]");
    const same = answer.ok && now?.dataset.card === at.dataset.card && now.dataset.words === at.dataset.words && !now.querySelector("[data-settled]");
    if (!same) return reread("", "&again=1");
    looked = true;
    button.click();
  } catch { tell(FAR); } finally { looked = false; }
}
const old = () => ["stale", "reconnecting"].includes(document.documentElement.dataset.link);
const touched = () => Boolean(bar()) && fields(bar()).some(changed);

function stop(event) { event.preventDefault(); event.stopImmediatePropagation(); }
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-arm]");
  if (!button) return;
  const field = typed(button.form);
  if (field && !field.value.trim()) { stop(event); field.focus(); }
  else if (resting() || shut()) stop(event);
  else if (old() && !looked) { stop(event); look(button); }
}, true);
// Enter in a field is no yes; the button, or Ctrl and Enter, is.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && event.target.matches("[data-card] input")) event.preventDefault();
});
document.addEventListener("submit", (event) => {
  if (event.target.closest("[data-card]") && event.submitter?.matches("[data-arm]") && (resting() || shut())) stop(event);
}, true);

bind("Control+Enter", "Send what is being decided", () => {
  const form = document.activeElement?.closest("form");
  const button = form?.closest("[data-card]") && [...form.querySelectorAll("[data-submit]")].find((one) => one.checkVisibility());
  button?.click();
}, { where: "This page", on: () => card() !== null });
// Digits are letters of an amount too: while something is being typed, or a panel stands open, they choose nothing.
// What is not on the screen is not decided by a key (in a narrow window the list stands without its card).
const press = (value) => {
  const button = document.querySelector(`[data-card] [data-key="${value}"]`);
  return !bar()?.querySelector(".panel[open]") && !touched() && button?.checkVisibility() && button;
};
const digit = (number, key, on = () => true) => bind(number, `The same as ${key}`, () => press(key).click(), { where: "This page", on: () => on() && Boolean(press(key)) });
digit("1", "a");
// The second asks the agent; where nobody can be asked, it is the card's own second choice.
digit("2", "r");
digit("2", "e", () => !document.querySelector('[data-card] [data-key="r"]'));
digit("3", "d");

// A panel that opens takes the focus to its first field, and the other one closes.
document.addEventListener("toggle", ({ target: panel }) => {
  if ("kept" in panel.dataset) return void delete panel.dataset.kept;
  if (!panel.matches("[data-card] .panel") || !panel.open) return;
  for (const other of document.querySelectorAll("[data-card] .panel[open]")) if (other !== panel) other.open = false;
  if (!panel.querySelector("[aria-invalid]")) panel.querySelector("textarea, select, input:not([type=hidden])")?.focus();
}, true);

// The page keeps what has the focus clear of the bar, as high as it is just now.
const sizes = new ResizeObserver(() => {
  const high = bar()?.matches(".decide-bar") && getComputedStyle(bar()).position === "sticky" ? bar().offsetHeight + 12 : 0;
  document.documentElement.style.scrollPaddingBottom = high ? `${high}px` : "auto";
});
function settle() {
  sizes.disconnect();
  if (bar()) sizes.observe(bar());
  // With script the difference follows what is typed: the button that asks for it goes.
  for (const button of document.querySelectorAll("[data-review]")) button.closest("p").hidden = Boolean(globalThis.htmx);
}
settle();

// A refused word comes back as the card, in its place; an answer that is no card is not for this page.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.xhr.getResponseHeader("Interlock-Send-Plainly")) { detail.shouldSwap = detail.isError = false; sendPlainly(detail.requestConfig); return; }
  if (!detail.target.closest?.("[data-card]")) return;
  const preview = detail.target.matches("[data-changing]");
  if (preview || detail.xhr.getResponseHeader("Interlock-Card")) [detail.shouldSwap, detail.isError] = [true, false];
  else { detail.shouldSwap = false; location.assign(card().dataset.reads); }
  if (!preview) restore = keep(detail.target);
  if (preview) kept = [...detail.target.querySelectorAll("[data-typed]")].map((one) => [one.id, one.value]);
});
// The second factor is asked for on a page of its own: the form goes there as it would without a script.
function sendPlainly({ elt, triggeringEvent }) {
  const button = triggeringEvent?.submitter, said = document.createElement("input");
  if (button?.name) { Object.assign(said, { type: "hidden", name: button.name, value: button.value }); elt.append(said); }
  elt.submit();
}
let kept = [];
document.addEventListener("htmx:sendError", ({ detail }) => {
  if (detail.elt.closest?.("[data-card]")) tell(FAR);
});
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  for (const [id, value] of kept) { const field = document.getElementById(id); if (field) field.value = value; }
  kept = [];
  // The part that was read again stands where the old one stood; its id is the same.
  if (restore && card()) restore(document.getElementById(detail.target.id) ?? card());
  restore = null;
  disarm();
  settle();
  if (detail.target.matches("[data-card]") || detail.elt.matches?.("[data-card]")) card()?.querySelector("[data-errors]")?.focus();
});

// The card follows: settled by somebody, it shuts; one more word, and the part that decides is read again.
document.addEventListener("interlock:changed", () => {
  const state = card()?.querySelector(".card-state");
  if (shut() && card().dataset.shut === undefined) {
    card().dataset.shut = "";
    // What was typed stays to be read; what was not begun cannot be begun any more.
    for (const one of card().querySelectorAll(".decide .panel:not([open])")) one.hidden = true;
    for (const one of card().querySelectorAll(":is(.decide, .handle) :is(button, input, textarea, select)")) if (one.name !== "text" && one.value !== "comment") one.disabled = true;
    if (!document.activeElement || document.activeElement.disabled || document.activeElement.closest("[hidden]")) state.focus({ preventScroll: true });
    urge(state.dataset.settled === "taken" ? "The yes took effect." : "This request was just settled by somebody else.");
  } else if (state && state.dataset.words !== card().dataset.words) {
    card().dataset.words = state.dataset.words;
    say("Somebody has said a word to this request.");
    if (bar() && !touched()) reread(`#${bar().id}`);
  }
  const held = card()?.querySelector(".held"), desk = card()?.querySelector(".handle");
  if (held && desk && held.dataset.handled !== card().dataset.handled) {
    card().dataset.handled = held.dataset.handled;
    reread(`#${desk.id}`);
  }
});
// Its time is up by this clock, which may be wrong: the server is asked what can be said now, once for each time.
const asked = new Set();
document.addEventListener("interlock:due", ({ target }) => {
  const which = `${card()?.id} ${target.dateTime}`;
  if (!card()?.contains(target) || shut() || asked.has(which)) return;
  asked.add(which);
  reread();
});
disarm();

// After a decision the next request has the focus; never its buttons.
if (document.querySelector("[data-landed]")) document.querySelector("[data-item][data-at] [data-open]")?.focus({ preventScroll: true });
