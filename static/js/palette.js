// Ctrl/⌘ K: pages, actions of this page, one's own views of the runs, and runs or requests by their id.
import { bind, bindings } from "./keys.js";

const dialog = document.getElementById("palette");
if (dialog) {
  const input = document.getElementById("palette-input");
  const list = document.getElementById("palette-list");
  let at = 0;
  let found = [];
  let asked = 0;
  let views;

  const open = () => {
    if (dialog.open) return;
    input.value = "";
    dialog.showModal();
    look();
    views ??= ask("").then((found) => { views = found; if (found.length && dialog.open) look(); });
  };
  // Out of reach: what this page knows by itself stays.
  const ask = (text) => fetch(`${dialog.dataset.url}?q=${encodeURIComponent(text)}`, { headers: { Accept: "application/json" } })
    .then(async (answer) => (answer.ok ? (await answer.json()).results : []), () => [])
    .then((found) => found.map((one) => ({ ...one, act: () => location.assign(one.url) })));
  const near = () => {
    const words = input.value.trim().toLowerCase().split(/\s+/);
    const places = [...document.querySelectorAll(".top .nav a, .top .menu-item[href]")].map((link) => ({
      text: link.dataset.keyLabel || link.textContent.trim(), detail: "", act: () => location.assign(link.href),
    }));
    const actions = bindings().filter((one) => one.where === "This page").map((one) => ({ text: one.label, detail: one.keys, act: one.act }));
    const own = Array.isArray(views) ? views : [];
    return [...actions, ...places, ...own].filter((one) => words.every((word) => one.text.toLowerCase().includes(word)));
  };
  const draw = () => {
    list.replaceChildren(...found.map((one, index) => {
      const item = Object.assign(document.createElement("li"), { id: `palette-${index}`, textContent: one.text });
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(index === at));
      item.append(Object.assign(document.createElement("span"), { className: "muted mono", textContent: one.detail }));
      item.addEventListener("click", () => run(index));
      return item;
    }));
    input.setAttribute("aria-activedescendant", found.length ? `palette-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const run = (index) => {
    const one = found[index];
    if (!one) return;
    dialog.close();
    one.act();
  };
  async function look() {
    at = 0;
    found = near();
    draw();
    const text = input.value.trim();
    const turn = ++asked;
    if (!/^[…0-9a-f-]{4,}$/i.test(text)) return;
    const more = await ask(text);
    if (turn !== asked) return;
    found = [...more, ...found];
    draw();
  }
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) { at = (at + step + found.length) % found.length; draw(); }
    else if (event.key === "Enter") run(at);
    else return;
    event.preventDefault();
  });
  for (const button of document.querySelectorAll("[data-palette]")) {
    button.hidden = false;
    button.addEventListener("click", open);
  }
  bind("Control+k", "Search and commands", open);
}
