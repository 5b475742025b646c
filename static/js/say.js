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

let heard;

// What was read out is taken away, so that nobody comes upon it later and the same can be said again.
export function urge(text) {
  const region = document.getElementById("assertive");
  region.textContent = text;
  clearTimeout(heard);
  heard = setTimeout(() => region.replaceChildren(), 8000);
}
