// The address says what is shown: #/KEY/STEP. Keys move along it.
async function route() {
  const [key, index] = location.hash.replace(/^#\/?/, "").split("/");
  $("app").classList.toggle("open", key !== "");
  if (key === "") return current || empty();
  if (!current || String(current.key) !== key) {
    const trace = await source.trace(Number(key));
    if (!trace) return missing();
    showTrace(trace);
  }
  document.title = current.title ? `${current.title.slice(0, 60)}: traces` : "traces";
  markRow();
  goTo(index === undefined || index === "" ? null : Number(index));
}

function empty() {
  $("main").replaceChildren(el("p", { klass: "empty" }, rows.length ? "Choose a trace." : "Nothing here yet."));
}

function missing() {
  current = null;
  $("main").replaceChildren(el("p", { klass: "empty" }, "This trace is not in the page. Look at the store with: postgrad show STORE --serve"));
}

function markRow() {
  for (const link of document.querySelectorAll("#rows a")) {
    const mine = current && link.dataset.key === String(current.key);
    link.toggleAttribute("aria-current", mine);
    if (mine) link.setAttribute("aria-current", "true");
  }
}

let at = null;
function goTo(index) {
  at = index;
  for (const node of document.querySelectorAll(".step[aria-current], .outline a[aria-current]")) node.removeAttribute("aria-current");
  const box = index === null ? null : $("s" + index);
  if (!box) return;
  box.setAttribute("aria-current", "true");
  box.scrollIntoView({ block: "start" });
  box.focus({ preventScroll: true });
  const link = document.querySelector(`.outline a[data-step="${index}"]`);
  if (link) {
    link.setAttribute("aria-current", "true");
    link.scrollIntoView({ block: "nearest" });
  }
}

function move(indices, by) {
  if (!indices.length) return;
  const place = at === null ? (by > 0 ? -1 : indices.length) : by > 0 ? indices.findLastIndex(one => one <= at) : indices.findIndex(one => one >= at);
  const next = indices[place + by];
  if (next !== undefined) location.hash = `#/${current.key}/${next}`;
}

function otherTrace(by) {
  const shown = chosenRows().map(row => row.key);
  const place = current ? shown.indexOf(current.key) : -1;
  const next = shown[place < 0 ? 0 : place + by];
  if (next !== undefined) location.hash = `#/${next}`;
}

function unfold() {
  const box = at === null ? null : $("s" + at);
  if (!box) return;
  const open = !box.querySelector("details:not([open]), .fold button[aria-expanded=false]");
  for (const one of box.querySelectorAll("details")) one.open = !open;
  for (const one of box.querySelectorAll(`.fold button[aria-expanded=${open}]`)) one.click();
}

const KEYS = {
  j: () => current && move(current.steps.map(step => step.index), 1),
  k: () => current && move(current.steps.map(step => step.index), -1),
  n: () => current && move(current.steps.filter(step => step.sites.length).map(step => step.index), 1),
  p: () => current && move(current.steps.filter(step => step.sites.length).map(step => step.index), -1),
  "]": () => otherTrace(1),
  "[": () => otherTrace(-1),
  x: unfold,
  "/": () => { location.hash = matchMedia("(max-width: 46rem)").matches ? "#/" : location.hash; $("words").focus(); },
  "?": () => $("help").showModal(),
  Escape: () => { location.hash = "#/"; },
};

document.addEventListener("keydown", event => {
  const typing = event.target.closest("input, select, dialog");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
let waiting = 0;
$("words").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 250); });
for (const id of ["format", "model", "errors", "order"]) $(id).addEventListener("change", showList);
$("help-open").addEventListener("click", () => $("help").showModal());
window.addEventListener("hashchange", route);

source.start(state => {
  reading = state;
  showFilters();
  showList();
  if (!current) route();
}).catch(() => { reading = { done: true, fault: "the server does not answer" }; showList(); });
