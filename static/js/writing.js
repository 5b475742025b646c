// What a model writes, before anything of it is committed: shown while its call is the one that the page knows to be awaited.
const box = document.getElementById("writing"), text = box.querySelector(".writing-text");
const SILENCE = 15000;
let newest, silence;

function draw() {
  const asked = document.getElementById("run-standing")?.dataset.asked?.split(" ") ?? [];
  const shown = newest && asked.includes(newest.effect) ? newest : undefined;
  text.textContent = shown ? `${shown.at ? "… " : ""}${shown.text}` : "";
  box.hidden = !shown;
  text.scrollTop = text.scrollHeight;
}
document.addEventListener("interlock:delta", ({ detail }) => {
  newest = detail;
  clearTimeout(silence);
  silence = setTimeout(() => { newest = undefined; draw(); }, SILENCE);
  draw();
});
// A commit: the call that was awaited may be over, or known only now.
document.addEventListener("interlock:changed", draw);
