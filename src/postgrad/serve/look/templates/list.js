// The list of traces and its filters.
let found = null; // keys that the search found, null without a search
let reading = { done: false, fault: "" };

function options(select, name, values) {
  const chosen = select.value;
  select.replaceChildren(new Option(name, ""), ...[...values].sort().map(value => new Option(value, value)));
  select.value = values.has(chosen) ? chosen : "";
}

function passes(row) {
  const format = $("format").value, model = $("model").value, errors = $("errors").value;
  const sites = Object.values(row.verdicts).reduce((sum, n) => sum + n, 0);
  return (!format || row.format === format) && (!model || row.models.includes(model)) && (!found || found.has(row.key))
    && (errors !== "learnable" || mistakes(row) > 0) && (errors !== "sites" || sites > 0)
    && (errors !== "flagged" || row.flagged > 0) && (errors !== "clean" || sites === 0);
}

const ORDERS = {
  newest: (a, b) => b.last.localeCompare(a.last),
  mistakes: (a, b) => mistakes(b) - mistakes(a),
  longest: (a, b) => b.steps - a.steps,
};

function chosenRows() {
  const chosen = rows.filter(passes);
  const order = ORDERS[$("order").value];
  if (order) return chosen.sort(order);
  const shown = new Set(chosen.map(row => row.id));
  const below = new Map();
  for (const row of chosen) {
    if (row.parent !== row.id && shown.has(row.parent)) below.set(row.parent, [...(below.get(row.parent) || []), row]);
  }
  const ordered = new Set();
  const walk = row => {
    if (!ordered.has(row)) {
      ordered.add(row);
      (below.get(row.id) || []).forEach(walk);
    }
  };
  chosen.filter(row => !shown.has(row.parent) || row.parent === row.id).forEach(walk);
  chosen.forEach(walk); // what is left belongs to a circle of parents
  return [...ordered];
}

function rowLink(row, nested) {
  const wrong = mistakes(row), sites = Object.values(row.verdicts).reduce((sum, n) => sum + n, 0) - wrong;
  const spent = row.tokens.input + row.tokens.output;
  return el("li", { klass: nested ? "child" : "" }, el("a", { href: `#/${row.key}`, "data-key": row.key, "aria-current": current && current.key === row.key ? "true" : null },
    el("div", { klass: "title" }, row.title || row.id),
    el("div", { klass: "meta" }, el("span", {}, row.format), el("span", {}, count(row.steps, "step")), spent > 0 && el("span", {}, `${number(spent)} tokens`),
      wrong > 0 && el("span", { klass: "chip real" }, count(wrong, "mistake")), sites > 0 && el("span", { klass: "chip" }, `${sites} other`))));
}

function showList() {
  const chosen = chosenRows(), ids = new Set(chosen.map(row => row.id)), plain = !$("order").value;
  $("rows").replaceChildren(...chosen.map(row => rowLink(row, plain && row.parent !== row.id && ids.has(row.parent))));
  const part = chosen.length < rows.length ? `${chosen.length} of ${count(rows.length, "trace")}` : count(rows.length, "trace");
  const missing = embedded.live ? 0 : rows.length - embedded.whole;
  const state = reading.fault ? ` · reading stopped: ${reading.fault}` : reading.done ? "" : " · reading …";
  $("status").textContent = part + state + (missing > 0 ? ` · ${missing} are listed only: the page is full, use --serve` : "");
  return chosen;
}

function showFilters() {
  options($("format"), "all formats", new Set(rows.map(row => row.format)));
  options($("model"), "all models", new Set(rows.flatMap(row => row.models)));
}

let searches = 0;
async function search() {
  const wanted = $("words").value.trim(), mine = ++searches;
  if (wanted) $("status").textContent = "searching …";
  const keys = wanted ? new Set(await source.search(wanted)) : null;
  if (mine !== searches) return; // typed on meanwhile
  found = keys;
  showList();
}
