// Sends the fields of a step when they change and when a button is pressed, and shows what comes back.
function render({ model, el }) {
  let held = false, typing = false, sent = 0, timer = 0;
  const send = (message) => {
    typing = false;
    sent = Date.now() + Math.random();
    model.send({ ...message, seq: sent });
  };
  const fields = () => Object.fromEntries(new FormData(el.querySelector("form")));
  const show = () => {
    if (held || typing || (sent && model.get("seq") !== sent)) return; // a click finds its button, and text stays
    const at = el.contains(document.activeElement) ? document.activeElement : null;
    const [name, value, action] = [at?.name, at?.value, at?.dataset?.do];
    const step = el.querySelector("form")?.dataset.step;
    el.innerHTML = model.get("html"); // made by the workbench, which escapes
    const same = step === el.querySelector("form")?.dataset.step;
    const again = [...el.querySelectorAll("[name]")].filter((e) => e.name === name);
    if (same) (again.find((e) => e.type !== "radio" || e.value === value)
      ?? el.querySelector(`[data-do="${action}"]`))?.focus();
    else { window.scrollTo(0, 0); el.querySelector("h1")?.focus(); }
    clearInterval(timer);
    if (el.querySelector("[data-poll]")) timer = setInterval(() => { if (!typing) send({}); }, 1000);
  };
  el.addEventListener("pointerdown", () => (held = true));
  window.addEventListener("pointerup", () => setTimeout(() => {
    held = false;
    if (model.get("seq") === sent) show();
  }, 50));
  el.addEventListener("input", () => (typing = true));
  el.addEventListener("change", () => send({ fields: fields() }));
  el.addEventListener("focusout", () => { if (typing) send({ fields: fields() }); });
  el.addEventListener("submit", (e) => e.preventDefault());
  el.addEventListener("click", (e) => {
    const button = e.target.closest("[data-do]");
    if (!button) return;
    send({ fields: fields(), do: button.dataset.do });
    for (const each of el.querySelectorAll("button")) each.disabled = true; // until the answer
  });
  for (const name of ["keydown", "keyup", "keypress"]) el.addEventListener(name, (e) => e.stopPropagation());
  model.on("change:seq", show);
  show();
}
export default { render };
