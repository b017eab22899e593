"use strict";
// The page is complete without this script: it only hides, shows and moves.
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

const pairs = [...document.querySelectorAll("article.pair")];
let at = 0;

function show(index) {
  if (!pairs.length) return;
  at = (index + pairs.length) % pairs.length;
  pairs.forEach((pair, k) => { pair.hidden = k !== at; });
  $("pair").value = String(at);
  $("place").textContent = `${at + 1} of ${pairs.length}`;
  for (const text of pairs[at].querySelectorAll(".text")) {
    const first = text.querySelector(".shared");
    text.scrollTop = first ? first.offsetTop - text.clientHeight / 4 : 0;
  }
}

if (pairs.length) {
  $("pair").addEventListener("change", () => show(Number($("pair").value)));
  $("next").addEventListener("click", () => show(at + 1));
  $("previous").addEventListener("click", () => show(at - 1));
  show(0);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "t") theme();
  if (!pairs.length) return;
  if (event.key === "n") show(at + 1);
  if (event.key === "p") show(at - 1);
  const kind = $("inspector").dataset.kinds.split(" ")[event.key - 1];
  const first = pairs.findIndex((pair) => pair.dataset.kind === kind);
  if (kind && first >= 0) show(first);
  if ((kind && first >= 0) || "np".includes(event.key)) $("inspector").scrollIntoView();
});
