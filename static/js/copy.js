// [data-copy] copies its text and says so.
import { say } from "./say.js";

const ready = (within) => { for (const button of within.querySelectorAll("[data-copy][hidden]")) button.hidden = false; };
if (navigator.clipboard) {
  ready(document);
  for (const name of ["interlock:changed", "htmx:load"]) document.addEventListener(name, (event) => ready(event.target));
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try { await navigator.clipboard.writeText(button.dataset.copy); say("Copied."); } catch { say("The browser refused to copy."); }
  });
}
