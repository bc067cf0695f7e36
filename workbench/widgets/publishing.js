// Sends the fields of a step when they change and when a button is pressed, and shows what comes back.
function render({ model, el }) {
  let held = false, waiting = false, timer = 0;
  const fields = () => Object.fromEntries(new FormData(el.querySelector("form")));
  const show = () => {
    if (held) { waiting = true; return; } // a click must find its button
    waiting = false;
    const at = el.contains(document.activeElement) ? document.activeElement : null;
    const [name, typed, value] = [at?.name, at?.value, at?.dataset?.do];
    const step = el.querySelector("form")?.dataset.step;
    const open = [...el.querySelectorAll("details")].map((d) => d.open);
    el.innerHTML = model.get("html"); // made by the workbench, which escapes
    const same = step === el.querySelector("form")?.dataset.step;
    if (same) el.querySelectorAll("details").forEach((d, i) => (d.open = open[i] ?? false));
    const again = same && name && [...el.querySelectorAll("[name]")].find((e) => e.name === name
      && (e.type !== "radio" || e.value === typed));
    if (again) { if (again.type === "text") again.value = typed; again.focus(); }
    if (same && value) el.querySelector(`[data-do="${value}"]`)?.focus();
    if (!same) { window.scrollTo(0, 0); el.querySelector("h1")?.focus(); }
    clearInterval(timer); // nothing comes back where nothing changed
    if (el.querySelector("[data-poll]")) timer = setInterval(() => model.send({}), 1000);
  };
  el.addEventListener("pointerdown", () => (held = true));
  window.addEventListener("pointerup", () => setTimeout(() => { held = false; if (waiting) show(); }, 50));
  el.addEventListener("change", () => model.send({ fields: fields() }));
  el.addEventListener("submit", (e) => e.preventDefault());
  el.addEventListener("click", (e) => {
    const button = e.target.closest("[data-do]");
    if (!button) return;
    button.disabled = true;
    model.send({ fields: fields(), do: button.dataset.do });
  });
  for (const name of ["keydown", "keyup", "keypress"]) el.addEventListener(name, (e) => e.stopPropagation());
  model.on("change:html", show);
  show();
}
export default { render };
