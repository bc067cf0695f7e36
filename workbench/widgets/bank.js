// Sends what is chosen, and shows what comes back. The page for others has no script.
function render({ model, el }) {
  const show = () => {
    const open = [...el.querySelectorAll("details")].map((d) => d.open);
    el.innerHTML = model.get("html"); // made by the workbench, which escapes
    el.querySelectorAll("details").forEach((d, i) => (d.open = open[i] ?? false));
  };
  const fields = () => new URLSearchParams(new FormData(el.querySelector("form"))).toString();
  el.addEventListener("submit", (e) => { e.preventDefault(); model.send({ fields: fields() }); });
  el.addEventListener("click", (e) => {
    const link = e.target.closest("a[href^='?']"), spend = e.target.closest("[data-spend]");
    if (link) { e.preventDefault(); model.send({ fields: link.getAttribute("href").slice(1).split("#")[0] }); }
    if (spend) { spend.disabled = true; model.send({ spend: Number(spend.dataset.spend) }); }
  });
  for (const name of ["keydown", "keyup", "keypress"]) el.addEventListener(name, (e) => e.stopPropagation());
  model.on("change:html", show);
  show();
}
export default { render };
