"use strict";
// The page is complete without this script: it only hides and shows.
const $ = (id) => document.getElementById(id);
const root = document.documentElement;

function theme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}
$("theme").addEventListener("click", theme);

$("verdicts")?.addEventListener("change", () => {
  for (const row of $("ledger").tBodies[0].rows) {
    row.hidden = $("verdicts").value !== "" && row.dataset.verdict !== $("verdicts").value;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "t") theme();
});
