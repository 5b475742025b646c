// The decision card: a button pressed by mistake decides nothing (docs/console.md).
import { bind } from "./keys.js";

const DISARMED_MS = 700;
let armedAt = 0;
const card = () => document.querySelector("[data-card]");
const shut = () => Boolean(card()?.querySelector("[data-settled]"));

// After the card's content changes its buttons rest for a moment: what was under the finger may be another thing.
function disarm() {
  armedAt = Date.now() + DISARMED_MS;
  for (const button of document.querySelectorAll("[data-arm]")) button.setAttribute("data-disarmed", "");
  setTimeout(() => { if (Date.now() >= armedAt) for (const one of document.querySelectorAll("[data-disarmed]")) one.removeAttribute("data-disarmed"); }, DISARMED_MS + 20);
}
const resting = () => Date.now() < armedAt;
const typed = (form) => form.querySelector("[data-typed]");

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-arm]");
  if (!button) return;
  const field = typed(button.form);
  if (field && !field.value.trim()) { event.preventDefault(); field.focus(); }
  else if (resting() || shut()) event.preventDefault();
}, true);
// Enter in a field is no yes; the button, or Ctrl and Enter, is.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && event.target.matches("[data-card] input")) event.preventDefault();
});
document.addEventListener("submit", (event) => {
  if (event.target.closest("[data-card]") && event.submitter?.matches("[data-arm]") && (resting() || shut())) event.preventDefault();
}, true);

bind("Control+Enter", "Send what is being decided", () => {
  const form = document.activeElement?.closest("form");
  const button = form?.closest("[data-card]") && [...form.querySelectorAll("[data-submit]")].find((one) => one.checkVisibility());
  button?.click();
}, { where: "This page", on: () => card() !== null });
const press = (value) => document.querySelector(`[data-card] [data-key="${value}"]`);
["a", "e", "d"].forEach((key, at) => bind(String(at + 1), `The same as ${key}`, () => press(key).click(), { where: "This page", on: () => Boolean(press(key)) }));

// A panel that opens takes the focus to its first field, and the other one closes.
for (const panel of document.querySelectorAll("[data-card] .panel")) {
  panel.addEventListener("toggle", () => {
    if (!panel.open) return;
    for (const other of document.querySelectorAll("[data-card] .panel[open]")) if (other !== panel) other.open = false;
    if (!panel.querySelector("[aria-invalid]")) panel.querySelector("textarea, select, input:not([type=hidden])")?.focus();
  });
}
// With script the difference follows what is typed: the button that asks for it goes.
for (const button of document.querySelectorAll("[data-review]")) button.closest("p").hidden = Boolean(globalThis.htmx);
document.addEventListener("htmx:afterSwap", disarm);
document.addEventListener("interlock:changed", () => {
  if (shut() && card().dataset.shut === undefined) {
    card().dataset.shut = "";
    for (const one of card().querySelectorAll(".decide :is(button, input, textarea, select)")) one.disabled = true;
    document.querySelector('[aria-live="assertive"]').textContent = "This request was just settled by somebody else.";
  }
});
if (card()) new MutationObserver(disarm).observe(card(), { childList: true });
disarm();

// After a decision the next request has the focus; never its buttons.
if (document.querySelector("[data-landed]")) document.querySelector("[data-item][data-at] [data-open]")?.focus({ preventScroll: true });
