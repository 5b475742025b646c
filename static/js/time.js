// <time data-time> says how long ago; the absolute time stays in its title.
const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function relative(moment, now = Date.now()) {
  let left = Math.round((now - moment) / 1000);
  const ahead = left < 0;
  left = Math.abs(left);
  if (left < 2) return "now";
  const [unit, size] = units.find(([, one]) => left >= one);
  const text = `${Math.floor(left / size)} ${unit}`;
  return ahead ? `in ${text}` : `${text} ago`;
}

// A deadline near counts in seconds; when it is over the page hears of it, once.
function deadline(element, moment) {
  const left = Math.ceil((moment - Date.now()) / 1000);
  if (left <= 0 && element.dataset.over === undefined) {
    element.dataset.over = "";
    element.dispatchEvent(new Event("interlock:due", { bubbles: true }));
  }
  if (left <= 0 && element.closest("[data-deadline=now]")) return "now";
  if (left <= 0 || left >= 600) return relative(moment);
  return left < 60 ? `in ${left} s` : `in ${Math.floor(left / 60)} min ${left % 60} s`;
}

export function tick(within = document) {
  for (const element of within.querySelectorAll("time[data-time]")) {
    const moment = Date.parse(element.dateTime);
    if (Number.isNaN(moment)) continue;
    const text = element.closest("[data-deadline]") ? deadline(element, moment) : relative(moment);
    if (element.textContent !== text) element.textContent = text;
  }
}

tick();
setInterval(() => { if (!document.hidden) tick(); }, 5000);
setInterval(() => { if (!document.hidden) document.querySelectorAll("[data-deadline]").forEach(tick); }, 1000);
document.addEventListener("interlock:changed", (event) => tick(event.target.querySelectorAll ? event.target : document));
document.addEventListener("htmx:load", (event) => tick(event.target));
