// Passkeys need a script; without one their buttons stay hidden. What goes wrong is said on the page.
for (const button of document.querySelectorAll("[data-passkey]")) button.hidden = !globalThis.PublicKeyCredential;
document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  const box = document.getElementById("passkey-error");
  const cancelled = event.detail.exception?.name === "NotAllowedError";
  box.textContent = cancelled ? "The passkey was not used: cancelled, or not known to this browser." : "The passkey could not be used here. Sign in with your password instead.";
  box.hidden = false;
});
