// Forms: what was typed is not lost, errors get the focus, dialogs open, nothing is sent twice.
const dirty = new Set();
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.matches("[data-guard]")) dirty.add(form);
});
document.addEventListener("submit", (event) => {
  dirty.delete(event.target);
  if (event.defaultPrevented || event.target.method === "dialog" || event.target.matches("[data-theme-form]")) return;
  if (event.target.dataset.sent) { event.preventDefault(); return; }
  event.target.dataset.sent = "1";
  setTimeout(() => delete event.target.dataset.sent, 5000);
});
addEventListener("pageshow", () => { for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent; });
// A form that was read again is on the page no more: what was typed in it moved on, or is no question any more.
addEventListener("beforeunload", (event) => { if ([...dirty].some((form) => form.isConnected)) event.preventDefault(); });

document.querySelector("[data-errors]")?.focus();

// [data-dialog="id"] opens the dialog with the focus on its [data-first]; its own button sends the form. Without script the link or form stands as it is.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  const dialog = opener && document.getElementById(opener.dataset.dialog);
  if (!dialog) return;
  event.preventDefault();
  dialog.showModal();
  dialog.querySelector("[data-first]")?.focus();
});
