"use strict";
// Everything shown comes from the two JSON blocks and is set as text, never as markup.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const packed = JSON.parse($("texts").textContent);
const clusters = data.clusters;
const ROW = 30;
const MOST_EDITS = 1500;
const TAIL = 20;
const BINS = 150;

// A list that draws only the rows in sight.
class List {
  constructor(element, draw, chosen) {
    this.element = element;
    this.draw = draw;
    this.chosen = chosen;
    this.count = 0;
    this.selected = -1;
    this.canvas = document.createElement("div");
    this.canvas.className = "room";
    element.append(this.canvas);
    element.addEventListener("scroll", () => this.show());
    element.addEventListener("pointerdown", (event) => {
      const row = event.target.closest(".row");
      if (row) this.select(Number(row.dataset.index), event);
    });
    new ResizeObserver(() => this.show()).observe(element);
  }

  fill(count, selected) {
    this.count = count;
    this.selected = -1;
    this.canvas.style.height = `${count * ROW}px`;
    this.element.scrollTop = 0;
    if (count) this.select(Math.min(selected, count - 1));
    else this.show();
  }

  select(index, event) {
    if (index < 0 || index >= this.count) return;
    this.selected = index;
    const { scrollTop, clientHeight } = this.element;
    if (index * ROW < scrollTop) this.element.scrollTop = index * ROW;
    if ((index + 1) * ROW > scrollTop + clientHeight) this.element.scrollTop = (index + 1) * ROW - clientHeight;
    this.show();
    this.chosen(index, event);
  }

  show() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - 3);
    const last = Math.min(this.count, Math.ceil((this.element.scrollTop + this.element.clientHeight) / ROW) + 3);
    const rows = [];
    for (let index = first; index < last; index++) {
      const row = document.createElement("div");
      row.className = "row";
      row.id = `${this.element.id}-${index}`;
      row.dataset.index = index;
      row.style.top = `${index * ROW}px`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", index === this.selected);
      row.setAttribute("aria-setsize", this.count);
      row.setAttribute("aria-posinset", index + 1);
      for (const [name, text] of this.draw(index)) {
        const cell = document.createElement("span");
        cell.className = name;
        if (name === "name") cell.append(...halves(text));
        else cell.textContent = text;
        row.append(cell);
      }
      rows.push(row);
    }
    this.canvas.replaceChildren(...rows);
    if (this.selected >= 0) this.element.setAttribute("aria-activedescendant", `${this.element.id}-${this.selected}`);
    else this.element.removeAttribute("aria-activedescendant");
  }
}

// A name that is too long loses its middle: addresses differ at their end.
function halves(text) {
  const cut = Math.max(0, text.length - TAIL);
  return [["head", text.slice(0, cut)], ["tail", text.slice(cut)]].map(([name, part]) => {
    const half = document.createElement("span");
    half.className = name;
    half.textContent = part;
    return half;
  });
}

const short = (id) => id.slice(data.prefix.length);
const number = (value) => (value === null ? "–" : value.toFixed(3));
let order = clusters.map((_, k) => k);
let open = null; // the open cluster
let left = 0;
let content = null; // its texts, signatures and pairs
let differences = [];
let at = -1;

const clusterList = new List($("clusters"), (index) => {
  const cluster = clusters[order[index]];
  return [
    ["count", cluster.mark ?? cluster.ids.length.toLocaleString("en")],
    ["name", short(cluster.ids[0])],
    [cluster.chain ? "value chain" : "value",
      `${cluster.giant ? "giant chain " : cluster.chain ? "chain " : ""}${number(cluster.low)}`],
  ];
}, (index) => show(order[index]));

const memberList = new List($("members"), (index) => {
  const name = index === left ? "left" : index === memberList.selected ? "right" : "";
  return [
    ["count", name],
    ["name", short(open.ids[index])],
    ["value", index ? number(open.similarities[index]) : "representative"],
  ];
}, (index, event) => {
  if (event && event.shiftKey) left = index;
  compare();
});

function reorder() {
  const wanted = $("filter").value.trim().toLowerCase();
  const orders = {
    size: (a, b) => clusters[b].ids.length - clusters[a].ids.length || a - b,
    loose: (a, b) => (clusters[a].low ?? 2) - (clusters[b].low ?? 2) || a - b,
    tight: (a, b) => (clusters[b].low ?? -1) - (clusters[a].low ?? -1) || a - b,
    chain: (a, b) => clusters[b].giant - clusters[a].giant || clusters[b].chain - clusters[a].chain || a - b,
  };
  order = clusters.map((_, k) => k);
  if (wanted) order = order.filter((k) => clusters[k].ids.some((id) => id.toLowerCase().includes(wanted)));
  order.sort(orders[$("order").value]);
  const shown = order.length === clusters.length ? "" : `${order.length.toLocaleString("en")} of `;
  $("counts").textContent = `${shown}${clusters.length.toLocaleString("en")} ${data.noun ?? "clusters"}, ${data.summary}` +
    (data.prefix ? `; ids begin with ${data.prefix}` : "");
  clusterList.fill(order.length, 0);
  if (!order.length) show(null);
}

async function show(k) {
  open = k === null ? null : clusters[k];
  content = null;
  left = 0;
  for (const side of ["left", "right", "left-map", "right-map"]) $(side).replaceChildren();
  if (!open) {
    $("summary").textContent = clusters.length ? "No cluster has such a document." : "No near-duplicates were found.";
    memberList.fill(0, 0);
    compare();
    return;
  }
  const size = open.ids.length;
  const chain = open.chain
    ? ` ${open.chain.toLocaleString("en")} of the documents did not reach the threshold with the representative: ` +
      (open.giant ? "a giant chain, most of whose pairs are unlike." : "a chain.")
    : "";
  $("summary").textContent = open.about ?? `Cluster ${open.label}: ${size.toLocaleString("en")} documents, ` +
    `${open.pairs.toLocaleString("en")} of ${(size * (size - 1) / 2).toLocaleString("en")} pairs similar, ` +
    `by ${number(open.low)} at least, ${number(open.mean)} on average.${chain}`;
  memberList.fill(open.ids.length, 1);
  const mine = open;
  const unpacked = packed[k] ? await unpack(packed[k]) : {};
  if (open !== mine) return;
  content = unpacked;
  compare();
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function compare() {
  differences = [];
  at = -1;
  const right = memberList.selected;
  memberList.show();
  name("left", open ? open.ids[left] : "");
  name("right", open && right >= 0 ? open.ids[right] : "");
  if (!open || !content) {
    $("comparison").textContent = "";
    return;
  }
  const texts = [left, right].map((member) => content.texts?.[member] ?? null);
  const spots = [left, right].map((member) => content.spots?.[member] ?? []);
  const shared = common(spots[0], spots[1]);
  const flags = texts.map((text, side) => marked(text ?? "", spots[side], shared[side]));
  let exact = true;
  if (texts[0] !== null && texts[1] !== null) exact = differ(texts, flags);
  ["left", "right"].forEach((side, k) => {
    paint($(side), texts[k], flags[k]);
    map($(`${side}-map`), flags[k]);
  });
  const parts = [relation(Math.min(left, right), Math.max(left, right))];
  if (data.marked && texts[0] !== null && texts[1] !== null) {
    const all = spots[0].length + spots[1].length - shared[0].size;
    parts.push(`${shared[0].size} of ${all} signatures shared`);
  }
  if (!exact) parts.push("too different for a difference in order: marked are words that the other side lacks");
  $("comparison").textContent = `${parts.join("; ")}.`;
  differences = [...document.querySelectorAll("#right .only, #left .only")]
    .filter((span) => !span.previousSibling?.classList?.contains("only"))
    .sort((a, b) => a.offsetTop - b.offsetTop);
}

function name(side, id) {
  $(`${side}-name`).textContent = short(id);
  $(`${side}-name`).title = id;
}

// What is known of two members; of those without text, only how similar they are to the representative.
function relation(low, high) {
  if (low === high) return "the same document";
  const pair = (content.pairs ?? []).find(([a, b]) => a === low && b === high);
  if (pair && pair.length > 3) {
    const inner = (pair[3] === 0 ? low : high) === left ? "left" : "right";
    return `the ${inner} document is contained in the ${inner === "left" ? "right" : "left"} one by ${number(pair[2])}`;
  }
  if (pair) return `similarity ${number(pair[2])}`;
  if (low === 0 && open.similarities[high] !== null) return `similarity ${number(open.similarities[high])}`;
  return high < (content.texts ?? []).length ? "not reported as a pair" : "how similar these two are is not in this page";
}

// The signatures two documents share, each as often as both have it: positions in their lists.
function common(one, other) {
  const places = new Map();
  one.forEach(([signature], k) => places.set(signature, [...(places.get(signature) ?? []), k]));
  const shared = [new Set(), new Set()];
  other.forEach(([signature], k) => {
    const left = places.get(signature);
    if (left && left.length) {
      shared[0].add(left.shift());
      shared[1].add(k);
    }
  });
  return shared;
}

const ONLY = 1, SHARED = 2, OWN = 4;

function marked(text, spots, shared) {
  const flags = new Uint8Array(text.length);
  spots.forEach(([, ...ends], k) => {
    for (let e = 0; e < ends.length; e += 2) {
      for (let c = ends[e]; c < ends[e + 1]; c++) flags[c] |= shared.has(k) ? SHARED : OWN;
    }
  });
  return flags;
}

function words(text) {
  return [...text.matchAll(/\S+/gu)].map((match) => ({ word: match[0], start: match.index, end: match.index + match[0].length }));
}

// Mark the words that only one side has; whether they were found in order.
function differ(texts, flags) {
  const sides = texts.map(words);
  const kept = edits(sides[0].map((w) => w.word), sides[1].map((w) => w.word));
  sides.forEach((list, side) => list.forEach((w, k) => {
    if (kept.sides[side].has(k)) return;
    const joined = k > 0 && !kept.sides[side].has(k - 1);
    for (let c = joined ? list[k - 1].end : w.start; c < w.end; c++) flags[side][c] |= ONLY;
  }));
  return kept.exact;
}

// Myers' greedy algorithm: the positions of a longest common subsequence, or of common words if it would take long.
function edits(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const sides = [new Set(), new Set()];
  for (let k = 0; k < head; k++) { sides[0].add(k); sides[1].add(k); }
  for (let k = 1; k <= tail; k++) { sides[0].add(a.length - k); sides[1].add(b.length - k); }
  const n = a.length - head - tail, m = b.length - head - tail;
  const trace = [];
  let v = new Int32Array([0, 0, 0]);
  for (let d = 0; d <= Math.min(n + m, MOST_EDITS); d++) {
    const next = new Int32Array(2 * d + 3);
    for (let k = -d; k <= d; k += 2) {
      let x = d === 0 ? 0 : k === -d || (k !== d && v[k - 1 + d] < v[k + 1 + d]) ? v[k + 1 + d] : v[k - 1 + d] + 1;
      let y = x - k;
      while (x < n && y < m && a[head + x] === b[head + y]) { x++; y++; }
      next[k + d + 1] = x;
      if (x >= n && y >= m) {
        trace.push(next);
        back(trace, d, n, m, head, sides);
        return { sides, exact: true };
      }
    }
    trace.push(next);
    v = next;
  }
  [[a, b, 0, n], [b, a, 1, m]].forEach(([mine, other, side, size]) => {
    const known = new Set(other);
    for (let k = head; k < head + size; k++) if (known.has(mine[k])) sides[side].add(k);
  });
  return { sides, exact: false };
}

// trace[d][k + d + 1] is the furthest x on diagonal k after d edits.
function back(trace, d, n, m, head, sides) {
  let x = n, y = m;
  for (; d >= 0; d--) {
    const k = x - y;
    let px = 0, py = 0;
    if (d > 0) {
      const v = trace[d - 1];
      const down = k === -d || (k !== d && v[k - 1 + d] < v[k + 1 + d]);
      px = v[(down ? k + 1 : k - 1) + d];
      py = px - (down ? k + 1 : k - 1);
      const sx = down ? px : px + 1;
      while (x > sx) { x--; y--; sides[0].add(head + x); sides[1].add(head + y); }
    } else {
      while (x > 0 && y > 0) { x--; y--; sides[0].add(head + x); sides[1].add(head + y); }
    }
    x = px;
    y = py;
  }
}

function paint(element, text, flags) {
  if (text === null) {
    element.textContent = "The text of this document is not in this page.";
    return;
  }
  const nodes = [];
  for (let start = 0; start < text.length;) {
    let end = start + 1;
    while (end < text.length && flags[end] === flags[start]) end++;
    const piece = document.createTextNode(text.slice(start, end));
    if (flags[start]) {
      const span = document.createElement("span");
      const flag = flags[start];
      span.className = [flag & ONLY && "only", flag & SHARED ? "shared" : flag & OWN && "own"].filter(Boolean).join(" ");
      span.append(piece);
      nodes.push(span);
    } else nodes.push(piece);
    start = end;
  }
  element.replaceChildren(...nodes);
  const first = element.querySelector(".shared");
  element.scrollTop = first ? first.offsetTop - element.clientHeight / 4 : 0;
}

// Positions of the shared signatures in the whole text, next to the pane that shows a part of it.
function map(element, flags) {
  const marks = [];
  const marked_in = (bin) => flags.subarray(Math.floor(bin * flags.length / BINS), Math.ceil((bin + 1) * flags.length / BINS))
    .some((flag) => flag & SHARED);
  for (let bin = 0; bin < BINS; bin++) {
    if (!marked_in(bin)) continue;
    const from = bin;
    while (bin + 1 < BINS && marked_in(bin + 1)) bin++;
    const mark = document.createElement("i");
    mark.style.top = `${100 * from / BINS}%`;
    mark.style.height = `${100 * (bin + 1 - from) / BINS}%`;
    marks.push(mark);
  }
  element.replaceChildren(...marks);
}

function go(side, event) {
  const box = $(`${side}-map`).getBoundingClientRect();
  const text = $(side);
  text.scrollTop = text.scrollHeight * (event.clientY - box.top) / box.height - text.clientHeight / 2;
}

function step(by) {
  if (!differences.length) return;
  if (at >= 0) differences[at].classList.remove("here");
  at = (at + by + differences.length) % differences.length;
  differences[at].classList.add("here");
  differences[at].scrollIntoView({ block: "center" });
}

function retheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

function help() {
  $("help").open ? $("help").close() : $("help").showModal();
  $("keys").setAttribute("aria-expanded", $("help").open);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if ($("help").open) {
    if (event.key === "?") help();
    return;
  }
  const typing = event.target.matches("input, select");
  if (event.key === "Escape" && event.target === $("filter")) {
    $("filter").value = "";
    reorder();
    $("clusters").focus();
    return;
  }
  if (event.key === "Enter" && event.target === $("filter")) return $("clusters").focus();
  if (typing) return;
  const inMembers = event.target.closest("#detail") !== null;
  const list = inMembers ? memberList : clusterList;
  const page = Math.max(1, Math.floor(list.element.clientHeight / ROW) - 1);
  const scrolls = event.target.matches(".text");
  const moves = {
    j: 1, k: -1, ...(scrolls ? {} : { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }),
  };
  const acts = {
    "/": () => $("filter").focus(),
    n: () => step(1),
    p: () => step(-1),
    t: retheme,
    "?": help,
    l: () => { left = memberList.selected; compare(); },
    ArrowLeft: () => $("clusters").focus(),
    ArrowRight: () => $("members").focus(),
    ...(inMembers ? {} : { Enter: () => $("members").focus() }),
  };
  if (event.key in moves) {
    list.select(Math.max(0, Math.min(list.count - 1, list.selected + moves[event.key])));
    if (!inMembers || event.target !== list.element) list.element.focus({ preventScroll: true });
  } else if (event.key in acts && !(scrolls && event.key.startsWith("Arrow"))) acts[event.key]();
  else return;
  event.preventDefault();
});
$("filter").addEventListener("input", reorder);
$("order").addEventListener("change", reorder);
$("theme").addEventListener("click", retheme);
for (const side of ["left", "right"]) $(`${side}-map`).addEventListener("click", (event) => go(side, event));
$("keys").addEventListener("click", help);
$("help").addEventListener("close", () => $("keys").setAttribute("aria-expanded", "false"));
$("order").parentElement.hidden = "noun" in data;
reorder();
$("clusters").focus({ preventScroll: true });
