// The one registry of keys. A control has its key by `data-key="a"` (and `data-key-label`); a module binds more
// with `bind`. The sheet is drawn from the same registry, so it lists exactly what is bound.
const bound = [];
let chord = "";
let chordEnds = 0;

/** Bind `keys` ("a", "g r", "Control+k") to `act`; `where` is the sheet's heading, `on` says whether it counts now. */
export function bind(keys, label, act, { where = "Everywhere", on = () => true } = {}) {
  bound.push({ keys, label, act, where, on });
}

export const off = () => document.documentElement.dataset.keys === "off";

const seen = (element) => element.closest("details:not([open]) .menu-panel") !== null || element.checkVisibility();

/** Controls of the page that carry a key, as bindings. */
function controls() {
  return [...document.querySelectorAll("[data-key]")].filter((element) => !element.disabled && !element.hidden && seen(element)).map((element) => ({
    keys: element.dataset.key,
    label: element.dataset.keyLabel || element.textContent.trim(),
    where: element.closest(".top") ? "Go" : "This page",
    act: () => (element.matches("input:not([type=checkbox]), textarea, select") ? element.focus() : element.click()),
    on: () => true,
  }));
}

/** Everything bound right now; of two with the same keys the first holds. */
export function bindings() {
  const known = new Set();
  return [...controls(), ...bound.filter((one) => one.on())].filter((one) => !known.has(one.keys) && known.add(one.keys));
}

const typing = (target) => target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=submit], [type=button])");

function name(event) {
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  return `${event.ctrlKey || event.metaKey ? "Control+" : ""}${shift}${event.key.length === 1 && event.ctrlKey ? event.key.toLowerCase() : event.key}`;
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.altKey || event.repeat && event.key.length === 1 && !"jk".includes(event.key)) return;
  const key = name(event);
  if (document.querySelector("dialog[open]") || (off() && key.length === 1) || (typing(event.target) && !key.startsWith("Control+") && key !== "Escape")) return;
  const now = Date.now();
  const long = chord && now < chordEnds ? `${chord} ${key}` : key;
  chord = "";
  const all = bindings();
  const hit = all.find((one) => one.keys === long) || all.find((one) => one.keys === key);
  if (hit) {
    event.preventDefault();
    hit.act(event);
  } else if (all.some((one) => one.keys.startsWith(`${key} `))) {
    chord = key;
    chordEnds = now + 1200;
  }
});

const cell = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
const caps = (keys) => {
  const box = document.createElement("td");
  for (const key of keys.replace("Control+", "Ctrl/⌘ ").replace("Shift+", "⇧ ").split(" ")) box.append(cell("kbd", key));
  return box;
};

/** The sheet: a table for each heading. */
export function drawSheet(into) {
  into.replaceChildren();
  const all = bindings();
  for (const where of ["This page", "List", "Go", "Everywhere"]) {
    const of = all.filter((one) => one.where === where);
    if (!of.length) continue;
    const table = Object.assign(document.createElement("table"), { className: "sheet" });
    table.append(cell("caption", where));
    for (const one of of) {
      const row = table.insertRow();
      row.dataset.keys = one.keys;
      row.append(cell("td", one.label), caps(one.keys));
    }
    into.append(table);
  }
}

const sheet = document.getElementById("sheet");
for (const button of document.querySelectorAll("[data-sheet]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    button.closest("details")?.removeAttribute("open");
    drawSheet(document.getElementById("sheet-body"));
    sheet.showModal();
  });
}
for (const element of document.querySelectorAll("[data-key]")) {
  if (!element.dataset.key.includes(" ")) element.setAttribute("aria-keyshortcuts", element.dataset.key);
}
bind("Escape", "Close or clear", () => {
  const open = document.querySelector("details[data-menu][open]");
  if (open) { open.open = false; open.querySelector("summary").focus(); } else document.activeElement?.blur?.();
});
const filter = document.querySelector("[data-filter]");
if (filter) bind("/", "Filter", () => filter.focus());
const up = document.querySelector("[data-up]");
if (up) bind("u", "Back to the list", () => up.click());
