// Search, the filter by outcome, and Copy; without it pages show everything.
document.documentElement.classList.add("scripted");

const box = document.querySelector(".search input");
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input")) {
    event.preventDefault();
    box.focus();
  } else if (event.key === "Escape") document.activeElement.blur(); // closes a paper's sentence
});
// A disk has no queries: what is sought stands after the #.
document.querySelector(".search").addEventListener("submit", (event) => {
  event.preventDefault();
  const page = event.target.getAttribute("action");
  location.href = `${page}#q=${encodeURIComponent(box.value)}`;
});

for (const button of document.querySelectorAll("[data-copy]"))
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  });

const said = document.querySelector(".said");
for (const event of ["mouseover", "focusin"])
  document.querySelector(".reproduces")?.addEventListener(event, ({ target }) => {
    if (target.matches(".square")) said.textContent = target.ariaLabel;
  });

addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll(".statement details, .data details")) details.open = true;
});

const filter = document.querySelector(".filter");
if (filter) {
  const words = filter.elements.words;
  const rows = [...document.querySelectorAll("tr[data-outcome]")];
  const show = () => {
    const chosen = new Set([...filter.querySelectorAll(":checked")].map((input) => input.value));
    const sought = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase() + row.dataset.sought;
      row.hidden = !chosen.has(row.dataset.outcome) || !sought.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    for (const group of document.querySelectorAll(".lines tbody"))
      group.hidden = !group.querySelector("tr[data-outcome]:not([hidden])");
    filter.querySelector("output").textContent = `${shown} of ${rows.length} statements`;
  };
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    if (asked.has("q")) words.value = asked.get("q");
    if (asked.has("outcome"))
      for (const input of filter.querySelectorAll("[name=outcome]"))
        input.checked = input.value === asked.get("outcome");
    show();
  };
  filter.addEventListener("input", show);
  filter.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  read();
}
