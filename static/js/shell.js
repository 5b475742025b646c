// What every page loads: the small behaviours of the shell.
import "./theme.js";
import "./time.js";
import "./copy.js";
import "./forms.js";
import "./list.js";
import "./keys.js";
import "./palette.js";
