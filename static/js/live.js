// Follows what the page shows (docs/components.md): a link for each [data-live] region, one pill for all.
import { say, urge } from "./say.js";

const ENDS = { 4400: "lost", 4401: "signed-out", 4403: "forbidden", 4404: "gone" };
const byId = (id) => document.getElementById(id);
const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });
const count = (n, word) => `${n} new ${word}${n === 1 ? "" : "s"}`;
const links = [], waiting = new Map(), held = new Map(), shown = new WeakMap();
let newBuild = false, alarm = "", news = {}, words = "", spoken = 0, speaking = 0;

function tell(word, n, text) {
  if (n) news[word] = (news[word] ?? 0) + n;
  words = text || words;
  if (n || text) speaking ||= setTimeout(() => {
    say([...Object.entries(news).map(([one, many]) => count(many, one)), words].filter(Boolean).join(", "));
    [news, words, speaking, spoken] = [{}, "", 0, Date.now()];
  }, Math.max(100, spoken + 5000 - Date.now()));
}

// An element takes the place of the one with its id, but not under a selection, an edit or an open dialog.
const busy = (element) => {
  const chosen = getSelection();
  return (!chosen.isCollapsed && chosen.containsNode(element, true)) || element.matches("[data-dirty]") ||
    element.querySelector("[data-dirty], dialog[open], :popover-open, :is(input:not([type=checkbox]), textarea, select):focus");
};
const boxes = (element) => [element, ...element.querySelectorAll("[tabindex='0']")];
const stops = (element) => [...element.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")];
function replace(old, fresh) {
  const text = fresh.outerHTML, active = document.activeElement, places = boxes(old).map((box) => [box.scrollTop, box.scrollLeft]);
  if (shown.get(old) === text) return;
  if (busy(old)) return void held.set(old.id, fresh);
  const place = old.contains(active) && stops(old).indexOf(active);
  const folds = fresh.querySelectorAll("details");
  old.querySelectorAll("details").forEach((one, n) => { if (one.open && folds[n]) folds[n].open = true; });
  if (old.open) fresh.open = true;
  for (const name of ["aria-selected", "data-at", "data-picked"]) if (old.hasAttribute(name)) fresh.setAttribute(name, "");
  const picked = fresh.querySelector("[data-pick]");
  if (picked) picked.checked = Boolean(old.querySelector("[data-pick]")?.checked);
  old.replaceWith(fresh);
  boxes(fresh).forEach((box, n) => { if (places[n]) [box.scrollTop, box.scrollLeft] = places[n]; });
  shown.set(fresh, text);
  if (place !== false) (old === active ? fresh : byId(active.id) ?? stops(fresh)[place])?.focus({ preventScroll: true });
}
document.addEventListener("focusout", () => setTimeout(() => {
  for (const [id, fresh] of held) { held.delete(id); if (byId(id)) replace(byId(id), fresh); }
}));

// New rows come in where the end is in view and untouched; else they wait in "12 new events ↓".
function insert(target, rows, top) {
  const missing = rows.filter((row) => !row.id || !byId(row.id));
  target[top ? "prepend" : "append"](...missing);
  missing.forEach((row) => row.classList.add("fresh"));
  return missing.at(top ? 0 : -1);
}
const rowsOf = (carrier) => [...(carrier.rows ?? carrier.children)];
function add(carrier, target, top) {
  const queue = waiting.get(target.id) ?? { rows: [], top, word: target.dataset.word ?? "event" };
  const rows = rowsOf(carrier).filter((row) => !byId(row.id) && !queue.rows.some((one) => one.id && one.id === row.id));
  if (!rows.length) return;
  tell(queue.word, rows.length);
  // A place that is kept free takes them without moving anything, wherever the reader is.
  if (target.dataset.reserved !== undefined) return void insert(target, rows, top);
  const box = target.getBoundingClientRect(), inView = top ? box.top >= 0 : box.bottom <= innerHeight + 80;
  if (inView && !queue.rows.length && target.dataset.follow !== "off" && !target.matches(":hover, :focus-within")) {
    const last = insert(target, rows, top);
    if (!top) last?.scrollIntoView({ block: "nearest" });
    return;
  }
  queue.rows = top ? [...rows, ...queue.rows] : [...queue.rows, ...rows];
  waiting.set(target.id, queue);
  offer();
}
const button = Object.assign(document.createElement("button"), { id: "live-new", type: "button", className: "button", onclick: release });
function offer() {
  button.textContent = [...waiting.values()].map(({ rows, word, top }) => `${count(rows.length, word)} ${top ? "↑" : "↓"}`).join(" · ");
  if (waiting.size) document.body.append(button); else button.remove();
}
function release() {
  let last;
  for (const [id, { rows, top }] of waiting) if (byId(id)) last = insert(byId(id), rows, top) ?? last;
  waiting.clear();
  offer();
  changed();
  last?.scrollIntoView({ block: "nearest" });
  if (last?.tabIndex < 0) last.tabIndex = -1;
  last?.focus({ preventScroll: true });
}
function changed() {
  globalThis.htmx?.process(document.body);
  document.body.dispatchEvent(new Event("interlock:changed", { bubbles: true }));
}
function apply(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  // A table without an id carries rows of their own ids, which cannot stand alone.
  const elements = [...template.content.children].flatMap((one) => (one.rows && !one.id && !one.dataset.append ? rowsOf(one) : one)), loud = elements.find((one) => one.dataset.alert)?.dataset.alert;
  if (loud && loud !== alarm) urge(loud);
  alarm = loud;
  for (const element of elements) {
    const { append, prepend, say: text } = element.dataset, target = byId(append ?? prepend ?? element.id);
    tell("", 0, text);
    for (const [id, { rows }] of waiting) {
      const place = rows.findIndex((row) => row.id && row.id === element.id);
      // What has left the list before anybody saw it waits no more.
      if (place >= 0) rows.splice(place, 1, ...("gone" in element.dataset ? [] : [element]));
      if (!rows.length) waiting.delete(id);
      if (element.id) for (const row of rows) if (row !== element) row.querySelector?.(`#${CSS.escape(element.id)}`)?.replaceWith(element.cloneNode(true));
    }
    if (target && !("gone" in element.dataset)) (append ?? prepend) === undefined ? replace(target, element) : add(element, target, prepend !== undefined);
  }
  offer();
  changed();
}

class Link {
  constructor({ dataset }) {
    Object.assign(this, { path: dataset.live, cursor: dataset.seq ?? "", view: dataset.view ?? "", state: "connecting", tries: 0, failed: 0, drawn: 0, frames: [], heard: Date.now() });
    this.poll = `${this.path.slice(3).replace("inbox", "approvals")}/${/-/.test(this.path) ? "events" : "changes"}.html`;
    this.open();
  }
  get over() { return Object.values(ENDS).includes(this.state); }
  open() {
    clearTimeout(this.timer);
    if (this.over || this.socket) return;
    this.tried = Date.now();
    const socket = this.socket = new WebSocket(`ws${location.protocol.slice(4)}//${location.host}${this.path}`);
    socket.onopen = () => this.hello();
    socket.onmessage = ({ data }) => this.take(JSON.parse(data));
    socket.onclose = ({ code }) => { if (this.socket === socket) this.closed(code); };
  }
  hello() { this.socket.send(JSON.stringify({ after: this.cursor, html: true, deltas: Boolean(byId("writing")), view: this.view, zone: document.documentElement.dataset.zone })); }
  take({ after, seq, html, build, delta }) {
    const asked = this.asked;
    // It has no cursor: writing.js shows it or not, and nothing else changes. It says nothing of how fresh the page is, either.
    if (delta) return void document.dispatchEvent(new CustomEvent("interlock:delta", { detail: delta }));
    this.heard = Date.now();
    this.asked = `${after}` !== `${this.cursor}`;
    if (this.asked) return asked || this.hello();
    this.cursor = seq;
    this.tries = this.failed = 0;
    this.polling = clearTimeout(this.polling);
    newBuild ||= build && build !== document.documentElement.dataset.version;
    this.become("live");
    this.draw(after, html);
  }
  draw(after, html) {
    if (html) this.frames.push([after, html]);
    if (html) this.drawing ||= setTimeout(() => this.show(), Math.max(0, this.drawn + 250 - Date.now()));
  }
  show() {
    this.drawing = 0;
    this.drawn = Date.now();
    for (const [after, html] of this.frames.splice(0)) {
      try { apply(html); } catch (fault) { return this.again(after, fault); }
      this.stuck = undefined;
    }
  }
  // What could not be shown is asked for once more, with all that came behind it; then the place is lost.
  again(after, fault) {
    console.error("A change could not be shown.", fault);
    const [twice, open] = [this.stuck === `${after}`, this.socket?.readyState === WebSocket.OPEN];
    [this.stuck, this.cursor, this.etag] = [`${after}`, after, ""];
    if (twice) { this.drop(); this.closed(4400); } else if (open) { this.asked = true; this.hello(); }
  }
  closed(code) {
    this.socket = null;
    if (ENDS[code]) {
      this.polling = clearTimeout(this.polling);
      return this.become(ENDS[code]);
    }
    const wait = Math.random() * (code === 4429 ? 15000 : Math.min(15000, 500 * 2 ** this.tries++));
    this.until = Date.now() + wait;
    this.timer = setTimeout(() => this.open(), wait);
    if (++this.failed >= 3) this.polling ??= setTimeout(() => this.pull());
    if (this.state !== "polling") this.become("reconnecting");
  }
  async pull() {
    const from = this.cursor;
    // A loss is noticed by the next of these, and is to be said within two seconds.
    this.polling = setTimeout(() => this.pull(), 1500);
    try {
      const headers = this.etag ? { "If-None-Match": this.etag } : {};
      const answer = await fetch(`${this.poll}?after=${from}&view=${encodeURIComponent(this.view)}`, { headers, redirect: "manual" }), html = await answer.text();
      if (!this.polling || this.cursor !== from) return;
      const code = answer.type === "opaqueredirect" ? 4401 : 4000 + answer.status;
      if (ENDS[code]) return this.closed(code);
      if (code !== 4304 && !answer.ok) throw code;
      this.heard = Date.now();
      this.become("polling");
      if (code === 4304) return;
      this.etag = answer.headers.get("ETag");
      this.cursor = answer.headers.get("Interlock-Seq");
      this.draw(from, html);
    } catch { if (this.state === "polling") this.become("reconnecting"); }
  }
  retry() {
    if (this.state === "live" && Date.now() - this.heard < 45000) return;
    this.drop();
    this.tries = 0;
    this.open();
  }
  drop() {
    const old = this.socket;
    this.socket = null;
    old?.close();
  }
  look() {
    if (this.over || Date.now() - this.heard < 45000) return;
    // A socket that has just been opened has its time to say something.
    if (this.socket && Date.now() - this.tried > 45000) { this.drop(); this.closed(); }
    this.become("stale");
  }
  become(state) {
    if (this.state === state) return;
    this.state = state;
    if (state === "signed-out") urge("You are signed out.");
    draw();
  }
}

// The pill shows the worst state of all, first here: its words, and the label and act of its button.
const retry = () => links.forEach((link) => link.retry()), reload = () => location.reload();
const signIn = () => location.assign(`/account/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
const PILL = {
  "signed-out": () => ["Signed out – ", "Sign in", signIn],
  forbidden: () => ["You may not see this any more"],
  gone: () => ["This is not there any more"],
  lost: () => ["Lost the place – ", "Reload", reload],
  stale: (link) => [`Stale since ${clock(link.heard)} – `, "Retry now", retry],
  reconnecting: (link) => [`Reconnecting in ${Math.max(0, Math.ceil((link.until - Date.now()) / 1000))} s – `, "Retry now", retry],
  connecting: () => ["Connecting"],
  polling: () => ["Polling"],
  live: () => (newBuild ? ["New version – ", "Reload", reload] : ["Live"]),
};
function draw() {
  const pill = byId("pill"), rank = Object.keys(PILL), heard = Math.min(...links.map((link) => link.heard));
  const link = links.reduce((a, b) => (rank.indexOf(b.state) < rank.indexOf(a.state) ? b : a));
  const [text, label, onclick] = PILL[link.state](link);
  const stop = link.state === "signed-out" ? "You are signed out." : Date.now() - heard > 120000 && `This page is as of ${clock(heard)}.`;
  for (const one of document.querySelectorAll("[data-needs-fresh]")) {
    if (stop ? !one.disabled : one.dataset.stopped) {
      [one.disabled, one.title] = [!!stop, stop || ""];
      one.dataset.stopped = stop || "";
    }
  }
  document.documentElement.dataset.link = link.state;
  if (!pill || pill.dataset.text === text) return;
  const focused = pill.contains(document.activeElement);
  Object.assign(pill.dataset, { text, pill: link.state });
  Object.assign(pill, { hidden: false, title: `Last heard at ${clock(heard)}` });
  pill.replaceChildren(text);
  if (label) pill.append(Object.assign(document.createElement("button"), { type: "button", textContent: label, onclick }));
  if (focused) pill.lastChild.focus?.();
}

document.querySelectorAll("[data-live]").forEach((element) => links.push(new Link(element)));
if (links.length) {
  setInterval(() => { links.forEach((link) => link.look()); draw(); }, 1000);
  addEventListener("online", retry);
  // Whoever has no network hears of it long before a silent socket would tell; one that was there after all is opened again at once.
  addEventListener("offline", () => links.forEach((link) => { if (!link.over) { link.drop(); link.closed(); link.become("reconnecting"); } }));
  document.addEventListener("visibilitychange", () => document.hidden || retry());
  draw();
}
