// Sends what is chosen, and shows what comes back. The page for others has no script.
function render({ model, el }) {
  const place = ({ name, dataset }) => // where the focus is, or would be once an offer was taken
    (name ? `[name="${name}"]` : dataset.pair ? `[data-pair="${dataset.pair}"]` : "form button");
  const show = () => {
    const open = [...el.querySelectorAll("details")].map((d) => d.open), active = el.ownerDocument.activeElement;
    const at = el.contains(active) && place(active);
    el.innerHTML = model.get("html"); // made by the workbench, which escapes
    el.querySelectorAll("details").forEach((d, i) => (d.open = open[i] ?? false));
    if (at) el.querySelector(at)?.focus({ preventScroll: true });
    if (at && at.startsWith("[data-pair")) el.querySelector(".wbank-answer").scrollIntoView({ block: "nearest" });
  };
  const fields = () => new URLSearchParams(new FormData(el.querySelector("form"))).toString();
  el.addEventListener("submit", (e) => {
    e.preventDefault();
    el.querySelector("form button").textContent = "Asking …";
    model.send({ fields: fields() });
  });
  el.addEventListener("click", (e) => {
    const link = e.target.closest("[data-pair]"), spend = e.target.closest("[data-spend]");
    if (link) { e.preventDefault(); model.send({ fields: link.dataset.pair }); }
    if (spend) model.send({ spend: Number(spend.dataset.spend) });
  });
  for (const name of ["keydown", "keyup", "keypress"]) el.addEventListener(name, (e) => e.stopPropagation());
  const ended = () => {
    el.querySelectorAll("button").forEach((button) => (button.disabled = true));
    el.querySelector(".wbank-answer").innerHTML = `<p class="wbank-error" role="alert">The kernel has ended. Run the
      cell again, or load the page again.</p>`;
  };
  model.on("change:html", show);
  model.on("comm_live_update", ended);
  show();
  return () => { model.off("change:html", show); model.off("comm_live_update", ended); };
}
export default { render };
