// A run's page: rows open in place, follow on and off, from problem to problem.
import { bind } from "./keys.js";

document.addEventListener("toggle", async ({ target }) => {
  if (!target.matches?.("details[data-load][open]") || target.dataset.loaded) return;
  target.dataset.loaded = "1";
  const box = target.querySelector(".opened"), note = (tone, textContent) => {
    box.querySelector(".notice")?.remove();
    box.ariaBusy = tone === "loading";
    if (tone) box.prepend(Object.assign(document.createElement("p"), { className: `notice notice-${tone}`, textContent }));
  };
  const late = setTimeout(() => note("loading", "Reading the row"), 300);
  // An answer may break off in the middle of its text, too.
  const html = await fetch(target.dataset.load, { headers: { "HX-Request": "true" } }).then((answer) => (answer.ok ? answer.text() : null)).catch(() => null);
  clearTimeout(late);
  note();
  if (html !== null) return void (box.innerHTML = html);
  delete target.dataset.loaded;
  note("error", "The row could not be read; nothing of it is lost. Close it and open it again.");
}, true);

const rows = document.getElementById("timeline-rows"), follow = document.querySelector("[data-follow-switch]");
if (follow && rows) {
  follow.hidden = false;
  follow.addEventListener("click", () => {
    const on = follow.getAttribute("aria-pressed") !== "true";
    follow.setAttribute("aria-pressed", on);
    rows.dataset.follow = on ? "on" : "off";
  });
}

const timeline = () => document.querySelector(".timeline");
function problem(by) {
  const all = [...timeline().querySelectorAll("[data-problem] summary")], at = all.indexOf(document.activeElement);
  all[(at + by + all.length) % all.length]?.focus();
}
const where = { where: "This page", on: () => Boolean(timeline()?.querySelector("[data-problem]")) };
bind("n", "Next problem", () => problem(1), where);
bind("N", "Previous problem", () => problem(-1), where);
bind("e", "Open or close the row", () => document.activeElement.closest?.(".line")?.querySelector("summary").click(), { where: "This page", on: () => Boolean(timeline()) });
