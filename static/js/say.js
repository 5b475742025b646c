// What screen readers are told: politely, at most one sentence in five seconds; urgently, at once.
let last = 0;
let waiting;

export function say(text) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    last = Date.now();
    document.getElementById("polite").textContent = text;
  }, Math.max(0, last + 5000 - Date.now()));
}

export function urge(text) { document.getElementById("assertive").textContent = text; }
