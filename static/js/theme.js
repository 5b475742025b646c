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
const mark = document.querySelector("link[rel=icon]");
const count = document.getElementById("nav-pending");
if (mark && count) {
  const show = () => mark.setAttribute("href", count.hidden ? first : mark.dataset.waiting);
  const first = mark.getAttribute("href");
  new MutationObserver(show).observe(count, { attributes: true, childList: true, subtree: true });
  show();
}
