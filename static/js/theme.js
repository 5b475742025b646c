// Theme, density and single keys: at once, and kept by the same form that works without script.
const root = document.documentElement;
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-theme-form]") || !event.submitter?.name) return;
  event.preventDefault();
  const { name, value } = event.submitter;
  root.dataset[name] = value;
  if (name === "theme") document.querySelector("meta[name=color-scheme]").content = value === "system" ? "light dark" : value;
  for (const button of form.querySelectorAll(`[name=${name}]`)) button.setAttribute("aria-pressed", String(button === event.submitter));
  const data = new FormData(form, event.submitter);
  data.set("quiet", "1");
  await fetch(form.action, { method: "POST", body: data });
});
for (const menu of document.querySelectorAll("details[data-menu]")) {
  menu.addEventListener("toggle", () => {
    if (menu.open) for (const other of document.querySelectorAll("details[data-menu][open]")) if (other !== menu) other.open = false;
  });
}
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details[data-menu][open]")) if (!menu.contains(event.target)) menu.open = false;
});
// The browser's tab says what waits for this person: a number before the title, a dot on the icon.
const mark = document.querySelector("link[rel=icon]"), plain = mark?.getAttribute("href"), title = document.title.replace(/^\(\d+\) /, "");
function tell() {
  const count = document.getElementById("nav-pending"), text = count && !("none" in count.dataset) && `(${count.lastChild.data.trim()}) ${title}`;
  mark?.setAttribute("href", text ? mark.dataset.waiting : plain);
  if (count && document.title !== (text || title)) document.title = text || title;
}
document.addEventListener("interlock:changed", tell);
tell();
