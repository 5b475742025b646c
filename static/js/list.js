// Lists: [data-list] with [data-item]s, each with a [data-open] link and maybe a [data-pick] box.
import { bind } from "./keys.js";

const list = () => document.querySelector("[data-list]");
const items = () => [...(list()?.querySelectorAll("[data-item]") || [])].filter((item) => item.checkVisibility());
const current = () => list()?.querySelector("[data-item][data-at]");

export function go(item) {
  current()?.removeAttribute("data-at");
  if (!item) return;
  item.setAttribute("data-at", "");
  item.scrollIntoView({ block: "nearest" });
  (item.querySelector("[data-open]") || item).focus({ preventScroll: true });
  item.dispatchEvent(new CustomEvent("interlock:at", { bubbles: true }));
}

function step(by, picking = false) {
  const all = items();
  const from = all.indexOf(current());
  const next = all[Math.min(Math.max(from + by, 0), all.length - 1)];
  if (picking) { pick(current(), true); pick(next, true); }
  go(next);
}

function pick(item, on) {
  const box = item?.querySelector("[data-pick]");
  if (!box) return;
  box.checked = on ?? !box.checked;
  box.dispatchEvent(new Event("change", { bubbles: true }));
}

const on = () => list() !== null;
const where = { where: "List", on };
bind("j", "Next", () => step(1), where);
bind("k", "Previous", () => step(-1), where);
bind("ArrowDown", "Next", () => step(1), where);
bind("ArrowUp", "Previous", () => step(-1), where);
bind("o", "Open", () => current()?.querySelector("[data-open]")?.click(), where);
const picks = { where: "List", on: () => Boolean(list()?.querySelector("[data-pick]")?.checkVisibility()) };
bind("x", "Select", () => pick(current()), picks);
bind("J", "Select on downwards", () => step(1, true), picks);
bind("K", "Select on upwards", () => step(-1, true), picks);
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick]")) event.target.closest("[data-item]").toggleAttribute("data-picked", event.target.checked);
});
document.addEventListener("focusin", (event) => {
  const item = event.target.closest("[data-item]");
  if (item && item !== current() && list()?.contains(item)) { current()?.removeAttribute("data-at"); item.setAttribute("data-at", ""); }
});
