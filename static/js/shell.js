// What every page loads: the small behaviours of the shell.
import "./theme.js";
import "./time.js";
import "./copy.js";
import "./forms.js";
import "./list.js";
import "./keys.js";
import "./palette.js";

// A page that follows nothing says so, and from when it is.
const pill = document.getElementById("pill");
if (pill && !document.querySelector("[data-live]")) {
  const at = new Date();
  Object.assign(pill, { hidden: false, textContent: `As of ${at.toTimeString().slice(0, 5)}`, title: `This page stays as it was at ${at.toTimeString().slice(0, 8)}: nothing on it moves by itself.` });
  pill.dataset.pill = "still";
}
